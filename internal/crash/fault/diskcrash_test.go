//go:build go1.25

package fault_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

// leaves checks that power cuts leave these of a file, all of them and nothing
// else. "-" is no file.
func leaves(t *testing.T, d *fault.Disk, path string, want ...string) {
	t.Helper()
	seen := map[string]bool{}
	for seed := range uint64(400) {
		data, ok := d.PowerCut(rand.New(rand.NewPCG(seed, 0))).File(path)
		if !ok {
			data = []byte("-")
		}
		seen[strings.ReplaceAll(string(data), "\x00", "0")] = true
	}
	got := slices.Sorted(maps.Keys(seen))
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("power cuts leave %q of %s, want %q", got, path, want)
	}
}

// durable makes a file in the root whose name is on the disk, and returns it open.
func durable(t *testing.T, d *fault.Disk, base, data string) (root, fd int) {
	t.Helper()
	must(t, d.WriteFile(base, []byte(data), 0o644))
	root = openDir(t, d, ".")
	return root, openFile(t, d, root, base, appending)
}

func TestBytesAreThereOnceAnyDescriptorOfTheFileWasSynced(t *testing.T) {
	check := func(sync func(d *fault.Disk, root, fd, other int) error) {
		t.Helper()
		d := fault.NewDisk()
		root, fd := durable(t, d, "f", "old")
		must(t, d.Link("f", "g"))
		put(t, d, fd, "A")
		leaves(t, d, "f", "old", "old0", "oldA")
		must(t, sync(d, root, fd, openFile(t, d, root, "g", os.O_RDONLY)))
		leaves(t, d, "f", "oldA")
		leaves(t, d, "g", "oldA")
		put(t, d, fd, "B")
		leaves(t, d, "f", "oldA", "oldA0", "oldAB")
		if data, _ := d.ProcessCrash().File("f"); string(data) != "oldAB" {
			t.Errorf("a process crash leaves %q", data)
		}
	}
	check(func(d *fault.Disk, _, fd, _ int) error { return d.Sync(fd) })
	check(func(d *fault.Disk, _, fd, _ int) error { return d.Datasync(fd) })
	check(func(d *fault.Disk, _, _, other int) error { return d.Sync(other) })
	check(func(d *fault.Disk, root, _, _ int) error { return d.SyncAll(root) })
}

func TestToCloseOrToSyncTheDirectoryMakesNoBytesDurable(t *testing.T) {
	d := fault.NewDisk()
	root, fd := durable(t, d, "f", "")
	put(t, d, fd, "A")
	must(t, d.Sync(root))
	must(t, d.Close(fd))
	leaves(t, d, "f", "", "0", "A")
}

func TestDiskSyncCoversWhatWasWrittenBeforeItStarted(t *testing.T) {
	for _, op := range []fault.DiskOp{fault.DiskSync, fault.DiskSyncAll} {
		synctest.Test(t, func(t *testing.T) {
			d := fault.NewDisk(fault.DiskFault{Op: op, Delay: time.Second})
			root, fd := durable(t, d, "f", "")
			put(t, d, fd, "A")
			go func() {
				time.Sleep(time.Millisecond)
				put(t, d, fd, "B")
				openFile(t, d, root, "late", appending)
			}()
			must(t, map[fault.DiskOp]func(int) error{fault.DiskSync: d.Sync, fault.DiskSyncAll: d.SyncAll}[op](fd))
			leaves(t, d, "f", "A", "A0", "AB")
			leaves(t, d, "late", "-", "")
		})
	}
}

func TestUnsyncedSectorsArePresentZeroOrMissing(t *testing.T) {
	d := fault.NewDisk()
	d.SetSector(2)
	_, fd := durable(t, d, "f", "abc")
	put(t, d, fd, "D")
	put(t, d, fd, "EF")
	leaves(t, d, "f", "abc", "abcD", "abc0", "abcDEF", "abcD00", "abc0EF", "abc000")
}

