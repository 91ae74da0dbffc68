//go:build go1.25

package files_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/handles"
)

// TestByteAcceptedDuringASyncByTimeIsSyncedInTime accepts a byte while the sync by time
// is under way, and none after it: the byte starts a period of its own.
func TestByteAcceptedDuringASyncByTimeIsSyncedInTime(t *testing.T) {
	for _, op := range []fault.DiskOp{fault.DiskDatasync, fault.DiskSync} { // of the file, of its name
		for after := range 6 {
			t.Run(fmt.Sprint(op, "/", after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					disk := fault.NewDisk(fault.DiskFault{Op: op, Times: 1, Delay: 300 * time.Millisecond})
					f := onDisk(t, disk, files.Options{Policy: holdfast.Policy{Buffer: 64, Sync: holdfast.SyncEvery(100 * time.Millisecond)}})
					mustAppend(t, f, "/a", "first")
					time.Sleep(time.Duration(110+50*after) * time.Millisecond) // the sync has begun at 100 ms
					mustAppend(t, f, "/a", "second")
					// The sync under way ends at 400 ms; the next one is due by then or 100 ms after the Append.
					time.Sleep(600 * time.Millisecond)
					wantKept(t, disk, "/a", "firstsecond")
				})
			})
		}
	}
}

// startsOfSyncs returns when each sync of a file's bytes started, counted from a time.
func startsOfSyncs(disk *fault.Disk, from time.Time) (at []string) {
	for _, c := range disk.Calls() {
		if c.Op == fault.DiskDatasync {
			at = append(at, fmt.Sprint(c.Path, " ", c.Start.Sub(from)))
		}
	}
	slices.Sort(at)
	return at
}

func byBytes(every time.Duration, bytes holdfast.Size) holdfast.Sync {
	return holdfast.Sync{Mode: holdfast.SyncPeriodic, Every: every, Bytes: bytes}
}

// TestSyncByBytesCountsAllPaths appends 4 bytes each second, to three paths in turn.
func TestSyncByBytesCountsAllPaths(t *testing.T) {
	check := func(p holdfast.Policy, took time.Duration, want ...string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			disk := fault.NewDisk(fault.DiskFault{Op: fault.DiskDatasync, Delay: took})
			f := onDisk(t, disk, files.Options{Policy: p, Handles: 8})
			start := time.Now()
			for i := range 8 {
				mustAppend(t, f, fmt.Sprint("/", "abc"[i%3:i%3+1]), "four")
				time.Sleep(time.Second)
			}
			time.Sleep(time.Hour)
			if got := startsOfSyncs(disk, start); !slices.Equal(got, want) {
				t.Errorf("%v, syncs of %v:\n got %q\nwant %q", p, took, got, want)
			}
			wantKept(t, disk, "/c", "fourfour") // the last that a sync covers
		})
	}
	const s = time.Second
	check(holdfast.Policy{Sync: byBytes(0, 12)}, 0, "/a 2s", "/a 5s", "/b 2s", "/b 5s", "/c 2s", "/c 5s")
	check(holdfast.Policy{Sync: byBytes(0, 11)}, 0, "/a 2s", "/a 5s", "/b 2s", "/b 5s", "/c 2s", "/c 5s")
	check(holdfast.Policy{Buffer: 64, FlushBytes: 4, Sync: byBytes(0, 12)}, 0, "/a 2s", "/a 5s", "/b 2s", "/b 5s", "/c 2s", "/c 5s")
	check(holdfast.Policy{Buffer: 64, FlushEvery: 1, Sync: byBytes(0, 12)}, 0, "/a 2.000000001s", "/a 5.000000001s", "/b 2.000000001s", "/b 5.000000001s", "/c 2.000000001s", "/c 5.000000001s")
	// Due while one runs: right behind it, if it is due still.
	check(holdfast.Policy{Sync: byBytes(0, 12)}, 3*s+s/2, "/a 2s", "/a 5.5s", "/b 2s", "/b 5.5s", "/c 2s", "/c 5.5s")
	check(holdfast.Policy{Sync: byBytes(0, 12)}, 10*s, "/a 12s", "/a 2s", "/b 12s", "/b 2s", "/c 12s", "/c 2s")
	// Whichever comes first.
	check(holdfast.Policy{Sync: byBytes(1500*time.Millisecond, 12)}, 0,
		"/a 1.5s", "/a 3.5s", "/a 7.5s", "/b 1.5s", "/b 5.5s", "/b 7.5s", "/c 3.5s", "/c 5.5s")
}

