//go:build go1.25

package files_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/filetest"
	"github.com/holdfast-go/holdfast/internal/handles"
)

// lossDisk returns a disk with the directories /p and /b.
func lossDisk(t *testing.T, syncsAll bool, faults ...fault.DiskFault) *fault.Disk {
	t.Helper()
	disk := fault.NewDisk(faults...)
	for _, p := range []string{"/p", "/b"} {
		if err := disk.MkdirAll(p); err != nil {
			t.Fatal(err)
		}
	}
	disk.SetSyncsAll("/", syncsAll)
	return disk
}

// keepsItsWord fails if a file of the results is durable and a power cut takes it.
func keepsItsWord(t *testing.T, disk *fault.Disk, results *files.Results) {
	t.Helper()
	images := cuts(disk)
	for _, r := range results.All() {
		if lost := lostIn(images, r.Path, "x"); r.Durable() && lost > 0 {
			t.Errorf("%s is durable, and %d of %d power cuts take it", r.Path, lost, len(images))
		}
	}
	if wrong := disk.Violations(); len(wrong) > 0 {
		t.Error(wrong)
	}
}

func closeFiles(t *testing.T, f *files.Set) {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Log("Close:", err)
	}
}

// TestFailedSyncOfAMadeDirectorysNameTakesItsNeighbours makes a directory beside a file
// whose name waits for the same sync.
func TestFailedSyncOfAMadeDirectorysNameTakesItsNeighbours(t *testing.T) {
	failing := fault.DiskFault{Op: fault.DiskSync, Path: "/p", Times: 1, Err: syscall.EIO}
	for _, sync := range []holdfast.Sync{{Mode: holdfast.SyncClose}, {Mode: holdfast.SyncGroup}} {
		disk := lossDisk(t, false, failing)
		f := newSet(disk, files.Options{Policy: holdfast.Policy{Sync: sync, Buffer: holdfast.KiB}, MkdirAll: true, Workers: 1, Retry: once})
		results, _ := f.WriteAll(noContext, one(files.Write{Path: "/p/x", Data: []byte("x")}, files.Write{Path: "/p/q/y", Data: []byte("x")}))
		keepsItsWord(t, disk, results)
		closeFiles(t, f)
	}
	disk := lossDisk(t, false, failing)
	f := newSet(disk, files.Options{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}, Buffer: holdfast.KiB}, MkdirAll: true, Retry: once})
	mustAppend(t, f, "/p/x", "x")
	if err := f.Flush(noContext); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteFile(noContext, "/p/q/y", []byte("x"), files.Create); err == nil {
		t.Error("the name of the directory was lost, and Write says nothing")
	}
	wantSafe(t, disk, f.Sync(noContext), "/p/x")
	closeFiles(t, f)
}

// TestFailedSyncOfAllTakesNamesOfAnotherBatch has one batch sync file by file, and
// another, of the same Files or of its own, sync the file system in the middle.
func TestFailedSyncOfAllTakesNamesOfAnotherBatch(t *testing.T) {
	for _, own := range []bool{false, true} {
		disk := lossDisk(t, true)
		disk.SetDirty(1 << 40)
		o := files.Options{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}, Buffer: holdfast.KiB}, Retry: once}
		f := newSet(disk, o)
		g := f
		if own {
			g = besideFiles(disk, f, o)
		}
		results, _ := f.WriteAll(noContext, func(yield func(files.Write) bool) {
			for _, path := range []string{"/p/1", "/p/2", "/p/3"} {
				if !yield(files.Write{Path: path, Data: []byte("x")}) {
					return
				}
			}
			for disk.Count(fault.DiskSync) < 2 {
				runtime.Gosched()
			}
			disk.SetDirty(0)
			disk.Add(fault.DiskFault{Op: fault.DiskSyncAll, Times: 1, Err: syscall.EIO})
			others, err := g.WriteAll(noContext, one(files.Write{Path: "/b/1", Data: []byte("x")}, files.Write{Path: "/b/2", Data: []byte("x")}))
			if err == nil {
				t.Error("the sync of all failed, and WriteAll says nothing")
			}
			keepsItsWord(t, disk, others)
		})
		keepsItsWord(t, disk, results)
		closeFiles(t, f)
		closeFiles(t, g)
	}
}