func TestOverwrittenBytesAreOldOrNewAndNeverZero(t *testing.T) {
	d := fault.NewDisk()
	d.SetSector(2)
	must(t, d.WriteFile("f", []byte("abcd"), 0o644))
	fd := openFile(t, d, openDir(t, d, "/"), "f", os.O_WRONLY)
	put(t, d, fd, "WXYZ")
	leaves(t, d, "f", "abcd", "WXcd", "abYZ", "WXYZ")
	must(t, d.Sync(fd))
	leaves(t, d, "f", "WXYZ")
}

func TestTruncatedFileIsOldEmptyOrNew(t *testing.T) {
	d := fault.NewDisk()
	_, fd := durable(t, d, "f", "old")
	must(t, d.Truncate(fd, 0))
	leaves(t, d, "f", "old", "")
	put(t, d, fd, "n")
	leaves(t, d, "f", "old", "", "0", "n")
	must(t, d.Sync(fd))
	leaves(t, d, "f", "n")
	must(t, d.Close(openFile(t, d, openDir(t, d, "/"), "f", os.O_WRONLY|os.O_TRUNC)))
	leaves(t, d, "f", "n", "")
}

func TestFailedSyncOfADiskLosesItsBytesForEver(t *testing.T) {
	check := func(op fault.DiskOp, sync func(d *fault.Disk, root, fd int) error) {
		t.Helper()
		d := fault.NewDisk(fault.DiskFault{Op: op, Times: 1, Err: syscall.EIO})
		root, fd := durable(t, d, "f", "old")
		put(t, d, fd, "A")
		fails(t, sync(d, root, fd), syscall.EIO)
		leaves(t, d, "f", "old", "old0")
		put(t, d, fd, "B")
		holds(t, d, "f", "oldAB")
		must(t, d.Sync(openFile(t, d, root, "f", appending)))
		leaves(t, d, "f", "old0B")
		must(t, d.SyncAll(openDir(t, d, "/")))
		leaves(t, d, "f", "old0B")
		holds(t, d, "f", "oldAB")
	}
	check(fault.DiskSync, func(d *fault.Disk, _, fd int) error { return d.Sync(fd) })
	check(fault.DiskDatasync, func(d *fault.Disk, _, fd int) error { return d.Datasync(fd) })
	check(fault.DiskSyncAll, func(d *fault.Disk, root, _ int) error { return d.SyncAll(root) })
}

func TestSyncAllIsOfOneDevice(t *testing.T) {
	check := func(err error, here []string) {
		t.Helper()
		d := fault.NewDisk(fault.DiskFault{Op: fault.DiskSyncAll, Err: err})
		must(t, d.Mount("/m"))
		root, fd := durable(t, d, "f", "")
		must(t, d.WriteFile("/m/g", nil, 0o644))
		mount := openDir(t, d, "/m")
		other := openFile(t, d, mount, "g", appending)
		openFile(t, d, mount, "new", appending)
		put(t, d, fd, "A")
		put(t, d, other, "B")
		fails(t, d.SyncAll(root), err)
		leaves(t, d, "f", here...)
		leaves(t, d, "m/g", "", "0", "B")
		leaves(t, d, "m/new", "-", "")
	}
	check(nil, []string{"A"})
	check(syscall.EIO, []string{"", "0"})
}

func TestNameIsThereOnceItsDirectoryWasSynced(t *testing.T) {
	check := func(sync func(d *fault.Disk, fd int) error) {
		t.Helper()
		d := fault.NewDisk()
		root := openDir(t, d, ".")
		fd := openFile(t, d, root, "f", appending)
		put(t, d, fd, "A")
		leaves(t, d, "f", "-", "", "0", "A")
		must(t, d.Sync(fd))
		leaves(t, d, "f", "-", "A")
		must(t, sync(d, root))
		leaves(t, d, "f", "A")
		must(t, d.Remove(root, name("f")))
		leaves(t, d, "f", "-", "A")
		must(t, sync(d, root))
		leaves(t, d, "f", "-")
	}
	check((*fault.Disk).Sync)
	check((*fault.Disk).SyncAll)
}

