package sys

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestDiskAllocatesNothing(t *testing.T) {
	d, dir := Disk{}, t.TempDir()
	directory := openDir(t, dir)
	file, missing, data := newName(t, "file"), newName(t, "missing"), []byte("Hello, world")
	path := newName(t, dir)
	check := func(name string, call func() error) {
		t.Helper()
		var failed error
		if n := testing.AllocsPerRun(100, func() {
			if err := call(); err != nil {
				failed = err
			}
		}); n != 0 || failed != nil {
			t.Errorf("%s: %v allocations, %v", name, n, failed)
		}
	}
	check("open, write, close", func() error {
		fd, err := d.OpenFile(directory, file, create|os.O_APPEND, 0o666)
		if err != nil {
			return err
		}
		if _, err := d.StatFD(fd); err != nil {
			return err
		}
		if _, err := d.Write(fd, data); err != nil {
			return err
		}
		return d.Close(fd)
	})
	check("open a directory", func() error {
		fd, err := d.OpenDir(path)
		if err != nil {
			return err
		}
		return d.Close(fd)
	})
	check("stat", func() error { _, err := d.Stat(directory, file); return err })
	check("stat path", func() error { _, err := d.StatPath(path); return err })
	check("rename", func() error { return d.Rename(directory, file, file) })
	check("a failed call", func() error {
		if err := d.Remove(directory, missing); err != syscall.ENOENT {
			return err
		}
		return nil
	})
}

func TestDiskDescriptorsEndWithTheProgram(t *testing.T) {
	dir := openDir(t, t.TempDir())
	fd := openFile(t, dir, "file", create, 0o666)
	defer Disk{}.Close(fd)
	for _, fd := range []int{dir, fd} {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Error("it would be inherited: ", flags, err)
		}
	}
}

func TestDiskDoesNotWaitForAPipe(t *testing.T) {
	dir, d := t.TempDir(), Disk{}
	directory := openDir(t, dir)
	supported(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o666))
	if fd, err := d.OpenFile(directory, newName(t, "pipe"), os.O_WRONLY|os.O_APPEND, 0); err != unix.ENXIO {
		t.Errorf("no process reads: %d, %v, want ENXIO", fd, err)
	}
	reader, err := os.OpenFile(filepath.Join(dir, "pipe"), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	fd := openFile(t, directory, "pipe", os.O_WRONLY, 0)
	defer d.Close(fd)
	for range 1 << 20 {
		if _, err = d.Write(fd, make([]byte, 1<<16)); err != nil {
			break
		}
	}
	if err != unix.EAGAIN {
		t.Errorf("a full pipe: %v, want EAGAIN", err)
	}
}

