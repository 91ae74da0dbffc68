//go:build go1.25

package files_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// TestPathsThatCantBeWrittenStopNoOther fills the memory with bytes of paths without a directory, or of
// files that could be written once. A path that can be written is accepted all the same.
func TestPathsThatCantBeWrittenStopNoOther(t *testing.T) {
	isolate.Once(t) // one goroutine calls, and its disk is in memory
	check := func(policy string, before bool) {
		t.Run(fmt.Sprint(policy, "/", before), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, err := holdfast.ParsePolicy(policy)
				if err != nil {
					t.Fatal(err)
				}
				disk := fault.NewDisk()
				f := onDisk(t, disk, files.Options{Policy: p, Memory: 64 * holdfast.KiB, Handles: 16})
				const tenants = 200
				if before {
					for i := range tenants {
						disk.MkdirAll(fmt.Sprint("/", i))
						mustAppend(t, f, fmt.Sprintf("/%d/log", i), "once")
					}
					if err := f.Sync(noContext); err != nil {
						t.Fatal(err)
					}
					disk.Deny("log", syscall.EROFS)
					disk.Add(fault.DiskFault{Op: fault.DiskWrite, Path: "log", Err: syscall.EROFS})
				}
				want := ""
				for i := range tenants {
					path := fmt.Sprintf("/%d/log", i)
					if err := f.Append(noContext, path, make([]byte, 3000)); err != nil { // its own failure, and nothing is accepted
						var failed *files.Error
						if !errors.As(err, &failed) || !isPath(failed.Path, path) || failed.Offset != 0 || failed.Outcome != holdfast.OutcomeUntouched {
							t.Fatal(err)
						}
					}
					line := fmt.Sprintf("%0*d\n", 1+i*17%3000, i)
					mustAppend(t, f, "/good", line)
					want += line
					if n := f.Stats().Memory; n > int64(64*holdfast.KiB) {
						t.Fatalf("%d bytes of memory are in use", n)
					}
				}
				time.Sleep(time.Minute)
				mustAppend(t, f, "/good", "the end\n")
				f.Sync(noContext) // it returns the failures of the others
				wantKept(t, disk, "/good", want+"the end\n")
				// The others have their place again when they can be written. They may be, before Flush asks for it.
				accepted := f.Stats().NotFlushed
				disk.Mend()
				for i := range tenants {
					disk.MkdirAll(fmt.Sprint("/", i))
				}
				if err := f.Flush(noContext); err != nil || accepted == 0 {
					t.Error(accepted, err)
				}
				if s := f.Stats(); s.Memory != 0 {
					t.Errorf("%d bytes of memory hold something", s.Memory)
				}
			})
		})
	}
	for _, before := range []bool{false, true} {
		check("buffer=4KiB,sync=never", before)
		check("buffer=4KiB,flush=1s,sync=close", before)
		check("buffer=4KiB,sync=1s", before)
		check("buffer=64KiB,sync=never", before)
	}
}

// TestNoCallWaitsForThePathsThatCantBeWritten has each try of these take an hour. Only the call that finds
// the memory full waits for one of them.
func TestNoCallWaitsForThePathsThatCantBeWritten(t *testing.T) {
	for _, p := range []holdfast.Policy{holdfast.Buffered(holdfast.KiB), {Buffer: holdfast.KiB, FlushEvery: time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			disk := fault.NewDisk()
			f := onDisk(t, disk, files.Options{Policy: p, Memory: 2 * holdfast.KiB, Workers: 2, Retry: once})
			for i := range 4 {
				mustAppend(t, f, fmt.Sprint("/gone/", i), "kept")
			}
			disk.Add(fault.DiskFault{Op: fault.DiskOpenDir, Path: "/gone", Delay: time.Hour})
			start := time.Now()
			mustAppend(t, f, "/good", "x")
			if took := time.Since(start); took > time.Hour {
				t.Errorf("the first call took %v", took)
			}
			f.Flush(noContext) // all of them have failed
			failureOf(t, f.Append(noContext, "/gone/other", []byte("x")), "/gone/other", fs.ErrNotExist)
			start = time.Now()
			for range 9 {
				mustAppend(t, f, "/good", "x")
				time.Sleep(time.Second)
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("ten calls took %v", took)
			}
			wantOnDisk(t, disk, "/good", strings.Repeat("x", 10))
			disk.Mend()
			disk.MkdirAll("/gone")
			time.Sleep(5 * time.Hour) // those under way end
			for range 10 {
				mustAppend(t, f, "/good", "x")
				synctest.Wait()
			}
			if got, _ := disk.ReadFile("/good"); len(got) == 20 {
				t.Error("the path has no buffer still")
			}
			f.Close()
			for i := range 4 {
				wantOnDisk(t, disk, fmt.Sprint("/gone/", i), "kept")
			}
		})
	}
}