func TestFailedSyncOfADirectoryLosesItsNames(t *testing.T) {
	check := func(sync func(d *fault.Disk, fd int) error) {
		t.Helper()
		d := fault.NewDisk(fault.DiskFault{Op: fault.DiskSync, Times: 1, Err: syscall.EIO},
			fault.DiskFault{Op: fault.DiskSyncAll, Times: 1, Err: syscall.EIO})
		openFile(t, d, openDir(t, d, "."), "f", appending)
		fails(t, sync(d, openDir(t, d, ".")), syscall.EIO)
		leaves(t, d, "f", "-", "")
		root := openDir(t, d, ".")
		must(t, sync(d, root)) // the kernel holds them for written
		leaves(t, d, "f", "-")
		must(t, d.Rename(root, name("f"), name("g")))
		must(t, sync(d, root))
		leaves(t, d, "g", "")
	}
	check((*fault.Disk).Sync)
	check((*fault.Disk).SyncAll)
}

func TestNewDirectoryNeedsTheSyncOfItsParent(t *testing.T) {
	d := fault.NewDisk()
	must(t, d.Mkdir(name("a"), 0o777))
	must(t, d.Mkdir(name("a/b"), 0o777))
	a, b := openDir(t, d, "a"), openDir(t, d, "a/b")
	fd := openFile(t, d, b, "f", appending)
	put(t, d, fd, "A")
	for _, fd := range []int{fd, b, a} {
		must(t, d.Sync(fd))
		leaves(t, d, "a/b/f", "-", "A")
	}
	must(t, d.Sync(openDir(t, d, "/")))
	leaves(t, d, "a/b/f", "A")
}

func TestRenameIsThereAsAWholeOrNot(t *testing.T) {
	d := fault.NewDisk()
	root, _ := durable(t, d, "f", "old")
	fd := openFile(t, d, root, "f.tmp", appending)
	put(t, d, fd, "new")
	must(t, d.Sync(fd))
	must(t, d.Rename(root, name("f.tmp"), name("f")))
	leaves(t, d, "f", "old", "new")
	leaves(t, d, "f.tmp", "-", "new")
	for seed := range uint64(100) {
		m := d.PowerCut(rand.New(rand.NewPCG(seed, 0)))
		if _, tmp := m.File("f.tmp"); tmp && string(m.Files["/f"]) == "new" {
			t.Fatalf("seed %d: the file has both names", seed)
		}
	}
	must(t, d.Sync(root))
	leaves(t, d, "f", "new")
	leaves(t, d, "f.tmp", "-")
}

func TestFileRenamedTwiceIsThereUnderOneOfItsNames(t *testing.T) {
	d := fault.NewDisk()
	root, _ := durable(t, d, "f", "")
	must(t, d.Rename(root, name("f"), name("g")))
	must(t, d.Rename(root, name("g"), name("h")))
	seen := map[string]bool{}
	for seed := range uint64(100) {
		m := d.PowerCut(rand.New(rand.NewPCG(seed, 0)))
		seen[strings.Join(slices.Sorted(maps.Keys(m.Files)), " ")] = true
	}
	if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, []string{"/f", "/g", "/h"}) {
		t.Errorf("power cuts leave %q", got)
	}
}

// The trap of a replace that syncs the directory, and the file never.
func TestRenamedFileMayBeThereWithoutItsBytes(t *testing.T) {
	d := fault.NewDisk()
	root, _ := durable(t, d, "f", "old")
	put(t, d, openFile(t, d, root, "f.tmp", appending), "new")
	must(t, d.Rename(root, name("f.tmp"), name("f")))
	must(t, d.Sync(root))
	leaves(t, d, "f", "", "000", "new")
}