// TestFailedSyncByBytesIsNotMadeAgain has the sync of one path fail: it is final for the
// path, and its bytes are counted no more.
func TestFailedSyncByBytesIsNotMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := fault.NewDisk(fault.DiskFault{Op: fault.DiskDatasync, Path: "/a", Err: syscall.EIO})
		f := onDisk(t, disk, files.Options{Policy: holdfast.Policy{Sync: byBytes(0, 8)}, Handles: 8})
		start := time.Now()
		mustAppend(t, f, "/a", "eight or")
		time.Sleep(time.Second)
		failureOf(t, f.Append(noContext, "/a", []byte("more")), "/a", syscall.EIO)
		mustAppend(t, f, "/b", "four")
		time.Sleep(time.Second)
		mustAppend(t, f, "/b", "four")
		time.Sleep(time.Minute)
		if got := startsOfSyncs(disk, start); !slices.Equal(got, []string{"/a 0s", "/b 2s"}) {
			t.Errorf("syncs: %q", got)
		}
		wantKept(t, disk, "/b", "fourfour")
	})
}

// TestFlushByBytesBeginsWithTheByteThatIsTooMany has a write take a minute: the bytes that
// come meanwhile are taken, and flushed when it is done.
func TestFlushByBytesBeginsWithTheByteThatIsTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := fault.NewDisk(fault.DiskFault{Op: fault.DiskWrite, Take: fault.All, Delay: time.Minute})
		f := onDisk(t, disk, files.Options{Policy: holdfast.Policy{Buffer: holdfast.KiB, FlushBytes: 8}})
		start := time.Now()
		mustAppend(t, f, "/a", "four")
		time.Sleep(time.Second)
		go f.Append(noContext, "/a", []byte("four")) // which flushes
		time.Sleep(time.Second)
		for range 100 {
			mustAppend(t, f, "/a", "four")
		}
		if d := time.Since(start); d != 2*time.Second {
			t.Errorf("appends took %v beside a write of a minute", d-2*time.Second)
		}
		time.Sleep(time.Hour)
		var writes []string
		for _, c := range disk.Calls() {
			if c.Op == fault.DiskWrite {
				writes = append(writes, fmt.Sprint(c.Bytes, " at ", c.Start.Sub(start)))
			}
		}
		if want := []string{"8 at 1s", "400 at 1m1s"}; !slices.Equal(writes, want) {
			t.Errorf("writes of %q, want %q", writes, want)
		}
	})
}

// uncertainAndLost checks that a call reported its four bytes "mine" as uncertain, and
// that they are not durable. They are in the file, and some power cut takes them.
func uncertainAndLost(t *testing.T, disk *fault.Disk, err error, cause error) {
	t.Helper()
	kept := true
	for seed := range uint64(50) {
		got, _ := disk.PowerCut(rand.New(rand.NewPCG(seed, 0))).File("/mine")
		kept = kept && strings.Contains(string(got), "mine")
	}
	if got, _ := disk.ReadFile("/mine"); !strings.Contains(string(got), "mine") || kept {
		t.Fatalf("the test proves nothing: the file holds %q, each power cut keeps it: %v", got, kept)
	}
	failed := failureOf(t, err, "/mine", cause)
	if failed.Outcome != holdfast.OutcomeUncertain || failed.Offset != 4 {
		t.Errorf("%v at byte %d, %v", failed.Outcome, failed.Offset, err)
	}
}

// TestAppendWhoseContextEndsItsStepIsNotAcknowledged ends the context of an Append whose
// bytes are flushed. The Append waits for another call's sync of the file, or for its turn
// to sync the name.
func TestAppendWhoseContextEndsItsStepIsNotAcknowledged(t *testing.T) {
	for _, p := range []holdfast.Policy{holdfast.Durable(), holdfast.EachDurable(), {Buffer: 64, Sync: holdfast.Sync{Mode: holdfast.SyncGroup}}} {
		t.Run(p.String()+"/file", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := fault.NewDisk(fault.DiskFault{Op: fault.DiskDatasync, Delay: time.Second})
				f := onDisk(t, disk, files.Options{Policy: p})
				go f.Append(noContext, "/mine", []byte("other"))
				synctest.Wait() // it syncs
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				err := f.Append(ctx, "/mine", []byte("mine"))
				if p.Sync.Mode == holdfast.SyncGroup { // the bytes wait for the next step
					f.Flush(noContext)
				}
				uncertainAndLost(t, disk, err, context.DeadlineExceeded)
			})
		})
		t.Run(p.String()+"/name", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := fault.NewDisk(
					fault.DiskFault{Op: fault.DiskDatasync, Path: "mine", Delay: 100 * time.Millisecond},
					fault.DiskFault{Op: fault.DiskWrite, Path: "whole", Take: fault.All, Delay: time.Minute})
				f := onDisk(t, disk, files.Options{Policy: p, Handles: handles.LeastHandles}) // one turn
				go func() {
					time.Sleep(50 * time.Millisecond)
					f.WriteFile(noContext, "/whole", []byte("x"), files.Create) // which has the turn for a minute
				}()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				uncertainAndLost(t, disk, f.Append(ctx, "/mine", []byte("mine")), context.DeadlineExceeded)
			})
		})
	}
}

