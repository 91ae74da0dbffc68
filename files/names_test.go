//go:build go1.25

package files_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
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

// reportLate has every failed sync of a directory take a millisecond, from the loss
// of the names on the disk to its report.
func reportLate(disk *fault.Disk) {
	disk.Watch(func(c fault.DiskCall) {
		if c.Op == fault.DiskSync && c.Err != nil {
			time.Sleep(time.Millisecond)
		}
	})
}

// isOf reports whether one of the joined errors is of a path.
func isOf(err error, path string) bool {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return slices.ContainsFunc(all.Unwrap(), func(err error) bool { return isOf(err, path) })
	}
	var failed *files.Error
	return errors.As(err, &failed) && isPath(failed.Path, path)
}

// wantSafe holds what a call said of durable files, by the names of others, against what
// power cuts leave.
func wantSafe(t *testing.T, disk *fault.Disk, said error, paths ...string) {
	t.Helper()
	for seed := range uint64(20) {
		image := disk.PowerCut(rand.New(rand.NewPCG(seed, 0)))
		for _, path := range paths {
			if isOf(said, path) {
				continue
			}
			if data, ok := image.File(path); !ok || string(data) != "x" {
				t.Fatalf("%s is %q, %v after a power cut, and durable, as was said", path, data, ok)
			}
		}
	}
}

// TestSyncBesideAFailedOneOfTheDirectoryIsNoProof has two streams sync their directory at the
// same time. The first sync loses the names of both, and the kernel reports it to that one alone.
func TestSyncBesideAFailedOneOfTheDirectoryIsNoProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := fault.NewDisk(
			fault.DiskFault{Op: fault.DiskDatasync, Path: "early", Delay: 5 * time.Millisecond},
			fault.DiskFault{Op: fault.DiskSync, Times: 1, Delay: 10 * time.Millisecond, Err: syscall.EIO},
			fault.DiskFault{Op: fault.DiskSync, First: 2, Delay: 5500 * time.Microsecond})
		reportLate(disk)
		f := onDisk(t, disk, files.Options{Policy: holdfast.EachDurable(), Handles: 64})
		var all sync.WaitGroup
		all.Go(func() { // syncs the directory from 5 ms on
			wantSafe(t, disk, f.Append(noContext, "/early", []byte("x")), "/early")
		})
		synctest.Wait()
		all.Go(func() { // syncs the directory from 0 to 10 ms, and knows of the failure at 11 ms
			failureOf(t, f.Append(noContext, "/late", []byte("x")), "/late", syscall.EIO)
		})
		all.Wait()
	})
}

// TestSyncOfAllBesideAFailedOneOfTheDirectoryIsNoProof syncs the whole file system while a
// directory's sync is failing.
func TestSyncOfAllBesideAFailedOneOfTheDirectoryIsNoProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := fault.NewDisk(
			fault.DiskFault{Op: fault.DiskDatasync, Times: 1, Delay: 2 * time.Millisecond},
			fault.DiskFault{Op: fault.DiskSync, Times: 1, Delay: 10 * time.Millisecond, Err: syscall.EIO},
			fault.DiskFault{Op: fault.DiskSyncAll, Delay: 7500 * time.Microsecond})
		disk.SetSyncsAll("/", true)
		reportLate(disk)
		f := onDisk(t, disk, files.Options{Policy: holdfast.Policy{Buffer: holdfast.KiB, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}, Handles: 64})
		mustAppend(t, f, "/0", "x")
		var all sync.WaitGroup
		all.Go(func() { // syncs the directory from 2 to 12 ms, and knows of the failure at 13 ms
			failureOf(t, f.Sync(noContext), "/0", syscall.EIO)
		})
		synctest.Wait()
		var paths []string
		for i := range 10 {
			paths = append(paths, fmt.Sprint("/other", i))
			mustAppend(t, f, paths[i], "x")
		}
		if err := f.Flush(noContext); err != nil {
			t.Error(err)
		}
		time.Sleep(5 * time.Millisecond)
		err := f.Sync(noContext) // all together, which would be from 5 to 12.5 ms
		wantSafe(t, disk, err, paths...)
		all.Wait()
		if disk.Count(fault.DiskSyncAll) == 0 {
			t.Error("nothing was synced together")
		}
	})
}

