//go:build go1.25

package files_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

// afterPowerCuts checks that whatever a power cut may leave has this at the path.
func afterPowerCuts(t *testing.T, disk *fault.Disk, path, want string) {
	t.Helper()
	for seed := range uint64(20) {
		if got, ok := disk.PowerCut(rand.New(rand.NewPCG(seed, 4))).File(path); !ok || string(got) != want {
			t.Fatalf("after a power cut %s holds %q (there: %v), want %q", path, got, ok, want)
		}
	}
}

func TestWholeFileIsNotDurableInDirectoryWhoseNameMayBeLost(t *testing.T) {
	for _, s := range []holdfast.Sync{{Mode: holdfast.SyncEach}, {Mode: holdfast.SyncGroup}} {
		for _, all := range []bool{true, false} {
			disk := fault.NewDisk(fault.DiskFault{Op: fault.DiskSync, Path: "/", Times: 1, Err: syscall.EIO})
			disk.SetSyncsAll("/", all)
			f := onDisk(t, disk, files.Options{Policy: holdfast.Policy{Sync: s}, MkdirAll: true})
			for _, path := range []string{"/x/one", "/x/two", "/x/y/other"} {
				for _, mode := range []files.Mode{files.Truncate, files.Replace} {
					if r, err := f.WriteFile(noContext, path, []byte("x"), mode); !errors.Is(err, syscall.EIO) || r.Outcome == holdfast.OutcomeDurable {
						t.Errorf("%v %v: %v, %v", path, mode, r.Outcome, err)
					}
					results, _ := f.WriteAll(noContext, one(files.Write{Path: path, Data: []byte("x"), Mode: mode}))
					if r := results.At(0); r.Outcome == holdfast.OutcomeDurable {
						t.Errorf("%v %v: durable in a batch", path, mode)
					}
				}
			}
		}
	}
}

func TestDirectoryThatCannotBeOpenedForItsSyncIsTriedAgain(t *testing.T) {
	for _, cause := range []error{syscall.EINTR, syscall.EMFILE, syscall.ENOMEM} {
		synctest.Test(t, func(t *testing.T) {
			disk := fault.NewDisk()
			// Its second opening: the first finds that the directory is missing.
			disk.Add(fault.DiskFault{Op: fault.DiskOpenDir, Path: "/", Times: 2, Err: cause})
			f := onDisk(t, disk, files.Options{Policy: holdfast.EachDurable(), MkdirAll: true})
			mustAppend(t, f, "/x/log", "durable")
			afterPowerCuts(t, disk, "/x/log", "durable")
		})
	}
}

// A new file whose first write was cut short is not all written when another opens it.
func TestAppendDoesNotMixWithANewFile(t *testing.T) {
	for _, path := range []string{"/a/file", "/a/../a/file"} {
		synctest.Test(t, func(t *testing.T) {
			disk := fault.NewDisk(
				fault.DiskFault{Op: fault.DiskWrite, Path: "file", Take: 3, Times: 1, Delay: 2 * time.Second},
				fault.DiskFault{Op: fault.DiskWrite, Path: "file", Take: fault.All, First: 2, Delay: 2 * time.Second})
			disk.MkdirAll("a")
			f := onDisk(t, disk, files.Options{Policy: holdfast.Unbuffered()})
			var both sync.WaitGroup
			both.Go(func() { f.WriteFile(noContext, "/a/file", []byte("whole\n"), files.Create) })
			time.Sleep(time.Second)
			both.Go(func() { f.Append(noContext, path, []byte("line\n")) })
			both.Wait()
			wantOnDisk(t, disk, "/a/file", "whole\nline\n")
		})
	}
}