// TestSyncOfAllDoesNotBringBackWhatASyncOfTheDirectoryLost has a batch sync the file
// system after another call lost the names of its directory, or of all directories.
func TestSyncOfAllDoesNotBringBackWhatASyncOfTheDirectoryLost(t *testing.T) {
	for _, all := range []bool{false, true} {
		for _, own := range []bool{false, true} {
			for _, mode := range []files.Mode{files.Create, files.Replace} {
				disk := lossDisk(t, true)
				o := files.Options{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}, Buffer: holdfast.KiB}, Retry: once}
				f := newSet(disk, o)
				g := f
				if own {
					g = besideFiles(disk, f, o)
				}
				results, _ := f.WriteAll(noContext, func(yield func(files.Write) bool) {
					if !yield(files.Write{Path: "/p/1", Data: []byte("x"), Mode: mode}) || !yield(files.Write{Path: "/p/2", Data: []byte("x"), Mode: mode}) {
						return
					}
					for disk.Count(fault.DiskWrite) < 2 {
						runtime.Gosched()
					}
					if all {
						disk.Add(fault.DiskFault{Op: fault.DiskSyncAll, Times: 1, Err: syscall.EIO})
						g.WriteAll(noContext, one(files.Write{Path: "/b/1", Data: []byte("x")}, files.Write{Path: "/b/2", Data: []byte("x")}))
					} else {
						disk.Add(fault.DiskFault{Op: fault.DiskSync, Path: "/p", Times: 1, Err: syscall.EIO})
						g.WriteFile(noContext, "/p/alone", []byte("x"), files.Create)
					}
				})
				keepsItsWord(t, disk, results)
				closeFiles(t, f)
				closeFiles(t, g)
			}
		}
	}
}

// TestBatchHearsOfBytesThatTheKernelLost has the kernel fail to write a file back that a batch
// has written and closed. It reports that to descriptors that were open then, and to none that come later.
func TestBatchHearsOfBytesThatTheKernelLost(t *testing.T) {
	disk := lossDisk(t, true)
	f := newSet(disk, files.Options{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}, Buffer: holdfast.KiB}, Retry: once})
	results, err := f.WriteAll(noContext, func(yield func(files.Write) bool) {
		paths := []string{"/p/1", "/p/2"}
		for _, path := range paths {
			if !yield(files.Write{Path: path, Data: []byte("x")}) {
				return
			}
		}
		for _, path := range paths {
			for data, _ := disk.ReadFile(path); string(data) != "x"; data, _ = disk.ReadFile(path) {
				runtime.Gosched()
			}
		}
		disk.Lose("/p/1", syscall.EIO)
	})
	keepsItsWord(t, disk, results)
	if disk.Count(fault.DiskSyncAll) == 0 || !errors.Is(err, syscall.EIO) {
		t.Errorf("%d syncs of all, and WriteAll says %v", disk.Count(fault.DiskSyncAll), err)
	}
	closeFiles(t, f)
}

// TestFailedSyncOfAllTakesTheNamesOfStreams has a batch lose the names of files that are
// appended to.
func TestFailedSyncOfAllTakesTheNamesOfStreams(t *testing.T) {
	disk := lossDisk(t, true)
	f := newSet(disk, files.Options{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}, Buffer: holdfast.KiB}, Retry: once})
	mustAppend(t, f, "/p/x", "x")
	if err := f.Flush(noContext); err != nil {
		t.Fatal(err)
	}
	disk.Add(fault.DiskFault{Op: fault.DiskSyncAll, Times: 1, Err: syscall.EIO})
	f.WriteAll(noContext, one(files.Write{Path: "/b/1", Data: []byte("x")}, files.Write{Path: "/b/2", Data: []byte("x")}))
	wantSafe(t, disk, f.Sync(context.Background()), "/p/x")
	closeFiles(t, f)
}

