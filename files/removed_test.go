//go:build go1.25

package files_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

// removedFile checks that err reports a removed file, with how many bytes of earlier
// calls went with it.
func removedFile(t *testing.T, err error, path string, lost int64) {
	t.Helper()
	failed := failureOf(t, err, path, holdfast.ErrUnlinked)
	if failed.Lost != lost || failed.Offset != 0 || failed.Outcome != holdfast.OutcomeUntouched {
		t.Fatalf("%v: Lost %d, Offset %d, %v; want %d, 0, untouched", err, failed.Lost, failed.Offset, failed.Outcome, lost)
	}
}

// wantKept checks that each power cut leaves this in the file.
func wantKept(t *testing.T, disk *fault.Disk, path, want string) {
	t.Helper()
	for seed := range uint64(50) {
		if got, _ := disk.PowerCut(rand.New(rand.NewPCG(seed, 0))).File(path); string(got) != want {
			t.Fatalf("%s holds %q after a power cut, want %q", path, got, want)
		}
	}
}

// TestRemovedLogIsReportedOnceAndOpenedAnew removes a file between two Appends. The
// call whose bytes went with it, or the next one, reports that; all later calls work.
func TestRemovedLogIsReportedOnceAndOpenedAnew(t *testing.T) {
	check := func(policy string, syncs func(f *files.Set)) {
		t.Run(policy, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, err := holdfast.ParsePolicy(policy)
				if err != nil {
					t.Fatal(err)
				}
				disk := fault.NewDisk()
				f := onDisk(t, disk, files.Options{Policy: p})
				for i := range 3 { // each file takes the place of one that was removed
					mustAppend(t, f, "/app.log", "kept")
					syncs(f)
					wantOnDisk(t, disk, "/app.log", "kept")
					disk.RemoveAll("/app.log")
					err := f.Append(noContext, "/app.log", []byte("gone"))
					if p.Sync.Waits() {
						removedFile(t, err, "/app.log", 0)
						continue
					}
					if err != nil {
						t.Fatal(i, err)
					}
					syncs(f)
					removedFile(t, f.Append(noContext, "/app.log", []byte("refused")), "/app.log", 4)
				}
				mustAppend(t, f, "/app.log", "new")
				for _, err := range []error{f.Sync(noContext), f.Release(noContext, "/app.log"), f.Close()} {
					if err != nil {
						t.Error(err)
					}
				}
				wantKept(t, disk, "/app.log", "new")
			})
		})
	}
	nothing := func(*files.Set) {}
	check("sync=group", nothing)
	check("buffer=64,sync=group", nothing)
	check("sync=each", nothing)
	aSecond := func(*files.Set) { time.Sleep(time.Second) }
	check("buffer=64,sync=100ms", aSecond)
	check("buffer=64,flush=10ms,sync=100ms", aSecond)
	check("buffer=0,sync=4B", aSecond)
}

// TestCallThatSyncsReportsARemovedFile has the removal noticed by the call itself.
func TestCallThatSyncsReportsARemovedFile(t *testing.T) {
	for _, policy := range []holdfast.Policy{holdfast.Buffered(64), holdfast.Unbuffered(), {Buffer: 64, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}, {Buffer: 64, Sync: holdfast.SyncEvery(time.Hour)}} {
		calls := map[string]func(f *files.Set) error{
			"Sync": func(f *files.Set) error { return f.Sync(noContext) },
		}
		if policy.Sync.Mode != holdfast.SyncNever {
			calls["Release"] = func(f *files.Set) error { return f.Release(noContext, "/a") }
			calls["eviction"] = func(f *files.Set) error {
				for i := range 10 {
					mustAppend(t, f, fmt.Sprint("/other", i), "x")
					if err := f.Flush(noContext); err != nil {
						return err
					}
				}
				return f.Append(noContext, "/a", []byte("refused"))
			}
		}
		for name, call := range calls {
			t.Run(fmt.Sprint(policy, "/", name), func(t *testing.T) {
				disk := fault.NewDisk()
				f := onDisk(t, disk, files.Options{Policy: policy, Handles: 8})
				for _, gone := range []string{"gone", "again"} {
					mustAppend(t, f, "/a", gone)
					if err := f.Flush(noContext); err != nil {
						t.Fatal(err)
					}
					disk.RemoveAll("/a")
					removedFile(t, call(f), "/a", int64(len(gone)))
				}
				mustAppend(t, f, "/a", "new")
				if err := f.Sync(noContext); err != nil {
					t.Fatal(err)
				}
				wantKept(t, disk, "/a", "new")
			})
		}
	}
	disk := fault.NewDisk()
	f := onDisk(t, disk, files.Options{Policy: holdfast.Policy{Buffer: 64, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}})
	mustAppend(t, f, "/a", "gone")
	if err := f.Flush(noContext); err != nil {
		t.Fatal(err)
	}
	disk.RemoveAll("/a")
	removedFile(t, f.Close(), "/a", 4)
}