// TestFailureOfOneStreamOfAStepIsOfThatAlone has two streams share a step, in which the
// sync of one of them fails.
func TestFailureOfOneStreamOfAStepIsOfThatAlone(t *testing.T) {
	for _, failing := range []string{"/a", "/b"} {
		synctest.Test(t, func(t *testing.T) {
			disk := fault.NewDisk(
				fault.DiskFault{Op: fault.DiskDatasync, Path: "first", Delay: time.Second},
				fault.DiskFault{Op: fault.DiskDatasync, Path: failing, Err: syscall.EIO})
			f := onDisk(t, disk, files.Options{Policy: holdfast.Durable()})
			errs := map[string]error{}
			var mu sync.Mutex
			var all sync.WaitGroup
			for _, path := range []string{"/first", "/a", "/b"} {
				all.Go(func() {
					err := f.Append(noContext, path, []byte("x"))
					mu.Lock()
					errs[path] = err
					mu.Unlock()
				})
				synctest.Wait() // later ones share the step after the first one's
			}
			all.Wait()
			for path, err := range errs {
				if path != failing {
					if err != nil {
						t.Errorf("%s: %v", path, err)
					}
					wantKept(t, disk, path, "x")
					continue
				}
				failed := failureOf(t, err, path, syscall.EIO)
				if failed.Outcome != holdfast.OutcomeUncertain || failed.Offset != 1 {
					t.Errorf("%v at byte %d, %v", failed.Outcome, failed.Offset, err)
				}
			}
		})
	}
}

// TestEachClockRunsAgainAfterAFailure has a step of the background fail once, and makes no call after
// that: what was accepted is durable in time all the same.
func TestEachClockRunsAgainAfterAFailure(t *testing.T) {
	check := func(name string, failing func(t *testing.T, disk *fault.Disk, f *files.Set)) {
		for _, policy := range []string{"buffer=64,sync=1s", "buffer=64,flush=100ms,sync=1s", "buffer=0,sync=1s", "buffer=64,sync=1s/8B", "buffer=64,flush=4B,sync=1s/8B"} {
			t.Run(name+"/"+policy, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p, err := holdfast.ParsePolicy(policy)
					if err != nil {
						t.Fatal(err)
					}
					disk := fault.NewDisk()
					disk.MkdirAll("/d")
					f := onDisk(t, disk, files.Options{Policy: p, Retry: once})
					heard := 0
					f.OnError(func(e *files.Error) { heard++ })
					failing(t, disk, f)
					if synctest.Wait(); heard != 1 {
						t.Errorf("OnError was called %d times", heard)
					}
					disk.Mend()
					time.Sleep(2500 * time.Millisecond)
					wantKept(t, disk, "/d/a", "first")
					if f.Stats().NotDurable != 0 {
						t.Errorf("%d bytes are not durable", f.Stats().NotDurable)
					}
				})
			})
		}
	}
	check("write", func(t *testing.T, disk *fault.Disk, f *files.Set) {
		disk.Add(fault.DiskFault{Op: fault.DiskWrite, Err: syscall.ENOSPC})
		if err := f.Append(noContext, "/d/a", []byte("first")); err != nil { // it has no buffer
			disk.Mend()
			mustAppend(t, f, "/d/a", "first")
		}
		time.Sleep(5 * time.Second)
		f.Sync(noContext)
	})
	check("directory of the name", func(t *testing.T, disk *fault.Disk, f *files.Set) {
		mustAppend(t, f, "/d/a", "first")
		if err := f.Flush(noContext); err != nil {
			t.Fatal(err)
		}
		disk.Add(fault.DiskFault{Op: fault.DiskStatPath, Err: syscall.ENOMEM})
		disk.Add(fault.DiskFault{Op: fault.DiskOpenDir, Err: syscall.ENOMEM})
		time.Sleep(5 * time.Second)
	})
	check("directory of the name, in a call", func(t *testing.T, disk *fault.Disk, f *files.Set) {
		mustAppend(t, f, "/d/a", "first")
		if err := f.Flush(noContext); err != nil {
			t.Fatal(err)
		}
		disk.Add(fault.DiskFault{Op: fault.DiskStatPath, Err: syscall.ENOMEM})
		disk.Add(fault.DiskFault{Op: fault.DiskOpenDir, Err: syscall.ENOMEM})
		time.Sleep(5 * time.Second)
		failureOf(t, f.Sync(noContext), "/d", syscall.ENOMEM)
	})
}

