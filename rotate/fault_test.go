package rotate

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/fault"
	"github.com/holdfast-go/holdfast/internal/racetest"
)

// policies are one of each kind.
var policies = []holdfast.Policy{
	holdfast.Unbuffered(),
	{Buffer: 256, FlushEvery: 100 * time.Millisecond},
	{Buffer: 256, Sync: holdfast.SyncEvery(200 * time.Millisecond)},
	{Buffer: 256, Sync: holdfast.Sync{Mode: holdfast.SyncClose}},
	holdfast.Durable(),
	holdfast.EachDurable(),
}

// A scene is a log on a disk that fails, and what its only writer knows of it.
type scene struct {
	disk     *memory
	options  Options
	windows  bool // no file is renamed that is open
	accepted ledger
	// flushed is how many records a kill must leave by the policy's word, acknowledged how many
	// a power cut must leave.
	flushed, acknowledged atomic.Int64
	reported              atomic.Int64
	unsynced              atomic.Bool // a sync was made, and failed
}

func newScene(t *testing.T, p holdfast.Policy) *scene {
	t.Helper()
	s := &scene{disk: newMemory(t), accepted: ledger{}}
	s.options = Options{MaxSize: 400, Compress: true, Policy: p, OnError: func(e *Error) {
		s.reported.Add(1)
		if x := (*fault.DiskError)(nil); e.Op == "sync" && errors.As(e.Err, &x) && (x.Op == fault.DiskSync || x.Op == fault.DiskDatasync) {
			s.unsynced.Store(true)
		}
	}}
	// A backup, half compressed when its process was killed, and the end of a record.
	for name, data := range map[string][]byte{
		"app-2000-01-01T00-00-00.000.log":         slices.Concat(record(0, 0), record(0, 1)),
		"app-2000-01-01T00-00-00.000.log.gz.part": []byte("\x1f\x8b half"),
		"app-1999-01-01T00-00-00.000.log.gz.part": []byte("\x1f\x8b half, and its backup is gone"),
		"other.txt": []byte("another's"),
	} {
		if err := s.disk.WriteFile("/log/"+name, data, 0o640); err != nil {
			t.Fatal(err)
		}
	}
	s.accepted[0] = 2
	s.acknowledged.Store(2)
	return s
}

