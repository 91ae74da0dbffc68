//go:build go1.25

package catalogue

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// A plant is a bug that must be found.
type plant struct {
	name     string
	workload string
	policy   holdfast.Policy
	rules    string // by one of which it may be found
	wrap     func(holdfast.File) holdfast.File
	disk     func(*crash.Recorder)
	run      func(*crash.Run) error // instead of the workload's
	fake     bool
}

// A wrapped is a file with other calls.
type wrapped struct {
	holdfast.File
	write func([]byte) (int, error)
	sync  func() error
	close func() error
}

func (f wrapped) Write(p []byte) (int, error) {
	if f.write != nil {
		return f.write(p)
	}
	return f.File.Write(p)
}

func (f wrapped) Sync() error {
	if f.sync != nil {
		return f.sync()
	}
	return f.File.Sync()
}

func (f wrapped) Close() error {
	if f.close != nil {
		return f.close()
	}
	return f.File.Close()
}

// altering plants a bug in a disk's calls.
func altering(alter func(*crash.Entry) bool) func(*crash.Recorder) {
	return func(d *crash.Recorder) { d.Alter = alter }
}

// oneSystem says that all files are of the file system that their names are on.
type oneSystem struct{ crash.Calls }

func (d oneSystem) StatFD(fd int) (s sys.Stat, err error) {
	s, err = d.Calls.StatFD(fd)
	s.Device = 1
	return s, err
}

func isDir(n uint64) bool { return n == crash.Root || n&crash.DirBit != 0 }

// failOnce lets the third sync of a file fail.
func failOnce(d *crash.Recorder) {
	for _, op := range []fault.DiskOp{fault.DiskSync, fault.DiskDatasync} {
		d.Faults.Add(fault.DiskFault{Op: op, Path: "log", First: 3, Times: 1, Err: syscall.EIO})
	}
}

func plants() []plant {
	durable, each, periodic := holdfast.Durable(), holdfast.EachDurable(), holdfast.Periodic(time.Second)
	buffered, large := holdfast.Buffered(4*holdfast.KiB), holdfast.Buffered(256*holdfast.KiB)
	return []plant{
		{name: "acknowledged before the sync", workload: "writer", policy: durable, rules: "lost",
			wrap: func(f holdfast.File) holdfast.File {
				return wrapped{File: f, sync: func() error { go f.Sync(); return nil }}
			}},
		{name: "no sync at all", workload: "writer", policy: each, rules: "lost",
			wrap: func(f holdfast.File) holdfast.File { return wrapped{File: f, sync: func() error { return nil }} }},
		{name: "sync tried again after EIO", workload: "writer", policy: each, rules: "lost", disk: failOnce,
			wrap: func(f holdfast.File) holdfast.File {
				return wrapped{File: f, sync: func() error {
					if f.Sync() == nil {
						return nil
					}
					return f.Sync()
				}}
			}},
		{name: "Durable moved by a failed sync", workload: "enqueue", policy: durable, rules: "lost", disk: failOnce,
			wrap: func(f holdfast.File) holdfast.File {
				return wrapped{File: f, sync: func() error { f.Sync(); return nil }}
			}},
		{name: "directory not synced on create", workload: "whole-create", policy: each, rules: "lost",
			disk: altering(func(e *crash.Entry) bool { return e.Op != crash.Flush || !isDir(e.File) })},
		{name: "directory not synced on replace", workload: "whole-replace", policy: each, rules: "lost",
			disk: altering(func(e *crash.Entry) bool { return e.Op != crash.Flush || !isDir(e.File) })},
		{name: "the directory of a link synced", workload: "whole-create", policy: each, rules: "lost",
			disk: altering(func(e *crash.Entry) bool {
				if e.Op == crash.Flush && isDir(e.File) {
					e.File = crash.DirBit | 99
				}
				return true
			})},
		{name: "file of another file system not synced", workload: "whole-append", policy: durable, rules: "lost",
			disk: func(d *crash.Recorder) { d.Calls = oneSystem{d.Calls} }},
		{name: "name before data", workload: "whole-replace", policy: each, rules: "half lost",
			disk: altering(func(e *crash.Entry) bool { return e.Op != crash.Flush || isDir(e.File) })},
		{name: "short write acknowledged", workload: "writer", policy: each, rules: "lost",
			wrap: func(f holdfast.File) holdfast.File {
				n := 0
				return wrapped{File: f, write: func(p []byte) (int, error) {
					if n++; n%10 == 0 {
						_, err := f.Write(p[:len(p)/2])
						return len(p), err
					}
					return f.Write(p)
				}}
			}},
		{name: "wrong offset after ENOSPC", workload: "writer", policy: durable, rules: "lost order",
			wrap: func(f holdfast.File) holdfast.File {
				n := 0
				return wrapped{File: f, write: func(p []byte) (int, error) {
					if n++; n == 10 { // half was taken, and it begins again at the first byte
						f.Write(p[:len(p)/2])
					}
					return f.Write(p)
				}}
			}},
		{name: "batch reordered", workload: "writer", policy: each, rules: "order lost",
			wrap: func(f holdfast.File) holdfast.File {
				var mu sync.Mutex
				var held []byte
				return wrapped{File: f, write: func(p []byte) (int, error) {
					mu.Lock()
					defer mu.Unlock()
					if held == nil {
						held = bytes.Clone(p)
						return len(p), nil
					}
					f.Write(p)
					f.Write(held)
					held = nil
					return len(p), nil
				}}
			}},
		{name: "record written twice", workload: "writer", policy: each, rules: "order",
			wrap: func(f holdfast.File) holdfast.File {
				n := 0
				return wrapped{File: f, write: func(p []byte) (int, error) {
					if n++; n == 7 {
						f.Write(p)
					}
					return f.Write(p)
				}}
			}},
		{name: "next batch released early", workload: "writer", policy: durable, rules: "lost",
			wrap: func(f holdfast.File) holdfast.File {
				n := 0
				return wrapped{File: f, sync: func() error {
					if n++; n%2 == 0 {
						return nil
					}
					return f.Sync()
				}}
			}},
		{name: "bit flipped", workload: "writer", policy: durable, rules: "lost",
			wrap: func(f holdfast.File) holdfast.File {
				return wrapped{File: f, write: func(p []byte) (int, error) {
					q := bytes.Clone(p)
					q[len(q)-1] ^= 4
					return f.Write(q)
				}}
			}},
		{name: "tail dropped at Close", workload: "writer", policy: large, rules: "lost order", // a sync beside a write brings what is held late
			wrap: func(f holdfast.File) holdfast.File {
				var held []byte
				let := func() { f.Write(held); held = held[:0] }
				return wrapped{File: f, write: func(p []byte) (int, error) {
					if len(held) > 0 {
						let()
					}
					held = append(held, p...)
					return len(p), nil
				}, sync: func() error { let(); return f.Sync() }}
			}},
		{name: "period ignored", workload: "writer", policy: periodic, rules: "age lost", fake: true,
			wrap: func(f holdfast.File) holdfast.File {
				n := 0
				return wrapped{File: f, sync: func() error {
					if n++; n > 3 {
						return nil
					}
					return f.Sync()
				}}
			}},
		{name: "more in memory than the buffer", workload: "writer", policy: buffered, rules: "bytes lost",
			wrap: func(f holdfast.File) holdfast.File {
				var held []byte
				let := func() error { _, err := f.Write(held); held = nil; return err }
				return wrapped{File: f, write: func(p []byte) (int, error) {
					if held = append(held, p...); len(held) > 16<<10 {
						return len(p), let()
					}
					return len(p), nil
				}, sync: func() error { return errors.Join(let(), f.Sync()) }, close: func() error { return errors.Join(let(), f.Close()) }}
			}},
		{name: "acknowledged one too many", workload: "writer", policy: each, rules: "lost", run: func(r *crash.Run) error {
			tell := r.Tell
			r.Tell = func(n crash.Note) {
				if n.Kind == crash.Durable {
					tell(crash.Note{Kind: crash.Accepted, ID: n.ID, N: n.N + 1})
				}
				tell(n)
			}
			return Find("writer").Run(r)
		}},
		{name: "glued record", workload: "writer", policy: holdfast.Unbuffered(), rules: "lost", run: func(r *crash.Run) error {
			r.System = uncut{r.System}
			return Find("writer").Run(r)
		}},
		{name: "temporary left", workload: "plain", policy: each, rules: "temporaries", run: func(r *crash.Run) error {
			return errors.Join(r.WriteFile("c0.tmp", []byte("half"), true), r.SyncDir())
		}},
	}
}