// TestBytesWrittenWhileARemovalIsNoticedAreCounted writes to the removed file while the
// sync that notices is under way, and in memory are more.
func TestBytesWrittenWhileARemovalIsNoticedAreCounted(t *testing.T) {
	for _, policy := range []holdfast.Policy{{Buffer: 8, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}, {Buffer: 8}} {
		t.Run(policy.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := fault.NewDisk(
					fault.DiskFault{Op: fault.DiskDatasync, Times: 1, Delay: time.Second},
					fault.DiskFault{Op: fault.DiskWrite, First: 2, Times: 1, Take: fault.All, Delay: 2 * time.Second})
				f := onDisk(t, disk, files.Options{Policy: policy})
				mustAppend(t, f, "/a", "gone")
				f.Flush(noContext)
				disk.RemoveAll("/a")
				synced := make(chan error)
				go func() { synced <- f.Sync(noContext) }()
				synctest.Wait() // it syncs
				go func() {
					mustAppend(t, f, "/a", "far behind a full buffer") // ends after the sync
				}()
				removedFile(t, <-synced, "/a", 4)
				time.Sleep(time.Minute)
				removedFile(t, f.Append(noContext, "/a", []byte("refused")), "/a", 24)
				mustAppend(t, f, "/a", "new")
				if err := f.Sync(noContext); err != nil {
					t.Fatal(err)
				}
				wantKept(t, disk, "/a", "new")
			})
		})
	}
}

// TestRemovedFileOfAnEndedCallIsReported has a call end with its context before the sync
// that notices: a later call reports its bytes, though the policy acknowledges each.
func TestRemovedFileOfAnEndedCallIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := fault.NewDisk(fault.DiskFault{Op: fault.DiskDatasync, First: 2, Times: 1, Delay: time.Second})
		f := onDisk(t, disk, files.Options{Policy: holdfast.Durable()})
		mustAppend(t, f, "/a", "kept")
		disk.RemoveAll("/a")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		failed := failureOf(t, f.Append(ctx, "/a", []byte("gone")), "/a", context.DeadlineExceeded)
		if failed.Outcome != holdfast.OutcomeUncertain || failed.Offset != 4 {
			t.Fatalf("%v, Offset %d", failed.Outcome, failed.Offset)
		}
		removedFile(t, f.Sync(noContext), "/a", 4)
		mustAppend(t, f, "/a", "new")
		wantKept(t, disk, "/a", "new")
	})
}

// TestRemovedDirectoryIsMadeAnewForItsLog removes the file with its directory.
func TestRemovedDirectoryIsMadeAnewForItsLog(t *testing.T) {
	disk := fault.NewDisk()
	f := onDisk(t, disk, files.Options{Policy: holdfast.Durable(), MkdirAll: true})
	for range 3 {
		mustAppend(t, f, "/d/a", "kept")
		disk.RemoveAll("/d")
		removedFile(t, f.Append(noContext, "/d/a", []byte("gone")), "/d/a", 0)
	}
	mustAppend(t, f, "/d/a", "new")
	wantKept(t, disk, "/d/a", "new")
}

// TestRemovedFilesLoseNoAcknowledgedRecord lets goroutines append records, and append the records
// of a removed file again, while the file is removed again and again. The last file holds the end
// of each goroutine's records, each once and in order.
func TestRemovedFilesLoseNoAcknowledgedRecord(t *testing.T) {
	for _, policy := range []holdfast.Policy{holdfast.Durable(), holdfast.EachDurable(), {Buffer: 64, Sync: holdfast.Sync{Mode: holdfast.SyncGroup}}} {
		for seed := range uint64(10) {
			t.Run(fmt.Sprint(policy, "/", seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { appendWhileFilesAreRemoved(t, policy, seed) })
			})
		}
	}
}