// TestDiscardedPathIsLikeANewOne discards what can't be written, at a time at which nothing else is under way.
func TestDiscardedPathIsLikeANewOne(t *testing.T) {
	for _, policy := range []string{"buffer=4KiB,sync=never", "buffer=4KiB,flush=1s,sync=close", "buffer=4KiB,sync=1s/1KiB", "buffer=4KiB,sync=group", "buffer=0,sync=each"} {
		t.Run(policy, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, err := holdfast.ParsePolicy(policy)
				if err != nil {
					t.Fatal(err)
				}
				disk := fault.NewDisk()
				disk.MkdirAll("/tenant")
				f := onDisk(t, disk, files.Options{Policy: p, Retry: once})
				var heard []*files.Error
				f.OnError(func(e *files.Error) { heard = append(heard, e) })
				mustAppend(t, f, "/tenant/log", "there")
				if err := f.Sync(noContext); err != nil {
					t.Fatal(err)
				}
				disk.Add(fault.DiskFault{Op: fault.DiskWrite, Path: "log", Err: syscall.ENOSPC})
				err = f.Append(noContext, "/tenant/log", []byte("dropped"))
				time.Sleep(time.Minute)
				want := int64(7)
				if p.Sync.Mode == holdfast.SyncEach {
					want = 0
				}
				if n := f.Stats().NotFlushed; n != want {
					t.Fatalf("%d bytes wait, want %d: %v", n, want, err)
				}
				lost, err := f.Discard(noContext, "/tenant/log")
				if lost != want {
					t.Errorf("%d bytes are lost, want %d", lost, want)
				}
				if p.Sync.Mode == holdfast.SyncPeriodic || p.FlushEvery > 0 {
					failureOf(t, err, "/tenant/log", syscall.ENOSPC) // no call had returned it
				} else if err != nil {
					t.Error(err)
				}
				if s := f.Stats(); s.Memory != 0 || s.Streams != 0 || s.NotFlushed != 0 || s.NotDurable != 0 || f.Err() != nil {
					t.Errorf("%d bytes of memory, %d streams, %d and %d bytes wait: %v", s.Memory, s.Streams, s.NotFlushed, s.NotDurable, f.Err())
				}
				synctest.Wait()
				if len(heard) == 0 || heard[len(heard)-1].Lost != want || len(heard) > 1 && !errors.Is(heard[1], syscall.ENOSPC) {
					t.Errorf("OnError heard of %v", heard)
				}
				opened := 0
				for _, c := range disk.Calls() {
					if c.Path == "/tenant/log" && c.Op == fault.DiskOpen {
						opened++
					} else if c.Path == "/tenant/log" && c.Op == fault.DiskClose {
						opened--
					}
				}
				if opened != 0 {
					t.Error("the file is still open")
				}
				if lost, err := f.Discard(noContext, "/tenant/log"); lost != 0 || err != nil {
					t.Error(lost, err)
				}
				disk.Mend()
				time.Sleep(time.Hour)
				mustAppend(t, f, "/tenant/log", " and on")
				if err := f.Sync(noContext); err != nil {
					t.Error(err)
				}
				wantKept(t, disk, "/tenant/log", "there and on")
			})
		})
	}
}