// The file is replaced after the append has opened it and before it is known.
func TestAppendOpensNoFileThatIsJustReplaced(t *testing.T) {
	for _, p := range appendPolicies() {
		synctest.Test(t, func(t *testing.T) {
			disk := fault.NewDisk()
			disk.WriteFile("/log", []byte("old"), 0o644)
			f := onDisk(t, disk, files.Options{Policy: p})
			disk.Add(fault.DiskFault{Op: fault.DiskStatFD, Path: "log", Times: 1, Delay: time.Hour})
			var beside sync.WaitGroup
			beside.Go(func() { f.Append(noContext, "/log", []byte("first ")); f.Flush(noContext) })
			time.Sleep(time.Minute)
			disk.Symlink("/log", "/alias") // whose write does not wait for the append's path
			if _, err := f.WriteFile(noContext, "/alias", []byte("new "), files.Replace); err != nil {
				t.Fatal(err)
			}
			beside.Wait()
			mustAppend(t, f, "/log", "second")
			if err := f.Close(); err != nil {
				t.Error(p, err)
			}
			if got, _ := disk.ReadFile("/log"); string(got) != "new second" && string(got) != "new first second" {
				t.Errorf("%v: it holds %q", p, got)
			}
		})
	}
}

// A whole file that was made and could not be written is removed; what was appended
// to it meanwhile must not go with it.
func TestRemovalOfAFailedFileTakesNoAppendedBytes(t *testing.T) {
	for _, p := range appendPolicies() {
		for _, path := range []string{"/a/file", "/a/../a/file"} {
			synctest.Test(t, func(t *testing.T) {
				disk := fault.NewDisk(
					fault.DiskFault{Op: fault.DiskWrite, Path: "file", Times: 1, Take: 3, Delay: time.Second},
					fault.DiskFault{Op: fault.DiskWrite, Path: "file", First: 2, Times: 1, Err: syscall.EIO, Delay: time.Second},
					fault.DiskFault{Op: fault.DiskStat, Path: "file", Delay: time.Hour})
				disk.MkdirAll("a")
				f := onDisk(t, disk, files.Options{Policy: p})
				var beside sync.WaitGroup
				var r files.Result
				beside.Go(func() { r, _ = f.WriteFile(noContext, "/a/file", []byte("whole\n"), files.Create) })
				time.Sleep(100 * time.Millisecond)
				mustAppend(t, f, path, "line\n")
				if err := f.Sync(noContext); err != nil {
					t.Error(err)
				}
				beside.Wait()
				if err := f.Close(); err != nil {
					t.Error(p, err)
				}
				want := "line\n"
				if r.Outcome != holdfast.OutcomeUntouched {
					want = "wholine\n"
				}
				wantOnDisk(t, disk, "/a/file", want)
			})
		}
	}
}

func TestRemovalOfAFailedFileTakesNoBytesOfAnotherPath(t *testing.T) {
	for _, mode := range []files.Mode{files.Append, files.Truncate} {
		synctest.Test(t, func(t *testing.T) {
			disk := fault.NewDisk(
				fault.DiskFault{Op: fault.DiskWrite, Path: "file", Times: 1, Take: 3, Delay: time.Second},
				fault.DiskFault{Op: fault.DiskWrite, Path: "file", First: 2, Times: 1, Err: syscall.EIO, Delay: time.Second})
			disk.MkdirAll("a")
			f := onDisk(t, disk, files.Options{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncEach}}})
			var beside sync.WaitGroup
			beside.Go(func() { f.WriteFile(noContext, "/a/file", []byte("whole"), files.Create) })
			time.Sleep(100 * time.Millisecond)
			if r, err := f.WriteFile(noContext, "/a/../a/file", []byte("other"), mode); err != nil || r.Outcome != holdfast.OutcomeDurable {
				t.Error(r, err)
			}
			beside.Wait()
			afterPowerCuts(t, disk, "/a/file", "other")
		})
	}
}

// Log rotation while others append: the stream goes on, and its new file's name is
// another that has to be durable.
func TestNameOfTheFileAfterARotationIsDurable(t *testing.T) {
	for _, p := range []holdfast.Policy{holdfast.Durable(), holdfast.EachDurable()} {
		synctest.Test(t, func(t *testing.T) {
			disk := fault.NewDisk()
			f := onDisk(t, disk, files.Options{Policy: p})
			mustAppend(t, f, "/log", "old")
			disk.Move("/log", "/log.1")
			disk.Add(fault.DiskFault{Op: fault.DiskClose, Path: "log*", Times: 1, Delay: time.Second})
			var beside sync.WaitGroup
			beside.Go(func() { f.Release(noContext, "/log") })
			synctest.Wait() // it closes the file, and has the stream
			mustAppend(t, f, "/log", "new")
			afterPowerCuts(t, disk, "/log", "new")
			beside.Wait()
		})
	}
}