// TestSyncByBytesStopsNoClockOfNames has files synced to make room, and their names not. Then a sync by
// bytes of another file covers all bytes that there are.
func TestSyncByBytesStopsNoClockOfNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := fault.NewDisk()
		f := onDisk(t, disk, files.Options{Policy: holdfast.Policy{Sync: byBytes(time.Second, 100)}, Handles: 16})
		disk.SetSyncsAll("/", false) // that would make their names durable too
		var paths []string
		for i := range 12 {
			disk.MkdirAll(fmt.Sprint("/", i))
			paths = append(paths, fmt.Sprintf("/%d/a", i))
		}
		for _, path := range paths {
			mustAppend(t, f, path, "x")
		}
		if n := f.Stats().NotDurable; n == 12 {
			t.Fatal("no file was synced to make room")
		}
		mustAppend(t, f, "/by bytes", strings.Repeat("x", 100))
		time.Sleep(1500 * time.Millisecond)
		for _, path := range paths {
			wantKept(t, disk, path, "x")
		}
	})
}

// TestNameThatCantBeSyncedIsReported by the next call for its path, once, where the background tried. It
// tries at each period, and with a bound in bytes at the flush that makes the sync due.
func TestNameThatCantBeSyncedIsReported(t *testing.T) {
	for _, bytes := range []holdfast.Size{0, 5, 9} {
		synctest.Test(t, func(t *testing.T) { nameCantBeSynced(t, bytes) })
	}
}

func nameCantBeSynced(t *testing.T, bytes holdfast.Size) {
	disk := fault.NewDisk()
	disk.MkdirAll("/d")
	f := onDisk(t, disk, files.Options{Policy: holdfast.Policy{Buffer: 64, Sync: byBytes(time.Second, bytes)}, Retry: once})
	mustAppend(t, f, "/d/a", "fir")
	if err := f.Flush(noContext); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, f, "/d/a", "st")
	disk.Add(fault.DiskFault{Op: fault.DiskStatPath, Err: syscall.ENOMEM})
	disk.Add(fault.DiskFault{Op: fault.DiskOpenDir, Err: syscall.ENOMEM})
	disk.Watch(func(fault.DiskCall) {
		if disk.Count(fault.DiskOpenDir) > 100 {
			disk.Mend()
		}
	})
	time.Sleep(5500 * time.Millisecond)
	if n := disk.Count(fault.DiskOpenDir); n > 15 {
		t.Errorf("the directory was opened %d times", n)
	}
	failureOf(t, f.Append(noContext, "/d/a", []byte("refused")), "/d", syscall.ENOMEM)
	mustAppend(t, f, "/d/a", " and on")
	disk.Mend()
	time.Sleep(5 * time.Second)
	wantKept(t, disk, "/d/a", "first and on")
}

// TestBytesOfACallThatGaveUpAreFlushedInTime has their flush fall due while the call waits for a
// descriptor, and the clock run for the bytes of another path then.
func TestBytesOfACallThatGaveUpAreFlushedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := fault.NewDisk(fault.DiskFault{Op: fault.DiskWrite, Path: "whole", Take: fault.All, Delay: 3 * time.Second})
		f := onDisk(t, disk, files.Options{Policy: holdfast.Policy{Buffer: 64, FlushEvery: 10 * time.Second}, Handles: handles.LeastHandles}) // one turn
		start := time.Now()
		mustAppend(t, f, "/a", "x")
		time.Sleep(8 * time.Second)
		go f.WriteFile(noContext, "/whole", []byte("x"), files.Create)
		time.Sleep(time.Second)
		mustAppend(t, f, "/b", "x")
		time.Sleep(500 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		failureOf(t, f.Release(ctx, "/a"), "/a", context.DeadlineExceeded)
		time.Sleep(time.Minute)
		var at []string
		for _, c := range disk.Calls() {
			if c.Op == fault.DiskWrite {
				at = append(at, fmt.Sprint(c.Path, " ", c.Start.Sub(start)))
			}
		}
		if want := []string{"/whole 8s", "/a 11s", "/b 19s"}; !slices.Equal(at, want) {
			t.Errorf("writes of %q, want %q", at, want)
		}
	})
}