// TestDiscardEndsAFailedSync, which is final for the path else.
func TestDiscardEndsAFailedSync(t *testing.T) {
	for _, p := range []holdfast.Policy{holdfast.Durable(), holdfast.EachDurable(), {Buffer: 64, Sync: byBytes(0, 8)}} {
		disk := fault.NewDisk(fault.DiskFault{Op: fault.DiskDatasync, Path: "a", Times: 1, Err: syscall.EIO})
		f := onDisk(t, disk, files.Options{Policy: p})
		f.Append(noContext, "/a", []byte("uncertain"))
		failureOf(t, f.Sync(noContext), "/a", syscall.EIO)
		lost, err := f.Discard(noContext, "/a")
		failureOf(t, err, "/a", syscall.EIO)
		if lost != 0 {
			t.Errorf("%d bytes are in the file, and lost", lost)
		}
		disk.RemoveAll("/a")
		mustAppend(t, f, "/a", "new")
		if err := f.Sync(noContext); err != nil {
			t.Error(err)
		}
		wantKept(t, disk, "/a", "new")
	}
}

// TestDiscardBesideOtherCalls has them wait for the path that is discarded: none waits for ever, and none
// that reports success is among the lost bytes.
func TestDiscardBesideOtherCalls(t *testing.T) {
	for _, p := range []holdfast.Policy{holdfast.Durable(), {Buffer: 64, Sync: holdfast.SyncEvery(time.Hour)}} {
		synctest.Test(t, func(t *testing.T) {
			disk := fault.NewDisk()
			f := onDisk(t, disk, files.Options{Policy: p, Retry: files.Retry{Attempts: 3, Base: time.Second}})
			mustAppend(t, f, "/a", "first")
			if err := f.Sync(noContext); err != nil {
				t.Fatal(err)
			}
			disk.Add(fault.DiskFault{Op: fault.DiskWrite, Path: "a", Err: syscall.ENOSPC, Delay: time.Second})
			var accepted atomic.Int64
			for i := range 8 {
				go func() {
					time.Sleep(time.Duration(i) * 500 * time.Millisecond)
					err := f.Append(noContext, "/a", []byte("data"))
					var failed *files.Error
					switch {
					case err == nil:
						accepted.Add(4)
					case !errors.As(err, &failed) || !isPath(failed.Path, "/a"):
						t.Error(err)
					default:
						if accepted.Add(failed.Offset); strings.Contains(err.Error(), "the path was discarded") && (failed.Offset > 0 || failed.Outcome != holdfast.OutcomeUntouched) {
							t.Errorf("Offset %d, %v: %v", failed.Offset, failed.Outcome, err)
						}
					}
				}()
			}
			time.Sleep(time.Second)
			go f.Flush(noContext)
			go f.Sync(noContext)
			time.Sleep(time.Second)
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			if lost, err := f.Discard(ctx, "/a"); lost != 0 || !errors.Is(err, context.DeadlineExceeded) {
				t.Error(lost, err)
			}
			lost, _ := f.Discard(noContext, "/a")
			time.Sleep(time.Hour)
			more, _ := f.Discard(noContext, "/a")
			if got, _ := disk.ReadFile("/a"); string(got) != "first" || lost == 0 {
				t.Errorf("the file holds %q, %d bytes are lost", got, lost)
			}
			// Some calls of the group waited for lost bytes. They said that it is in no file.
			if n := lost + more; accepted.Load() > n || accepted.Load() < n && !p.Sync.Waits() {
				t.Errorf("%d bytes were accepted, %d are lost", accepted.Load(), n)
			}
		})
	}
}