// uncut opens files at their ends, whatever is there.
type uncut struct{ crash.System }

func (u uncut) Append(path string, _ int64) (holdfast.File, error) {
	data, err := u.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return u.System.Append(path, int64(len(data)))
}

// TestPlantedBugsAreFound shows that the checker finds bugs. docs/prove.md lists them.
func TestPlantedBugsAreFound(t *testing.T) {
	if isolate.RaceEnabled {
		t.Skip("some of the bugs are data races")
	}
	page, err := os.ReadFile("../../docs/prove.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range plants() {
		t.Run(b.name, func(t *testing.T) {
			if !strings.Contains(string(page), "| "+b.name+" |") {
				t.Error("docs/prove.md does not list it")
			}
			w := *Find(b.workload)
			w.Cleans = true
			if b.run != nil {
				w.Run = b.run
			}
			find := func(t *testing.T) {
				v := crash.Cell{Workload: &w, Policy: b.policy}.Verdict(crash.Memory, rand.Uint64())
				how := crash.Recording{Records: 200, Wrap: b.wrap, Disk: b.disk, Fails: true, Fake: b.fake}
				if b.fake {
					how.Pause = func(r *rand.Rand) { time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond) }
				}
				err := v.InMemory(&w, 20_000, how, time.Time{})
				if v.Failure == nil {
					t.Fatalf("it was not found in %d states, seed %d: %v", v.Tally.States, v.Seed, err)
				}
				v.Failure.Shrink()
				if rule := v.Failure.Violation.Rule; !strings.Contains(b.rules, rule) {
					t.Errorf("it was found as %s: %s", rule, v.Failure.Words)
				}
				t.Logf("%d states: %s", v.Tally.States, v.Failure.Words)
			}
			if b.fake {
				synctest.Test(t, find)
			} else {
				find(t)
			}
		})
	}
}