// TestTwoFilesInOneDirectory has one Set lose the names that another has made there.
func TestTwoFilesInOneDirectory(t *testing.T) {
	for _, sync := range []holdfast.Sync{{Mode: holdfast.SyncClose}, {Mode: holdfast.SyncGroup}} {
		disk := lossDisk(t, false)
		o := files.Options{Policy: holdfast.Policy{Sync: sync, Buffer: holdfast.KiB}, Retry: once}
		f := newSet(disk, o)
		g := besideFiles(disk, f, o)
		results, _ := f.WriteAll(noContext, func(yield func(files.Write) bool) {
			if !yield(files.Write{Path: "/p/1", Data: []byte("x")}) || !yield(files.Write{Path: "/p/2", Data: []byte("x")}) {
				return
			}
			for disk.Count(fault.DiskSync) < 2 {
				runtime.Gosched()
			}
			disk.Add(fault.DiskFault{Op: fault.DiskSync, Path: "/p", Times: 1, Err: syscall.EIO})
			if _, err := g.WriteFile(noContext, "/p/other", []byte("x"), files.Create); err == nil {
				t.Error("the sync of the directory failed, and Write says nothing")
			}
		})
		keepsItsWord(t, disk, results)
		closeFiles(t, f)
		closeFiles(t, g)
	}
}

// TestSyncOfFilesThatWereLeftIsNoProofOfTheirNames has one Set lose the names of files that
// another has closed without a sync, and forgotten.
func TestSyncOfFilesThatWereLeftIsNoProofOfTheirNames(t *testing.T) {
	for _, all := range []bool{false, true} {
		disk := lossDisk(t, true)
		f := newSet(disk, files.Options{Policy: holdfast.Buffered(holdfast.KiB), Retry: once})
		g := besideFiles(disk, f, files.Options{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}, Buffer: holdfast.KiB}, Retry: once})
		mustAppend(t, f, "/p/x", "x")
		if err := f.Release(noContext, "/p/x"); err != nil {
			t.Fatal(err)
		}
		if all {
			disk.Add(fault.DiskFault{Op: fault.DiskSyncAll, Times: 1, Err: syscall.EIO})
			g.WriteAll(noContext, one(files.Write{Path: "/b/1", Data: []byte("x")}, files.Write{Path: "/b/2", Data: []byte("x")}))
		} else {
			disk.Add(fault.DiskFault{Op: fault.DiskSync, Path: "/p", Times: 1, Err: syscall.EIO})
			g.WriteFile(noContext, "/p/other", []byte("x"), files.Create)
		}
		if err := f.Sync(noContext); !isOf(err, "/p") {
			wantSafe(t, disk, err, "/p/x")
			t.Errorf("Sync says nothing of /p: %v", err)
		}
		closeFiles(t, f)
		closeFiles(t, g)
	}
}

// TestEmptyFileWhoseNameWasLostIsNotNew makes a file and fails what comes next, so that it is
// forgotten and loses its name. When the disk works again it appends to it.
func TestEmptyFileWhoseNameWasLostIsNotNew(t *testing.T) {
	for _, own := range []bool{false, true} {
		emptyFileWhoseNameWasLost(t, own, fault.DiskFault{Op: fault.DiskWrite, Path: "/p/x", Err: syscall.ENOSPC})
		emptyFileWhoseNameWasLost(t, own, fault.DiskFault{Op: fault.DiskStatFD, Path: "/p/x", Err: syscall.EIO})
	}
}