func appendWhileFilesAreRemoved(t *testing.T, policy holdfast.Policy, seed uint64) {
	disk := fault.NewDisk(
		fault.DiskFault{Op: fault.DiskDatasync, Delay: time.Millisecond},
		fault.DiskFault{Op: fault.DiskSync, Delay: time.Millisecond},
		fault.DiskFault{Op: fault.DiskWrite, Take: fault.All, Delay: 100 * time.Microsecond})
	f := onDisk(t, disk, files.Options{Policy: policy, Handles: 6})
	const goroutines, records = 4, 60
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for i := range records {
				line := fmt.Appendf(nil, "%d %d\n", g, i)
				for err := f.Append(noContext, "/a", line); err != nil; err = f.Append(noContext, "/a", line) {
					removedFile(t, err, "/a", 0)
				}
			}
		})
	}
	all.Go(func() {
		r := rand.New(rand.NewPCG(seed, 1))
		for range 10 {
			time.Sleep(time.Duration(r.IntN(8000)) * time.Microsecond)
			disk.RemoveAll("/a")
		}
	})
	all.Wait()
	got, _ := disk.ReadFile("/a")
	wantKept(t, disk, "/a", string(got))
	next := map[int]int{}
	for line := range strings.Lines(string(got)) {
		var g, i int
		fmt.Sscan(line, &g, &i)
		if n, ok := next[g]; ok && i != n {
			t.Fatalf("goroutine %d: record %d comes after %d", g, i, n-1)
		}
		next[g] = i + 1
	}
	for g, n := range next {
		if n != records {
			t.Errorf("goroutine %d: the last of %d records is %d", g, records, n-1)
		}
	}
}

// TestRotationThatRemovesTheRenamedFileGoesOn does what logrotate does without a Release:
// it renames the log, compresses it, and removes it.
func TestRotationThatRemovesTheRenamedFileGoesOn(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("windows does not rename a file that is open")
	}
	for _, policy := range []holdfast.Policy{holdfast.Durable(), holdfast.EachDurable(), {Buffer: holdfast.KiB, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}} {
		t.Run(policy.String(), func(t *testing.T) {
			dir := t.TempDir()
			path, archive := filepath.Join(dir, "app.log"), ""
			f := appending(t, files.Options{Policy: policy})
			reports := 0
			for i := range 40 {
				line := fmt.Sprintln("line", i)
				err := f.Append(noContext, path, []byte(line))
				if errors.Is(err, holdfast.ErrUnlinked) {
					reports++
					err = f.Append(noContext, path, []byte(line))
				}
				if err == nil && !policy.Sync.Waits() {
					err = f.Sync(noContext)
				}
				if err != nil {
					t.Fatal(err)
				}
				if i%10 == 9 {
					if err := os.Rename(path, path+".1"); err != nil {
						t.Fatal(err)
					}
					archive += string(mustRead(t, path+".1"))
					if err := os.Remove(path + ".1"); err != nil {
						t.Fatal(err)
					}
				}
				if i%10 == 9 && !policy.Sync.Waits() { // the next Sync says so, and not of that line
					mustAppend(t, f, path, "lost\n")
					removedFile(t, f.Sync(noContext), path, 5)
					reports++
				}
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			want := ""
			for i := range 40 {
				want += fmt.Sprintln("line", i)
			}
			if archive != want {
				t.Errorf("the archives hold\n%s", archive)
			}
			if want := 3; reports != want && reports != want+1 {
				t.Errorf("%d reports", reports)
			}
		})
	}
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestBytesOfARemovedFileAreLostOnce removes the file twice, and the path has bytes in memory each time.
func TestBytesOfARemovedFileAreLostOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := fault.NewDisk(fault.DiskFault{Op: fault.DiskDatasync, Delay: time.Second})
		f := onDisk(t, disk, files.Options{Policy: holdfast.Policy{Buffer: 64, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}})
		var lost int64
		f.OnError(func(e *files.Error) { lost += e.Lost })
		mustAppend(t, f, "/a", "gone")
		for _, next := range []string{"again", "new"} {
			if err := f.Flush(noContext); err != nil {
				t.Fatal(err)
			}
			disk.RemoveAll("/a")
			time.AfterFunc(time.Millisecond, func() { mustAppend(t, f, "/a", next) })
			if next == "again" {
				removedFile(t, f.Sync(noContext), "/a", 4)
			} else {
				removedFile(t, f.Sync(noContext), "/a", 5)
			}
		}
		if err := f.Sync(noContext); err != nil {
			t.Fatal(err)
		}
		wantKept(t, disk, "/a", "new")
		if synctest.Wait(); lost != 9 {
			t.Errorf("OnError heard of %d lost bytes", lost)
		}
	})
}
