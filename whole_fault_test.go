package holdfast

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/internal/fault"
)

// A scene is some files on a disk that fails, of which every second one is there
// already, in two folders.
type scene struct {
	disk  *fault.Disk
	mode  Mode
	sync  Sync
	files []FileWrite
	old   map[string][]byte

	mayLeave bool // temporary files
}

func newScene(t *testing.T, mode Mode, sync Sync, n int) *scene {
	t.Helper()
	s := &scene{disk: fault.NewDisk(), mode: mode, sync: sync, old: map[string][]byte{}}
	for _, folder := range []string{"a", "b"} {
		if err := s.disk.MkdirAll(folder); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		p := fmt.Sprintf("/%c/file%d", 'a'+i%2, i)
		if mode != ModeCreate && i%4 < 2 {
			s.old[p] = fmt.Appendf(nil, "what was in %d", i)
			if err := s.disk.WriteFile(p, s.old[p], 0o644); err != nil {
				t.Fatal(err)
			}
		}
		s.files = append(s.files, FileWrite{Path: p, Data: fmt.Appendf(nil, "what comes into %d", i), Mode: mode})
	}
	return s
}

func (s *scene) options() FilesOptions {
	return FilesOptions{Policy: Policy{Sync: s.sync}, Workers: 2, Handles: 8}
}

// after returns what a file holds when n of its bytes are written.
func (s *scene) after(f FileWrite, n int64) []byte {
	if s.mode == ModeAppend {
		return append(bytes.Clone(s.old[f.Path]), f.Data[:n]...)
	}
	return f.Data[:n]
}

// judge holds the results to the images, and to nothing else.
func (s *scene) judge(results *Results, err error) error {
	if results.Len() != len(s.files) {
		return fmt.Errorf("%d results for %d files", results.Len(), len(s.files))
	}
	shown := s.disk.ProcessCrash()
	for i, r := range results.All() {
		if err := s.judgeOne(s.files[i], r, shown); err != nil {
			return fmt.Errorf("%+v: %w", r, err)
		}
	}
	if t := results.Totals(); t.Files != t.Durable+t.Written+t.Partial+t.Untouched+t.Uncertain || (t.Failed > 0) != (err != nil) {
		return fmt.Errorf("totals %+v with error %v", t, err)
	}
	for p := range shown.Files {
		if strings.HasPrefix(path.Base(p), temporaryPrefix) && !s.mayLeave {
			return fmt.Errorf("%s is left", p)
		}
	}
	return s.judgePower(results)
}

func (s *scene) judgeOne(f FileWrite, r FileResult, shown *fault.Image) error {
	now, there := shown.File(f.Path)
	old, wasThere := s.old[f.Path]
	want := OutcomeDurable
	if s.sync == SyncNever {
		want = OutcomeWritten
	}
	switch {
	case r.Path != f.Path:
		return errors.New("is not in its place")
	case r.Err == nil && (r.Outcome != want || r.Bytes != int64(len(f.Data))):
		return errors.New("has no error")
	case r.Err != nil && r.Outcome == want:
		return errors.New("has an error")
	}
	var e *FileError
	if r.Err != nil && (!errors.As(r.Err, &e) || e.Outcome != r.Outcome || e.Offset != r.Bytes || e.Path != r.Path) {
		return errors.New("the error does not say what the result says")
	}
	switch r.Outcome {
	case OutcomeUntouched:
		if there != wasThere || !bytes.Equal(now, old) || r.Bytes != 0 {
			return fmt.Errorf("the file holds %q", now)
		}
	case OutcomePartial, OutcomeWritten, OutcomeDurable:
		if r.Outcome == OutcomePartial && r.Bytes == 0 && there && bytes.Equal(now, old) {
			return nil // it could not be found out that it was there before
		}
		if !there || !bytes.Equal(now, s.after(f, r.Bytes)) {
			return fmt.Errorf("the file holds %q", now)
		}
	case OutcomeUncertain:
		if !there || !bytes.Equal(now, s.after(f, int64(len(f.Data)))) {
			return fmt.Errorf("the file holds %q", now)
		}
	}
	return nil
}