func TestTwoNamesOfAFileShowTheSameBytes(t *testing.T) {
	d := fault.NewDisk()
	d.SetSector(1)
	_, fd := durable(t, d, "f", "")
	must(t, d.Link("f", "g"))
	put(t, d, fd, "0123456789")
	for seed := range uint64(100) {
		m := d.PowerCut(rand.New(rand.NewPCG(seed, 0)))
		if f, g := string(m.Files["/f"]), string(m.Files["/g"]); f != g {
			t.Fatalf("seed %d: %q and %q", seed, f, g)
		}
	}
}

func TestMoveBetweenDirectoriesIsSyncedByEither(t *testing.T) {
	for _, dir := range []string{"a", "b"} {
		d := fault.NewDisk()
		must(t, d.MkdirAll("a"))
		must(t, d.MkdirAll("b"))
		must(t, d.Close(openFile(t, d, openDir(t, d, "a"), "f", appending)))
		must(t, d.Move("a/f", "b/f"))
		leaves(t, d, "b/f", "-", "")
		must(t, d.Sync(openDir(t, d, dir)))
		leaves(t, d, "b/f", "")
		leaves(t, d, "a/f", "-")
	}
}

// TestDirectoryInsideItselfIsShownOnce has failed syncs lose two moves without which a third
// puts a directory into itself on the disk.
func TestDirectoryInsideItselfIsShownOnce(t *testing.T) {
	d := fault.NewDisk()
	must(t, d.MkdirAll("/a/b"))
	root := openDir(t, d, "/")
	lost := func(from, to string) {
		t.Helper()
		must(t, d.Move(from, to))
		d.Add(fault.DiskFault{Op: fault.DiskSync, Err: syscall.EIO})
		fails(t, d.Sync(root), syscall.EIO)
		d.Mend()
		must(t, d.Sync(root))
	}
	lost("/a/b", "/b")
	lost("/a", "/c")
	must(t, d.Move("/c", "/b/a"))
	must(t, d.Sync(root))
	for seed := range uint64(20) {
		m := d.PowerCut(rand.New(rand.NewPCG(seed, 0)))
		if !m.Dirs["/a/b"] || m.Dirs["/a/b/a"] {
			t.Errorf("a power cut leaves %v", m.Dirs)
		}
	}
}

// TestMountedFileStaysThere mounts a file where the disk still has another name.
func TestMountedFileStaysThere(t *testing.T) {
	d := fault.NewDisk()
	must(t, errors.Join(d.Mount("/m"), d.WriteFile("/m/f", []byte("mounted"), 0o644), d.WriteFile("/x", []byte("old"), 0o644)))
	must(t, d.Remove(openDir(t, d, "/"), name("x")))
	must(t, d.Bind("/m/f", "/x"))
	for seed := range uint64(20) {
		if data, _ := d.PowerCut(rand.New(rand.NewPCG(seed, 0))).File("/x"); string(data) != "mounted" {
			t.Errorf("a power cut leaves %q where a file is mounted", data)
		}
	}
}

func TestImageIsAFunctionOfTheSeed(t *testing.T) {
	d := fault.NewDisk()
	d.SetSector(1)
	root := openDir(t, d, ".")
	for i := range 20 {
		put(t, d, openFile(t, d, root, fmt.Sprint("f", i), appending), "0123456789")
	}
	must(t, d.Symlink("f1", "s"))
	different := false
	for seed := range uint64(50) {
		cut := func(seed uint64) *fault.Image { return d.PowerCut(rand.New(rand.NewPCG(seed, 0))) }
		m := cut(seed)
		if !reflect.DeepEqual(m, cut(seed)) {
			t.Fatalf("seed %d: two images", seed)
		}
		different = different || !reflect.DeepEqual(m, cut(seed+1))
		if m.Links["/s"] != "f1" || !m.Dirs["/"] {
			t.Fatalf("seed %d: links %q, directories %v", seed, m.Links, m.Dirs)
		}
	}
	if !different {
		t.Error("all seeds leave the same")
	}
}