func TestEndedContextEndsTheWaitForANewFile(t *testing.T) {
	calls := map[string]func(f *files.Set, ctx context.Context) error{
		"write": func(f *files.Set, ctx context.Context) error {
			_, err := f.WriteFile(ctx, "/mine", []byte("x"), files.Append)
			return err
		},
		"make": func(f *files.Set, ctx context.Context) error {
			go f.WriteFile(ctx, "/other", []byte("x"), files.Append)
			time.Sleep(time.Millisecond)
			_, err := f.WriteFile(ctx, "/new", []byte("x"), files.Create)
			return err
		},
		"append": func(f *files.Set, ctx context.Context) error { return f.Append(ctx, "/mine", []byte("x")) },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := fault.NewDisk(fault.DiskFault{Op: fault.DiskWrite, Path: "slow", Take: fault.All, Delay: time.Hour})
				disk.WriteFile("/mine", nil, 0o644)
				disk.WriteFile("/other", nil, 0o644)
				f := onDisk(t, disk, files.Options{Policy: holdfast.Unbuffered()})
				var beside sync.WaitGroup
				beside.Go(func() { f.WriteFile(noContext, "/slow", []byte("x"), files.Create) })
				synctest.Wait()
				ctx, cancel := context.WithTimeout(noContext, time.Second)
				defer cancel()
				began := time.Now()
				err := call(f, ctx)
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("it took %v and returned %v", took, err)
				}
				if name == "make" && err != nil {
					t.Error(err)
				}
				beside.Wait()
			})
		})
	}
}

// Another's sync of a file that is being closed is no system call of ours.
func TestEndedContextEndsTheWaitForAFileThatIsClosed(t *testing.T) {
	calls := map[string]func(f *files.Set, ctx context.Context) error{
		"append":  func(f *files.Set, ctx context.Context) error { return f.Append(ctx, "/log", []byte("xy")) },
		"release": func(f *files.Set, ctx context.Context) error { return f.Release(ctx, "/log") },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := fault.NewDisk(fault.DiskFault{Op: fault.DiskClose, Path: "log", Delay: time.Hour})
				f := onDisk(t, disk, files.Options{Policy: holdfast.Policy{Buffer: 1}})
				mustAppend(t, f, "/log", "xy")
				var beside sync.WaitGroup
				beside.Go(func() { f.Release(noContext, "/log") })
				synctest.Wait()
				ctx, cancel := context.WithTimeout(noContext, time.Second)
				defer cancel()
				began := time.Now()
				err := call(f, ctx)
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("it took %v and returned %v", took, err)
				}
				beside.Wait()
			})
		})
	}
}

func TestNameThatCannotBeLookedForAtOnceIsNoFailedSync(t *testing.T) {
	for _, cause := range []error{syscall.EINTR, syscall.ENOMEM} {
		synctest.Test(t, func(t *testing.T) {
			disk := fault.NewDisk(fault.DiskFault{Op: fault.DiskStatFD, Path: "log", First: 2, Times: 2, Err: cause})
			f := onDisk(t, disk, files.Options{Policy: holdfast.EachDurable()})
			mustAppend(t, f, "/log", "durable")
			mustAppend(t, f, "/log", " too")
		})
	}
}

func TestManyStuckPathsTakeNoMoreMemoryThanThereIs(t *testing.T) {
	disk := fault.NewDisk()
	disk.Deny("/*", syscall.EROFS)
	f := newSet(disk, files.Options{Policy: holdfast.Buffered(4 * holdfast.KiB), Memory: 4 * holdfast.KiB, Retry: once})
	accepted := 0
	for i := range 10_000 {
		if f.Append(noContext, "/"+strconv.Itoa(i), []byte("x")) == nil {
			accepted++
		}
	}
	if s := f.Stats(); s.Memory > 4<<10 || s.Streams != accepted || accepted == 0 {
		t.Errorf("%d accepted: %+v", accepted, s)
	}
	lost := int64(0)
	for _, err := range f.Close().(interface{ Unwrap() []error }).Unwrap() {
		if failed := (*files.Error)(nil); errors.As(err, &failed) {
			lost += failed.Lost
		}
	}
	if lost != int64(accepted) {
		t.Errorf("Close reports that %d bytes are lost, of %d", lost, accepted)
	}
}