// write gives records until each is accepted, and mends the disk if that takes long.
func (s *scene) write(t *testing.T, f *File, records int) {
	for range records {
		n := s.accepted[0]
		for try := 1; ; try++ {
			k, err := f.Write(record(0, n))
			if k > 0 {
				s.accepted[0]++
			}
			if err == nil && s.options.Policy.Buffer == 0 {
				s.flushed.Store(int64(n + 1))
			}
			if err == nil && s.options.Policy.Sync.Waits() {
				s.flushed.Store(int64(n + 1))
				s.acknowledged.Store(int64(n + 1))
			}
			if k > 0 {
				break
			}
			if try == 3 {
				s.disk.Mend()
			}
			if try == 10 {
				t.Fatal("it does not write again:", err)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// run is the life of a log.
func (s *scene) run(t *testing.T) {
	f, err := open(s.disk, "/log/app.log", s.options, s.windows)
	if err != nil {
		s.reported.Add(1)
		s.disk.Mend()
		if f, err = open(s.disk, "/log/app.log", s.options, s.windows); err != nil {
			t.Fatal(err)
		}
	}
	failed := func(err error) {
		if err != nil {
			s.reported.Add(1)
		}
	}
	s.write(t, f, 15)
	failed(f.Rotate())
	s.write(t, f, 3)
	if err := s.disk.Move("/log/app.log", "/log/app-"+time.Now().UTC().Format(stamp)+".log"); err == nil {
		failed(f.Reopen())
	}
	s.write(t, f, 3)
	failed(f.Sync())
	s.acknowledge(f)
	time.Sleep(10 * time.Second)
	s.write(t, f, 3)
	s.disk.Mend()
	time.Sleep(5 * time.Minute) // it tries again
	s.write(t, f, 3)
	_ = f.Sync() // a failed write is over with it
	synctest.Wait()
	if err := f.Sync(); (err != nil) != s.unsynced.Load() {
		t.Errorf("Sync of a disk that was mended: %v, and a sync has failed: %v", err, s.unsynced.Load())
	}
	if err := f.Close(); (err != nil) != s.unsynced.Load() {
		t.Errorf("Close of a disk that was mended: %v, and a sync has failed: %v", err, s.unsynced.Load())
	}
	if n := s.disk.Open(); n != 0 {
		t.Errorf("%d descriptors are left open", n)
	}
	if wrong := s.disk.Violations(); len(wrong) > 0 {
		t.Errorf("violations: %v", wrong)
	}
}

// acknowledge notes that a Sync has made all durable, where it has.
func (s *scene) acknowledge(f *File) {
	if s.options.Policy.Sync.Mode != holdfast.SyncNever && f.Sync() == nil && s.reported.Load() == 0 {
		s.acknowledged.Store(int64(s.accepted[0]))
	}
}

// judge looks at what is there at last, and again when the next process has opened it.
func (s *scene) judge(t *testing.T) {
	files := logs(s.disk.ProcessCrash())
	if err := s.accepted.holds(files); err != nil {
		t.Errorf("%v: %q", err, files)
	}
	finishes(t, s.disk, s.options)
	files = logs(s.disk.ProcessCrash())
	if err := s.accepted.holds(files); err != nil {
		t.Errorf("opened again: %v: %v", err, names(files))
	}
}

// finishes opens a log and holds that everything that was begun is finished then.
func finishes(t *testing.T, d *memory, o Options) {
	t.Helper()
	o.MaxSize, o.OnError = 0, func(e *Error) { t.Errorf("opened again: %v", e) }
	f, err := open(d, "/log/app.log", o, false)
	if err != nil {
		t.Fatal("opened again:", err)
	}
	synctest.Wait()
	if err := f.Close(); err != nil {
		t.Error("opened again:", err)
	}
	for name := range logs(d.ProcessCrash()) {
		if strings.HasPrefix(name, "app-") && path.Ext(name) != packed {
			t.Errorf("opened again, %s is left", name)
		}
	}
}

func TestEveryFailureIsSurvived(t *testing.T) {
	errnos := []syscall.Errno{syscall.ENOSPC, syscall.EIO, syscall.EACCES, syscall.EINTR, syscall.ENOENT}
	var ops []fault.DiskOp // those that a log makes
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, holdfast.Durable())
		s.run(t)
		for _, op := range fault.DiskOps() {
			if s.disk.Count(op) > 0 || op == fault.DiskTruncate { // which follows a failed write
				ops = append(ops, op)
			}
		}
	})
	few := testing.Short() || racetest.Enabled
	for i, p := range policies {
		for _, windows := range []bool{false, true} {
			if windows && i%4 != 0 {
				continue
			}
			t.Run(fmt.Sprintf("%v windows=%v", p, windows), func(t *testing.T) {
				t.Parallel()
				for n, op := range ops {
					for k, at := range []struct{ first, times int }{{1, 0}, {4, 1}, {1, 1}, {4, 0}, {2, 3}} {
						if few && k >= 2 {
							break
						}
						errnos := slices.Concat(errnos, errnos)[(n+i+k)%len(errnos):][:2]
						if few {
							errnos = errnos[:1]
						}
						for _, errno := range errnos {
							x := fault.DiskFault{Op: op, Err: errno, First: at.first, Times: at.times, Take: 5 * (at.first - 1)}
							synctest.Test(t, func(t *testing.T) {
								s := newScene(t, p)
								s.windows = windows
								s.disk.Add(x)
								s.run(t)
								s.judge(t)
								if t.Failed() {
									t.Logf("with %v %v of the %dth call, %d times", x.Op, x.Err, x.First, x.Times)
								}
							})
							if t.Failed() {
								return
							}
						}
					}
				}
			})
		}
	}
}

// TestPowerMayBeCutAnywhere cuts the power, and kills the process, at each call of a log's life.
// What was acknowledged is there, whole and once, and the next Open finishes what was begun.
func TestPowerMayBeCutAnywhere(t *testing.T) {
	for _, p := range policies {
		t.Run(p.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t, p)
				var one sync.Mutex // the log and its background make calls
				var seed uint64
				cut := 0
				s.disk.Watch(func(c fault.DiskCall) {
					if c.End.IsZero() || t.Failed() || c.Op == fault.DiskStat || c.Op == fault.DiskStatPath || c.Op == fault.DiskStatFD {
						return
					}
					one.Lock()
					defer one.Unlock()
					seed++
					// Before the image: another goroutine may write meanwhile.
					flushed, acknowledged := s.flushed.Load(), s.acknowledged.Load()
					if err := durableIn(logs(s.disk.ProcessCrash()), flushed); err != nil {
						t.Errorf("killed after %v %d of %s: %v", c.Op, c.N, c.Path, err)
					}
					if p.Sync.Mode == holdfast.SyncNever {
						return // a power cut may take anything
					}
					for i := range uint64(3) {
						cut++
						image := s.disk.PowerCut(rand.New(rand.NewPCG(seed, i)))
						if err := durableIn(logs(image), acknowledged); err != nil {
							t.Errorf("power cut after %v %d of %s: %v: %q", c.Op, c.N, c.Path, err, logs(image))
						}
					}
				})
				s.run(t)
				if s.reported.Load() != 0 {
					t.Error("a failure was reported")
				}
				if cut < 100 && p.Sync.Mode != holdfast.SyncNever {
					t.Errorf("only %d power cuts", cut)
				}
			})
		})
	}
}

// durableIn holds that the first records are in an image, whole and once. What comes behind
// them may be torn, or missing.
func durableIn(files map[string][]byte, records int64) error {
	all, err := text(files, true)
	if err != nil {
		return err
	}
	for n := range int(records) {
		if c := bytes.Count(append([]byte("\n"), all...), append([]byte("\n"), record(0, n)...)); c != 1 {
			return fmt.Errorf("record %d of %d is there %d times", n, records, c)
		}
	}
	return nil
}