// TestBytesThatComeDuringAFlushAreFlushedInTime: meanwhile the clock runs for another path's bytes.
func TestBytesThatComeDuringAFlushAreFlushedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := fault.NewDisk(fault.DiskFault{Op: fault.DiskWrite, Path: "a", Times: 1, Take: fault.All, Delay: 10500 * time.Millisecond})
		f := onDisk(t, disk, files.Options{Policy: holdfast.Policy{Buffer: 64, FlushEvery: 10 * time.Second}})
		start := time.Now()
		mustAppend(t, f, "/a", "x")
		go f.Flush(noContext)
		time.Sleep(time.Second)
		mustAppend(t, f, "/a", "x")
		time.Sleep(time.Second)
		mustAppend(t, f, "/b", "x")
		time.Sleep(time.Minute)
		var at []string
		for _, c := range disk.Calls() {
			if c.Op == fault.DiskWrite {
				at = append(at, fmt.Sprint(c.Path, " ", c.Start.Sub(start)))
			}
		}
		if want := []string{"/a 0s", "/a 11s", "/b 12s"}; !slices.Equal(at, want) {
			t.Errorf("writes of %q, want %q", at, want)
		}
	})
}

// TestSyncByBytesStopsNoClockOfOtherBytes: bytes of one path wait, are being flushed, or could not be, when a
// sync by bytes of another path begins. No byte comes after that.
func TestSyncByBytesStopsNoClockOfOtherBytes(t *testing.T) {
	check := func(name string, policy holdfast.Policy, x fault.DiskFault, other func(f *files.Set)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := fault.NewDisk(x)
				f := onDisk(t, disk, files.Options{Policy: policy, Retry: once})
				mustAppend(t, f, "/other", "x")
				go other(f)
				synctest.Wait()
				mustAppend(t, f, "/by bytes", "far more than eight bytes, and than the buffer, which is of sixty-four bytes")
				synctest.Wait()
				if disk.Count(fault.DiskDatasync) != 1 {
					t.Error("no sync by bytes has begun")
				}
				time.Sleep(30 * time.Second)
				wantKept(t, disk, "/other", "x")
			})
		})
	}
	policy := holdfast.Policy{Buffer: 64, Sync: byBytes(10*time.Second, 8)}
	flush := func(f *files.Set) { f.Flush(noContext) }
	check("waits", policy, fault.DiskFault{Op: fault.DiskRead}, func(f *files.Set) {})
	check("flight", policy, fault.DiskFault{Op: fault.DiskWrite, Path: "other", Take: fault.All, Delay: 5 * time.Second}, flush)
	check("stuck", policy, fault.DiskFault{Op: fault.DiskWrite, Path: "other", Times: 1, Err: syscall.ENOSPC}, flush)
}

// TestSyncByBytesCountsNamesThatAreNotDurable appends a byte to each of many files. Most are synced and
// closed to make room, and forgotten, before a sync by bytes is due for the bytes that are left.
func TestSyncByBytesCountsNamesThatAreNotDurable(t *testing.T) {
	for _, buffer := range []holdfast.Size{0, 64} {
		synctest.Test(t, func(t *testing.T) {
			disk := fault.NewDisk()
			disk.SetSyncsAll("/", false) // that would make their names durable too
			f := onDisk(t, disk, files.Options{Policy: holdfast.Policy{Buffer: buffer, FlushBytes: min(buffer, 1), Sync: byBytes(0, 50)}, Handles: 16})
			var paths []string
			for i := range 100 {
				disk.MkdirAll(fmt.Sprint("/", i))
				paths = append(paths, fmt.Sprintf("/%d/a", i))
			}
			syncs := 0 // of directories, by the first sync by bytes
			for n, path := range paths {
				mustAppend(t, f, path, "x")
				synctest.Wait()
				switch now := disk.Count(fault.DiskSync); {
				case n == 51:
					syncs = now
				case n > 51 && n < 99 && now != syncs:
					t.Fatalf("a sync by bytes began %d bytes after another", n-49)
				}
				image, lost := disk.PowerCut(rand.New(rand.NewPCG(uint64(n), 0))), 0
				for _, path := range paths[:n+1] {
					if got, _ := image.File(path); len(got) == 0 {
						lost++
					}
				}
				if lost >= 50 {
					t.Fatalf("a power cut after %d bytes takes %d of them", n+1, lost)
				}
			}
		})
	}
}