func TestPathTakesAllMemoryThereIs(t *testing.T) {
	disk := fault.NewDisk()
	f := onDisk(t, disk, files.Options{Policy: holdfast.Buffered(4 * holdfast.KiB), Memory: 4 * holdfast.KiB})
	want := ""
	for i := range 300 {
		data := strings.Repeat("x", i*37%5000)
		mustAppend(t, f, "/one", data)
		want += data
		if n := f.Stats().Memory; n > int64(4*holdfast.KiB) {
			t.Fatalf("%d bytes are in use", n)
		}
	}
	if err := f.Flush(noContext); err != nil {
		t.Fatal(err)
	}
	wantOnDisk(t, disk, "/one", want)
}

func TestDirectoryThatCannotBeOpenedToSyncItIsNotFinal(t *testing.T) {
	for _, p := range []holdfast.Policy{holdfast.Durable(), holdfast.EachDurable(), {Sync: holdfast.Sync{Mode: holdfast.SyncClose}}} {
		synctest.Test(t, func(t *testing.T) {
			disk := fault.NewDisk()
			f := onDisk(t, disk, files.Options{Policy: p, Retry: once})
			disk.WriteFile("/log", nil, 0o644)
			disk.Add(fault.DiskFault{Op: fault.DiskDatasync, Delay: time.Minute})
			var beside sync.WaitGroup
			beside.Go(func() {
				err := f.Append(noContext, "/log", []byte("one "))
				if p.Sync.Mode == holdfast.SyncClose {
					err = f.Sync(noContext)
				}
				if !errors.Is(err, syscall.EMFILE) {
					t.Errorf("%v: %v", p, err)
				}
			})
			time.Sleep(time.Second)
			disk.Add(fault.DiskFault{Op: fault.DiskStatPath, Path: "/", Err: syscall.EMFILE})
			disk.Add(fault.DiskFault{Op: fault.DiskOpenDir, Path: "/", Err: syscall.EMFILE})
			beside.Wait()
			disk.Mend()
			if err := f.Append(noContext, "/log", []byte("two")); err != nil {
				t.Error(p, err)
			}
			if err := f.Close(); err != nil {
				t.Error(p, err)
			}
			afterPowerCuts(t, disk, "/log", "one two")
		})
	}
}

func TestCloseReportsNamesThatCouldNotBeSynced(t *testing.T) {
	disk := fault.NewDisk()
	f := onDisk(t, disk, files.Options{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}}, Retry: once})
	mustAppend(t, f, "/log", "x")
	disk.Add(fault.DiskFault{Op: fault.DiskStatPath, Path: "/", Err: syscall.EMFILE})
	disk.Add(fault.DiskFault{Op: fault.DiskOpenDir, Path: "/", Err: syscall.EMFILE})
	if err := f.Close(); !errors.Is(err, syscall.EMFILE) {
		t.Error(err)
	}
}

// The whole file has passed the stream's bytes when these are cut in two.
func TestWholeFileDoesNotStandInTheMiddleOfAnAppend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := fault.NewDisk(
			fault.DiskFault{Op: fault.DiskWrite, Path: "log", Times: 1, Take: 3, Delay: time.Second, Err: syscall.ENOSPC})
		disk.WriteFile("/log", []byte("old "), 0o644)
		disk.Add(fault.DiskFault{Op: fault.DiskOpen, Path: "log", Times: 1, Delay: time.Millisecond})
		f := onDisk(t, disk, files.Options{Policy: holdfast.Buffered(holdfast.KiB), Retry: once})
		var beside sync.WaitGroup
		beside.Go(func() { f.WriteFile(noContext, "/log", []byte("whole "), files.Append) })
		synctest.Wait() // it opens the file
		mustAppend(t, f, "/log", "appended ")
		f.Flush(noContext)
		beside.Wait()
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		got, _ := disk.ReadFile("/log")
		if !strings.Contains(string(got), "appended ") {
			t.Errorf("%q", got)
		}
	})
}