// TestNamesOfForgottenFilesAreLostForEveryCall appends to more files than may be open, so
// that some are forgotten, and has the sync of their directory fail once.
func TestNamesOfForgottenFilesAreLostForEveryCall(t *testing.T) {
	disk := fault.NewDisk(fault.DiskFault{Op: fault.DiskSync, Times: 1, Err: syscall.EIO})
	f := onDisk(t, disk, files.Options{Policy: holdfast.Policy{Buffer: holdfast.KiB, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}, Handles: handles.LeastHandles})
	for i := range 20 {
		mustAppend(t, f, fmt.Sprint("/", i), "x")
	}
	if err := f.Flush(noContext); err != nil {
		t.Fatal(err)
	}
	forgotten := "/0"
	for i := 1; f.Knows(forgotten); i++ {
		forgotten = fmt.Sprint("/", i)
	}
	wantReported := func(what string, err error, path string) {
		t.Helper()
		if !isOf(err, path) {
			t.Errorf("%s says %v, nothing of %s", what, err, path)
		}
	}
	for range 3 {
		wantReported("Sync", f.Sync(noContext), "/")
		wantReported("Flush", f.Flush(noContext), "/")
		wantReported("Release", f.Release(noContext, forgotten), "/")
	}
	mustAppend(t, f, forgotten, "y")
	wantReported("Sync", f.Sync(noContext), forgotten)
	mustAppend(t, f, "/new", "y")
	err := f.Close()
	wantReported("Close", err, "/")
	if isOf(err, "/new") {
		t.Errorf("Close says %v, though the name of /new came later", err)
	}
}

// TestNamesOfFilesThatWereLeftAreLostForEveryCall is the same under sync=never, where
// it is not kept which files were closed.
func TestNamesOfFilesThatWereLeftAreLostForEveryCall(t *testing.T) {
	disk := fault.NewDisk(fault.DiskFault{Op: fault.DiskSync, Times: 1, Err: syscall.EIO})
	disk.SetSyncsAll("/", true)
	f := onDisk(t, disk, files.Options{Policy: holdfast.Buffered(holdfast.KiB), Handles: handles.LeastHandles})
	for i := range 20 {
		mustAppend(t, f, fmt.Sprint("/", i), "x")
	}
	if err := f.Flush(noContext); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := f.Sync(noContext); !isOf(err, "/") {
			t.Errorf("Sync says %v, nothing of /", err)
		}
	}
}

// TestSyncsOfADirectoryAreShared writes one file, and many while the directory's sync is under
// way for it, which begins before their names are there.
func TestSyncsOfADirectoryAreShared(t *testing.T) {
	for _, c := range []struct {
		name  string
		cause error // of the sync that is shared
	}{{"and cover all", nil}, {"and fail for all", syscall.EIO}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := fault.NewDisk(
					fault.DiskFault{Op: fault.DiskSync, Path: "/", First: 2, Times: 1, Delay: 10 * time.Millisecond, Err: c.cause},
					fault.DiskFault{Op: fault.DiskSync, Path: "/", Delay: 10 * time.Millisecond})
				f := onDisk(t, disk, files.Options{Policy: holdfast.EachDurable(), Handles: 64})
				var all sync.WaitGroup
				write := func(path string, cause error) {
					all.Go(func() {
						_, err := f.WriteFile(noContext, path, []byte("x"), files.Create)
						if !errors.Is(err, cause) {
							t.Errorf("%s: got %v, want %v", path, err, cause)
						}
						wantSafe(t, disk, err, path)
					})
				}
				write("/first", nil)
				synctest.Wait()
				for i := range 16 {
					write(fmt.Sprint("/", i), c.cause)
				}
				all.Wait()
				if n := syncsOf(disk, "/"); n != 2 {
					t.Errorf("the directory was synced %d times, want 2", n)
				}
			})
		})
	}
}

func syncsOf(disk *fault.Disk, path string) (n int) {
	for _, c := range disk.Calls() {
		if c.Op == fault.DiskSync && c.Path == path {
			n++
		}
	}
	return n
}

// TestDirectoriesOfStreamsAreSyncedAtOnce appends to a new file in each of some directories: their syncs share the
// commits of the journal, and take as long as one.
func TestDirectoriesOfStreamsAreSyncedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := fault.NewDisk(fault.DiskFault{Op: fault.DiskSync, Delay: 10 * time.Millisecond})
		f := onDisk(t, disk, files.Options{Policy: holdfast.Policy{Buffer: holdfast.KiB, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}, Handles: 64})
		var paths []string
		for i := range 6 {
			dir := fmt.Sprint("/", i)
			if err := disk.MkdirAll(dir); err != nil {
				t.Fatal(err)
			}
			paths = append(paths, dir+"/log")
			mustAppend(t, f, paths[i], "x")
		}
		began := time.Now()
		err := f.Sync(noContext)
		if took := time.Since(began); err != nil || took != 10*time.Millisecond {
			t.Errorf("the syncs of 6 directories took %v, want 10ms: %v", took, err)
		}
		wantSafe(t, disk, err, paths...)
	})
}