func TestDiskPermissionsAreBeforeUmask(t *testing.T) {
	old := unix.Umask(0o027)
	defer unix.Umask(old)
	dir, d := t.TempDir(), Disk{}
	fd := openFile(t, openDir(t, dir), "file", create, 0o666)
	defer d.Close(fd)
	if s, err := d.StatFD(fd); err != nil || s.Mode != unix.S_IFREG|0o640 {
		t.Errorf("%+v, %v", s, err)
	}
	supported(t, d.Mkdir(newName(t, filepath.Join(dir, "sub")), 0o777))
	if s, err := d.StatPath(newName(t, filepath.Join(dir, "sub"))); err != nil || s.Mode != unix.S_IFDIR|0o750 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestDiskKnowsNoEmptyPath(t *testing.T) {
	d := Disk{}
	if _, err := d.OpenDir(""); err != unix.ENOENT {
		t.Error(err)
	}
	if err := d.Mkdir("", 0o777); err != unix.ENOENT {
		t.Error(err)
	}
}

func TestSyncAllIsReliedOnWhereItIsKnown(t *testing.T) {
	check := func(dir string) {
		name, err := FileSystem(dir)
		if err != nil {
			t.Log(err)
			return
		}
		known := map[string]bool{"ext2/ext3/ext4": true, "xfs": true, "btrfs": true, "f2fs": true}[name]
		if got := (Disk{}).SyncsAll(openDir(t, dir)); got != (known && syncfsReports()) {
			t.Errorf("%s on %s: %v", dir, name, got)
		}
	}
	check(t.TempDir())
	check("/proc")
	if directory := openDir(t, t.TempDir()); (Disk{}).SyncsAll(directory) {
		supported(t, Disk{}.SyncAll(directory))
	}
	if (Disk{}).SyncsAll(-1) {
		t.Error("of no descriptor")
	}
}

func TestReleaseAtLeast(t *testing.T) {
	check := func(release string, want bool) {
		t.Helper()
		if got := releaseAtLeast(release, 5, 17); got != want {
			t.Errorf("%q: %v", release, got)
		}
	}
	check("5.17", true)
	check("5.17.0-rc1", true)
	check("5.16.20", false)
	check("5.20.0-18-amd64", true)
	check("6.1+", true)
	check("4.19.0", false)
	check("10.0", true)
	check("", false)
	check("linux", false)
}

func TestDirtyIsWhatMeminfoSays(t *testing.T) {
	const text = "MemTotal: 9 kB\nDirty:   384 kB\nWriteback:   2 kB\nWritebackTmp:  7 kB\nOdd: 5\n"
	check := func(key string, want int64, known bool) {
		t.Helper()
		if got, ok := meminfoBytes([]byte(text), key); got != want && known || ok != known {
			t.Errorf("%s %d, %v", key, got, ok)
		}
	}
	check("Dirty:", 384<<10, true)
	check("Writeback:", 2<<10, true)
	check("Odd:", 0, false)
	check("None:", 0, false)
	if n, ok := (Disk{}).Dirty(); !ok || n < 0 {
		t.Error(n, ok)
	}
}

// TestStatDirectorySaysTheSameAsFstat, and more: that something is mounted there.
func TestStatDirectorySaysTheSameAsFstat(t *testing.T) {
	check := func(path string, mounted bool) {
		t.Helper()
		d := Disk{}
		fd, err := d.OpenDir(Name(path + "\x00"))
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close(fd)
		is, err := d.StatFile(fd)
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.StatDir(fd)
		if err != nil || got.FileStat != is {
			t.Errorf("%s: %+v, want %+v: %v", path, got.FileStat, is, err)
		}
		if got.Mounted != mounted && kernelTellsMounts() {
			t.Errorf("%s: mounted %v", path, got.Mounted)
		}
	}
	check(t.TempDir(), false)
	check("/proc", true) // "/" need not be one: it may be a directory of a chroot
}

// kernelTellsMounts reports whether STATX_ATTR_MOUNT_ROOT is known, as from Linux 5.8 on.
func kernelTellsMounts() bool {
	var s unix.Statx_t
	return unix.Statx(unix.AT_FDCWD, "/", 0, 0, &s) == nil && s.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0
}

// TestAFileInMemoryIsNotSharedFaster is about an anonymous device, as btrfs has.
func TestAFileInMemoryIsNotSharedFaster(t *testing.T) {
	fd, err := unix.MemfdCreate("file", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	is, err := Disk{}.StatFD(fd)
	if err != nil || unix.Major(is.Device) != 0 || (Disk{}).SharesFaster(fd, is.Device) {
		t.Errorf("%+v, %v", is, err)
	}
}

// TestStatLeavesTimesCoarse holds StatFD to ask for no times. Since Linux 6.13 the write after such
// a question gets the time of the clock, not of its last tick. So it changes the inode each time.
func TestStatLeavesTimesCoarse(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for range 100 { // another program may make a finer time known to all
		if _, err := (Disk{}).StatFD(int(f.Fd())); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		if _, err := f.WriteString("x"); err != nil {
			t.Fatal(err)
		}
		is, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		if is.ModTime().Before(before) {
			return
		}
		if _, err := f.WriteString("x"); err != nil { // Stat's question is answered
			t.Fatal(err)
		}
	}
	t.Error("each write was given a time of its own")
}
