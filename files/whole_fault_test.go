//go:build go1.25

package files_test

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

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/temporary"
)

// A scene is some files on a disk that fails, every second one exists
// already, in two directories.
type scene struct {
	disk  *fault.Disk
	mode  files.Mode
	sync  holdfast.Sync
	files []files.Write
	old   map[string][]byte
	leads map[string]string // where paths lead that are links or mounted files

	beside []files.Write // another Set's write meanwhile

	mayLeave bool // temporary files
}

func newScene(t *testing.T, mode files.Mode, sync holdfast.Sync, n int) *scene {
	t.Helper()
	s := &scene{disk: fault.NewDisk(), mode: mode, sync: sync, old: map[string][]byte{}}
	for _, dir := range []string{"a", "b"} {
		if err := s.disk.MkdirAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		p := fmt.Sprintf("/%c/file%d", 'a'+i%2, i)
		if mode != files.Create && i%4 < 2 {
			s.old[p] = fmt.Appendf(nil, "what was in %d", i)
			if err := s.disk.WriteFile(p, s.old[p], 0o644); err != nil {
				t.Fatal(err)
			}
		}
		s.files = append(s.files, files.Write{Path: p, Data: fmt.Appendf(nil, "what comes into %d", i), Mode: mode})
	}
	return s
}

// newMaze is a scene with more files, which are reached by links to another directory and
// another file system, of files and of names. Unless they are replaced, it has mounted
// files too. Another Files writes in the same directories.
func newMaze(t *testing.T, mode files.Mode, sync holdfast.Sync, n int) *scene {
	t.Helper()
	s := newScene(t, mode, sync, n)
	s.leads = map[string]string{}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.disk.MkdirAll("/c"))
	must(s.disk.Mount("/m"))
	for i := range 6 {
		p, target := fmt.Sprintf("/a/way%d", i), fmt.Sprintf("/%c/real%d", "cm"[i%2], i)
		if mode == files.Create || i >= 4 && mode == files.Replace {
			continue // which refuse them
		}
		if i < 2 || i >= 4 {
			s.old[p] = fmt.Appendf(nil, "what was in way %d", i)
			must(s.disk.WriteFile(target, s.old[p], 0o644))
		}
		if i < 4 {
			must(s.disk.Symlink(target, p))
		} else {
			must(s.disk.Bind(target, p))
		}
		s.leads[p] = target
		s.files = append(s.files, files.Write{Path: p, Data: fmt.Appendf(nil, "what comes into way %d", i), Mode: mode})
	}
	for i := range 3 {
		s.beside = append(s.beside, files.Write{Path: fmt.Sprintf("/%c/beside%d", "acm"[i], i), Data: []byte("x")})
	}
	return s
}

// file returns what an image holds of a file, by whatever path.
func (s *scene) file(m *fault.Image, path string) (data []byte, there bool) {
	if target := s.leads[path]; target != "" {
		path = target
	}
	return m.File(path)
}

func (s *scene) options() files.Options {
	return files.Options{Policy: holdfast.Policy{Sync: s.sync}, Workers: 2, Handles: 8}
}

// after returns what a file holds when n of its bytes are written.
func (s *scene) after(f files.Write, n int64) []byte {
	if s.mode == files.Append {
		return append(bytes.Clone(s.old[f.Path]), f.Data[:n]...)
	}
	return f.Data[:n]
}

// judge holds the results to the images, and to nothing else.
func (s *scene) judge(results *files.Results, err error) error {
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
		if strings.HasPrefix(path.Base(p), temporary.Prefix) && !s.mayLeave {
			return fmt.Errorf("%s is left", p)
		}
	}
	return s.judgePower(results)
}

func (s *scene) judgeOne(f files.Write, r files.Result, shown *fault.Image) error {
	now, there := s.file(shown, f.Path)
	old, wasThere := s.old[f.Path]
	want := holdfast.OutcomeDurable
	if s.sync.Mode == holdfast.SyncNever {
		want = holdfast.OutcomeWritten
	}
	switch {
	case r.Path != f.Path:
		return errors.New("is not in its place")
	case r.Err == nil && (r.Outcome != want || r.Bytes != int64(len(f.Data))):
		return errors.New("has no error")
	case r.Err != nil && r.Outcome == want:
		return errors.New("has an error")
	}
	var e *files.Error
	if r.Err != nil && (!errors.As(r.Err, &e) || e.Outcome != r.Outcome || e.Offset != r.Bytes || e.Path != r.Path) {
		return errors.New("the error does not say what the result says")
	}
	switch r.Outcome {
	case holdfast.OutcomeUntouched:
		if there != wasThere || !bytes.Equal(now, old) || r.Bytes != 0 {
			return fmt.Errorf("the file holds %q", now)
		}
	case holdfast.OutcomePartial, holdfast.OutcomeWritten, holdfast.OutcomeDurable:
		if r.Outcome == holdfast.OutcomePartial && r.Bytes == 0 && there && bytes.Equal(now, old) {
			return nil // it could not be found out that it was there before
		}
		if !there || !bytes.Equal(now, s.after(f, r.Bytes)) {
			return fmt.Errorf("the file holds %q", now)
		}
	case holdfast.OutcomeUncertain:
		if !there || !bytes.Equal(now, s.after(f, int64(len(f.Data)))) {
			return fmt.Errorf("the file holds %q", now)
		}
	}
	return nil
}