// judgePower looks at what several power cuts leave.
func (s *scene) judgePower(results *Results) error {
	for seed := range uint64(12) {
		image := s.disk.PowerCut(rand.New(rand.NewPCG(seed, 1)))
		for i, r := range results.All() {
			f := s.files[i]
			left, there := image.File(f.Path)
			if r.Outcome == OutcomeDurable && !bytes.Equal(left, s.after(f, r.Bytes)) {
				return fmt.Errorf("%s is durable, and after a power cut it holds %q", f.Path, left)
			}
			old, wasThere := s.old[f.Path]
			if s.mode == ModeReplace && s.sync != SyncNever && there && !bytes.Equal(left, f.Data) && !(wasThere && bytes.Equal(left, old)) {
				return fmt.Errorf("%s is replaced (%v), and after a power cut it holds %q", f.Path, r.Outcome, left)
			}
			if s.mode == ModeReplace && s.sync != SyncNever && wasThere && !there {
				return fmt.Errorf("%s is replaced, and after a power cut it is gone", f.Path)
			}
		}
	}
	return nil
}

// run writes the scene's files, closes and judges.
func (s *scene) run(t *testing.T, o FilesOptions) (*Results, error) {
	t.Helper()
	f := newFiles(s.disk, o)
	s.disk.SetCap(o.Handles)
	results, err := f.WriteAll(context.Background(), one(s.files...))
	if err := f.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if n := s.disk.Open(); n != 0 {
		t.Errorf("%d descriptors are left open", n)
	}
	if wrong := s.disk.Violations(); len(wrong) > 0 {
		t.Errorf("violations: %v", wrong)
	}
	if bad := s.judge(results, err); bad != nil {
		t.Error(bad)
	}
	return results, err
}

var (
	wholeModes = []Mode{ModeCreate, ModeTruncate, ModeAppend, ModeReplace}
	wholeSyncs = []Sync{SyncNever, SyncEach, SyncGroup}
)

func TestEveryFailureIsTold(t *testing.T) {
	errnos := []error{syscall.EINTR, syscall.EAGAIN, syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE, syscall.EIO, syscall.EACCES, syscall.ENOENT}
	ops := fault.DiskOps()
	if testing.Short() {
		errnos = []error{syscall.ENOSPC, syscall.EIO}
	}
	for _, mode := range wholeModes {
		for _, sync := range wholeSyncs {
			for _, all := range []bool{true, false} {
				if all && sync != SyncGroup {
					continue
				}
				t.Run(fmt.Sprintf("%v %v %v", mode, sync, all), func(t *testing.T) {
					t.Parallel()
					for _, op := range ops {
						for _, errno := range errnos {
							for _, times := range []int{1, 0} {
								for _, first := range []int{1, 4} {
									x := fault.DiskFault{Op: op, Err: errno, First: first, Times: times, Take: first}
									if !underFault(t, mode, sync, all, x) {
										return
									}
								}
							}
						}
					}
				})
			}
		}
	}
}

// underFault reports whether all was told right.
func underFault(t *testing.T, mode Mode, sync Sync, all bool, x fault.DiskFault) bool {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		defer func() {
			if t.Failed() {
				t.Logf("with %v %v of the %dth call, %d times", x.Op, x.Err, x.First, x.Times)
			}
		}()
		s := newScene(t, mode, sync, 6)
		s.disk.SetSyncsAll("/", all)
		s.disk.Add(x)
		// A temporary file that can't be removed, or whose folder can't be opened any more, stays.
		s.mayLeave = x.Times == 0 && slices.Contains([]fault.DiskOp{fault.DiskRemove, fault.DiskOpenFolder, fault.DiskStatFD, fault.DiskStatPath}, x.Op)
		s.run(t, s.options())
	})
	return !t.Failed()
}