// TestDiscardThatClosesIsAlone has the close take an hour. Other calls for the path come meanwhile.
func TestDiscardThatClosesIsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := fault.NewDisk()
		f := onDisk(t, disk, files.Options{Policy: holdfast.Policy{Buffer: 64, FlushEvery: time.Minute}})
		mustAppend(t, f, "/a", "there ")
		if err := f.Flush(noContext); err != nil {
			t.Fatal(err)
		}
		disk.Add(fault.DiskFault{Op: fault.DiskClose, Path: "a", Times: 1, Delay: time.Hour})
		mustAppend(t, f, "/a", "dropped")
		var lost [2]int64
		for i := range lost {
			go func() {
				var err error
				if lost[i], err = f.Discard(noContext, "/a"); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		go f.Flush(noContext)
		time.Sleep(2 * time.Hour)
		if synctest.Wait(); lost != [2]int64{7, 0} {
			t.Errorf("%d bytes are lost, want 7 by the first call", lost)
		}
		if open := f.Stats().Open; open != 1 { // the directory
			t.Errorf("%d descriptors are open", open)
		}
		mustAppend(t, f, "/a", "and on")
		time.Sleep(time.Hour)
		wantOnDisk(t, disk, "/a", "there and on")
	})
}

// TestDiscardThatEndsWithItsContextStopsNoClock: the bytes are flushed by time, as if it had not been
// called. Release ends in time too.
func TestDiscardThatEndsWithItsContextStopsNoClock(t *testing.T) {
	check := func(t *testing.T, call func(f *files.Set, ctx context.Context) error) {
		disk := fault.NewDisk()
		f := onDisk(t, disk, files.Options{Policy: holdfast.Policy{Buffer: 64, FlushEvery: time.Minute}})
		mustAppend(t, f, "/a", "one ")
		if err := f.Flush(noContext); err != nil {
			t.Fatal(err)
		}
		disk.Add(fault.DiskFault{Op: fault.DiskClose, Path: "a", Times: 1, Delay: time.Hour})
		mustAppend(t, f, "/a", "two")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		start := time.Now()
		if failed := failureOf(t, call(f, ctx), "/a", context.DeadlineExceeded); failed.Op != "wait" {
			t.Error(failed)
		}
		if took := time.Since(start); took != 10*time.Minute {
			t.Errorf("it took %v", took)
		}
		time.Sleep(2 * time.Hour)
		wantOnDisk(t, disk, "/a", "one two")
	}
	for _, call := range []func(f *files.Set, ctx context.Context) error{
		func(f *files.Set, ctx context.Context) error {
			lost, err := f.Discard(ctx, "/a")
			if lost != 0 {
				t.Errorf("%d bytes are lost", lost)
			}
			return err
		},
		func(f *files.Set, ctx context.Context) error { return f.Release(ctx, "/a") },
	} {
		synctest.Test(t, func(t *testing.T) { check(t, call) })
	}
}

// TestDiscardMakesRoom for a call that waits for memory behind a slow disk.
func TestDiscardMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := fault.NewDisk(fault.DiskFault{Op: fault.DiskWrite, Path: "slow", Take: fault.All, Delay: time.Hour})
		f := onDisk(t, disk, files.Options{Policy: holdfast.Buffered(holdfast.KiB), Memory: 2 * holdfast.KiB, Retry: once})
		mustAppend(t, f, "/gone/log", string(make([]byte, holdfast.KiB)))
		failureOf(t, f.Flush(noContext), "/gone/log", fs.ErrNotExist)
		mustAppend(t, f, "/slow", string(make([]byte, holdfast.KiB)))
		go f.Flush(noContext)
		synctest.Wait()
		start := time.Now()
		time.AfterFunc(time.Second, func() {
			if lost, err := f.Discard(noContext, "/gone/log"); lost != 1024 || err != nil {
				t.Error(lost, err)
			}
		})
		mustAppend(t, f, "/other", "x")
		if took := time.Since(start); took != time.Second {
			t.Errorf("the call waited for %v", took)
		}
	})
}