// judgePower checks the files after several power cuts.
func (s *scene) judgePower(results *files.Results) error {
	for seed := range uint64(12) {
		image := s.disk.PowerCut(rand.New(rand.NewPCG(seed, 1)))
		for i, r := range results.All() {
			f := s.files[i]
			left, there := s.file(image, f.Path)
			if r.Outcome == holdfast.OutcomeDurable && !bytes.Equal(left, s.after(f, r.Bytes)) {
				return fmt.Errorf("%s is durable, and after a power cut it holds %q", f.Path, left)
			}
			old, wasThere := s.old[f.Path]
			if s.mode == files.Replace && s.sync.Mode != holdfast.SyncNever && there && !bytes.Equal(left, f.Data) && !(wasThere && bytes.Equal(left, old)) {
				return fmt.Errorf("%s is replaced (%v), and after a power cut it holds %q", f.Path, r.Outcome, left)
			}
			if s.mode == files.Replace && s.sync.Mode != holdfast.SyncNever && wasThere && !there {
				return fmt.Errorf("%s is replaced, and after a power cut it is gone", f.Path)
			}
		}
	}
	return nil
}

// run writes the scene's files, closes and judges.
func (s *scene) run(t *testing.T, o files.Options) (*files.Results, error) {
	t.Helper()
	f := newSet(s.disk, o)
	s.disk.SetCap(o.Handles)
	ended := func() {}
	if len(s.beside) > 0 {
		s.disk.SetCap(2 * o.Handles)
		other := newSet(s.disk, o)
		other.SharesKernel(f)
		done := make(chan *files.Results)
		go func() {
			results, _ := other.WriteAll(context.Background(), one(s.beside...))
			done <- results
		}()
		ended = func() {
			keepsItsWord(t, s.disk, <-done)
			other.Close()
		}
	}
	results, err := f.WriteAll(context.Background(), one(s.files...))
	ended()
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
	wholeModes = []files.Mode{files.Create, files.Truncate, files.Append, files.Replace}
	wholeSyncs = []holdfast.Sync{{Mode: holdfast.SyncNever}, {Mode: holdfast.SyncEach}, {Mode: holdfast.SyncGroup}}
)

func TestEveryFailureIsReported(t *testing.T) {
	isolate.Once(t, isolate.Ordinary)
	// The errnos that mean the same to package retry take turns, from one call to the next and from one case to the next.
	turns := [2][]error{
		{syscall.EINTR, syscall.EAGAIN, syscall.ENOSPC, syscall.EMFILE, syscall.EIO, syscall.EACCES, syscall.ENOENT},
		{syscall.EINTR, syscall.EAGAIN, syscall.EDQUOT, syscall.ENFILE, syscall.EIO, syscall.EACCES, syscall.ENOENT},
	}
	if testing.Short() {
		turns = [2][]error{{syscall.ENOSPC}, {syscall.EIO}}
	}
	ops, cases := fault.DiskOps(), 0
	for m, mode := range wholeModes {
		for _, sync := range wholeSyncs {
			for _, all := range []bool{true, false} {
				if all && sync.Mode != holdfast.SyncGroup {
					continue
				}
				turn := m + cases
				cases++
				t.Run(fmt.Sprintf("%v %v %v", mode, sync, all), func(t *testing.T) {
					t.Parallel()
					for i, op := range ops {
						if isolate.RaceEnabled && (i+turn)%3 != 0 { // goroutines meet in the same places at each: the calls take turns
							continue
						}
						for _, errno := range turns[(i+turn)%2] {
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

// underFault reports whether every result is right.
func underFault(t *testing.T, mode files.Mode, sync holdfast.Sync, all bool, x fault.DiskFault) bool {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		defer func() {
			if t.Failed() {
				t.Logf("with %v %v of the %dth call, %d times", x.Op, x.Err, x.First, x.Times)
			}
		}()
		s := newMaze(t, mode, sync, 4)
		if mode == files.Replace && x.Op == fault.DiskStat && x.Err == syscall.ENOENT {
			s = newScene(t, mode, sync, 6) // a link that Stat does not find is replaced itself
		}
		s.disk.SetSyncsAll("/", all)
		s.disk.SetSyncsAll("/m", all)
		s.disk.Add(x)
		// A temporary file that can't be removed, or whose directory can't be opened any more, stays.
		s.mayLeave = x.Times == 0 && slices.Contains([]fault.DiskOp{fault.DiskRemove, fault.DiskOpenDir, fault.DiskStatFD, fault.DiskStatPath}, x.Op)
		s.run(t, s.options())
	})
	return !t.Failed()
}