func emptyFileWhoseNameWasLost(t *testing.T, own bool, failing fault.DiskFault) {
	t.Helper()
	disk := lossDisk(t, false)
	o := files.Options{Policy: holdfast.EachDurable(), Handles: handles.LeastHandles, Retry: once}
	f := newSet(disk, o)
	g := f
	if own {
		g = besideFiles(disk, f, o)
	}
	disk.Add(failing)
	f.Append(noContext, "/p/x", []byte("x"))
	f.Release(noContext, "/p/x")
	disk.Mend()
	disk.Add(fault.DiskFault{Op: fault.DiskSync, Path: "/p", Times: 1, Err: syscall.EIO})
	if err := g.Append(noContext, "/p/other", []byte("x")); err == nil {
		t.Error("the sync of the directory failed, and Append says nothing")
	}
	if err := disk.Symlink("/p", "/way"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/way/x", "/p/x"} {
		said := f.Append(noContext, path, []byte("x"))
		if lost := lostIn(cuts(disk), "/p/x", "x"); said == nil && lost > 0 {
			t.Errorf("the name of %s was lost, and Append says nothing", path)
		}
	}
	err := f.Append(noContext, "/p/new", []byte("x"))
	if err != nil {
		t.Errorf("a new file beside the lost one: %v", err)
	}
	wantSafe(t, disk, err, "/p/new")
	closeFiles(t, f)
	closeFiles(t, g)
}

// TestLostNameIsLostByEachPath closes a file whose name is not durable, loses that name, and
// asks for it by each path that leads there.
func TestLostNameIsLostByEachPath(t *testing.T) {
	paths := []string{"/p/x", "/way/x", "/link"}
	for _, first := range paths {
		for _, then := range paths {
			for _, ask := range []func(*files.Set) error{
				func(f *files.Set) error { return f.Release(noContext, then) },
				func(f *files.Set) error {
					f.Append(noContext, then, []byte("x")) // reports it, or Sync does
					return f.Sync(noContext)
				},
			} {
				disk := lossDisk(t, false)
				if err := errors.Join(disk.Symlink("/p", "/way"), disk.Symlink("way/x", "/link")); err != nil {
					t.Fatal(err)
				}
				f := newSet(disk, files.Options{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}, Buffer: holdfast.KiB}, Handles: handles.LeastHandles, Retry: once})
				g := besideFiles(disk, f, files.Options{Policy: holdfast.EachDurable(), Retry: once})
				mustAppend(t, f, first, "x")
				for i := range 2 * handles.LeastHandles { // until the first is closed to make room, and forgotten
					mustAppend(t, f, fmt.Sprint("/b/", i), "x")
					if err := f.Flush(noContext); err != nil {
						t.Fatal(err)
					}
				}
				disk.Add(fault.DiskFault{Op: fault.DiskSync, Path: "/p", Times: 1, Err: syscall.EIO})
				if err := g.Append(noContext, "/p/other", []byte("x")); err == nil {
					t.Error("the sync of the directory failed, and Append says nothing")
				}
				if f.Knows(first) {
					t.Fatalf("%s is not forgotten: the test proves nothing", first)
				}
				if lost := lostIn(cuts(disk), "/p/x", "x"); ask(f) == nil && lost > 0 {
					t.Errorf("%s was lost, and by %s no call says so", first, then)
				}
				closeFiles(t, f)
				closeFiles(t, g)
			}
		}
	}
}

// TestForgottenNamesOfAMovedDirectoryAreNotThoseOfTheNext has files of a directory, and of another
// that came to its path, be forgotten before their names are durable.
func TestForgottenNamesOfAMovedDirectoryAreNotThoseOfTheNext(t *testing.T) {
	for _, last := range []string{"/p/x", "/p/y"} {
		disk := lossDisk(t, false)
		f := newSet(disk, files.Options{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}, Buffer: holdfast.KiB}, Handles: 2 * handles.LeastHandles, Retry: once})
		flush := func(path string) {
			t.Helper()
			mustAppend(t, f, path, "x")
			if err := f.Flush(noContext); err != nil && !isOf(err, "/p") {
				t.Fatal(err)
			}
		}
		flush("/p/x")
		if err := disk.Displace("/p", "/moved"); err != nil {
			t.Fatal(err)
		}
		flush("/p/y")
		flush(last) // is closed after the other
		for i := range 4 * handles.LeastHandles {
			flush(fmt.Sprint("/b/", i))
		}
		if f.Unnamed() == 0 || f.Knows("/p/x") || f.Knows("/p/y") {
			t.Fatal("the files are not forgotten: the test proves nothing")
		}
		if err := f.Sync(noContext); !isOf(err, "/p") {
			t.Errorf("a name in the directory that was moved was never synced, and Sync says %v", err)
		}
		closeFiles(t, f)
	}
}

// besideFiles returns a second Files of the same process on the same disk.
func besideFiles(disk *fault.Disk, f *files.Set, o files.Options) *files.Set {
	g := newSet(disk, o)
	g.SharesKernel(f)
	return g
}

// TestFilesKnowOfASyncThatFailedElsewhere has the directory's sync fail, which the kernel
// reports to no other caller, after a file got its name.
func TestFilesKnowOfASyncThatFailedElsewhere(t *testing.T) {
	directory := t.TempDir()
	f, err := files.New(files.Options{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}, Buffer: holdfast.KiB}})
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, f, directory+"/file", "x")
	if err := f.Flush(noContext); err != nil {
		t.Fatal(err)
	}
	filetest.FailSync(t, directory)
	if err := f.Sync(noContext); !errors.Is(err, durable.ErrDirLost) {
		t.Errorf("Sync = %v", err)
	}
	closeFiles(t, f)
}

// TestFailedSyncOfAFileTakesItsNeighboursWithoutAJournal has the sync of one new file fail
// beside others whose names wait. Without a journal the kernel has synced their directory with it.
func TestFailedSyncOfAFileTakesItsNeighboursWithoutAJournal(t *testing.T) {
	for _, lacks := range []bool{false, true} {
		newDisk := func(op fault.DiskOp, path string) *fault.Disk {
			disk := lossDisk(t, false, fault.DiskFault{Op: op, Path: path, Times: 1, Err: syscall.EIO})
			disk.SetLacksJournal("/", lacks)
			return disk
		}
		for _, mode := range []files.Mode{files.Create, files.Replace} {
			failing := map[files.Mode]string{files.Create: "/p/2", files.Replace: "/p/.*"}[mode]
			disk := newDisk(fault.DiskSync, failing)
			f := newSet(disk, files.Options{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}, Buffer: holdfast.KiB}, Workers: 1, Retry: once})
			results, err := f.WriteAll(noContext, one(
				files.Write{Path: "/p/1", Data: []byte("x")}, files.Write{Path: "/p/2", Data: []byte("x"), Mode: mode}, files.Write{Path: "/b/3", Data: []byte("x")}))
			if err == nil && results.Err() == nil {
				t.Fatal("no sync has failed")
			}
			keepsItsWord(t, disk, results)
			if first, other := results.At(0).Durable(), results.At(2).Durable(); first != !lacks || !other {
				t.Errorf("%v, without a journal %v: the file beside is durable: %v, one elsewhere: %v", mode, lacks, first, other)
			}
			closeFiles(t, f)
		}
		for _, whole := range []bool{false, true} {
			op := map[bool]fault.DiskOp{false: fault.DiskDatasync, true: fault.DiskSync}[whole]
			disk := newDisk(op, "/p/2")
			f := newSet(disk, files.Options{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}, Buffer: holdfast.KiB}, Retry: once})
			mustAppend(t, f, "/p/1", "x")
			if err := f.Flush(noContext); err != nil {
				t.Fatal(err)
			}
			if whole {
				if _, err := f.WriteFile(noContext, "/p/2", []byte("x"), files.Create); err == nil {
					t.Fatal("no sync has failed")
				}
			} else {
				mustAppend(t, f, "/p/2", "x")
			}
			err := f.Sync(noContext)
			wantSafe(t, disk, err, "/p/1")
			if isOf(err, "/p/1") != lacks {
				t.Errorf("whole %v, without a journal %v: %v", whole, lacks, err)
			}
			closeFiles(t, f)
		}
	}
}
