package sys

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

func newName(t testing.TB, path string) Name {
	t.Helper()
	n, err := NewName(path)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// openFolder opens a folder until the test ends.
func openFolder(t testing.TB, path string) int {
	t.Helper()
	fd, err := Disk{}.OpenFolder(newName(t, path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := (Disk{}).Close(fd); err != nil {
			t.Error(err)
		}
	})
	return fd
}

const create = os.O_WRONLY | os.O_CREATE

func openFile(t testing.TB, folder int, name string, flag int, perm uint32) int {
	t.Helper()
	fd, err := Disk{}.OpenFile(folder, newName(t, name), flag, perm)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

func TestDiskWritesAndSyncsAFile(t *testing.T) {
	dir, d := t.TempDir(), Disk{}
	folder := openFolder(t, dir)
	fd := openFile(t, folder, "file", create|os.O_EXCL, 0o666)
	for _, s := range []string{"one", "two"} {
		if n, err := d.Write(fd, []byte(s)); n != 3 || err != nil {
			t.Fatal(n, err)
		}
	}
	told(t, d.Truncate(fd, 4))
	told(t, d.Datasync(fd))
	told(t, d.Sync(fd))
	told(t, d.Close(fd))
	told(t, d.Sync(folder))
	if d.SyncsAll(folder) {
		told(t, d.SyncAll(folder))
	}
	fd = openFile(t, folder, "file", os.O_WRONLY|os.O_APPEND, 0)
	if n, err := d.Write(fd, []byte("!")); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := d.Write(fd, nil); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	told(t, d.Close(fd))
	if got, err := os.ReadFile(filepath.Join(dir, "file")); string(got) != "onet!" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestDiskRenamesAndRemoves(t *testing.T) {
	dir, d := t.TempDir(), Disk{}
	folder := openFolder(t, dir)
	for _, name := range []string{"a", "b"} {
		told(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o666))
	}
	told(t, d.Rename(folder, newName(t, "a"), newName(t, "b")))
	if got, err := os.ReadFile(filepath.Join(dir, "b")); string(got) != "a" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	told(t, d.Remove(folder, newName(t, "b")))
	if left, err := os.ReadDir(dir); len(left) != 0 || err != nil {
		t.Error(left, err)
	}
	told(t, d.Mkdir(newName(t, filepath.Join(dir, "sub")), 0o777))
	openFolder(t, filepath.Join(dir, "sub"))
}

func TestDiskStatTellsWhatAFileIs(t *testing.T) {
	dir, d := t.TempDir(), Disk{}
	folder := openFolder(t, dir)
	fd := openFile(t, folder, "file", create, 0o666)
	defer d.Close(fd)
	if _, err := d.Write(fd, []byte("12345")); err != nil {
		t.Fatal(err)
	}
	byName, err := d.Stat(folder, newName(t, "file"))
	told(t, err)
	byFD, err := d.StatFD(fd)
	told(t, err)
	byPath, err := d.StatPath(newName(t, filepath.Join(dir, "file")))
	told(t, err)
	if byFD.Size != 5 || byFD.Links != 1 || byFD.Mode&0o170000 != 0o100000 {
		t.Errorf("%+v", byFD)
	}
	if byFD.Inode != 0 && (byFD != byName || byFD != byPath) {
		t.Errorf("%+v, by name %+v, by path %+v", byFD, byName, byPath)
	}
	if s, err := d.StatFD(folder); err != nil || s.Mode&0o170000 != 0o040000 {
		t.Errorf("folder: %+v, %v", s, err)
	}
	if runtime.GOOS == "windows" {
		return // no such permissions, owners and links there
	}
	told(t, d.Chmod(fd, 0o640))
	told(t, d.Chown(fd, byFD.UID, byFD.GID))
	told(t, os.Link(filepath.Join(dir, "file"), filepath.Join(dir, "more")))
	if s, err := d.StatFD(fd); err != nil || s.Mode != 0o100640 || s.Links != 2 ||
		s.UID != uint32(os.Getuid()) || s.Inode == 0 {
		t.Errorf("%+v, %v", s, err)
	}
	told(t, os.Remove(filepath.Join(dir, "more")))
	told(t, os.Remove(filepath.Join(dir, "file")))
	if s, err := d.StatFD(fd); err != nil || s.Links != 0 {
		t.Errorf("removed: %+v, %v", s, err)
	}
}

// link makes a symbolic link, or skips the test where it may not.
func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Skip("no symbolic links: ", err)
	}
}

func TestDiskStatFollowsOnlyPaths(t *testing.T) {
	dir, d := t.TempDir(), Disk{}
	folder := openFolder(t, dir)
	told(t, os.WriteFile(filepath.Join(dir, "file"), []byte("12345"), 0o666))
	link(t, "file", filepath.Join(dir, "link"))
	if s, err := d.Stat(folder, newName(t, "link")); err != nil || s.Mode&0o170000 != 0o120000 {
		t.Errorf("by name: %+v, %v, want a link", s, err)
	}
	if s, err := d.StatPath(newName(t, filepath.Join(dir, "link"))); err != nil || s.Size != 5 {
		t.Errorf("by path: %+v, %v, want the file", s, err)
	}
}

func TestDiskErrorsAreTheSystems(t *testing.T) {
	dir, d := t.TempDir(), Disk{}
	folder := openFolder(t, dir)
	told(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o666))
	missing, file := newName(t, "missing"), newName(t, "file")
	under := func(elem ...string) Name { return newName(t, filepath.Join(append([]string{dir}, elem...)...)) }
	check := func(name string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
		if _, plain := err.(syscall.Errno); runtime.GOOS == "linux" && !plain {
			t.Errorf("%s: a %T", name, err)
		}
	}
	_, err := d.OpenFile(folder, missing, os.O_WRONLY, 0)
	check("open", err, fs.ErrNotExist)
	_, err = d.OpenFile(folder, file, create|os.O_EXCL, 0o666)
	check("create", err, fs.ErrExist)
	_, err = d.OpenFolder(under("missing"))
	check("open folder", err, fs.ErrNotExist)
	_, err = d.OpenFolder(under("file"))
	check("open file as folder", err, syscall.ENOTDIR)
	_, err = d.Stat(folder, missing)
	check("stat", err, fs.ErrNotExist)
	_, err = d.StatPath(under("missing"))
	check("stat path", err, fs.ErrNotExist)
	check("rename", d.Rename(folder, missing, file), fs.ErrNotExist)
	check("remove", d.Remove(folder, missing), fs.ErrNotExist)
	check("mkdir", d.Mkdir(under("file"), 0o777), fs.ErrExist)
	check("mkdir deep", d.Mkdir(under("missing", "sub"), 0o777), fs.ErrNotExist)
}

func TestDiskRefusesAClosedDescriptor(t *testing.T) {
	d := Disk{}
	folder := openFolder(t, t.TempDir())
	fd := openFile(t, folder, "file", create, 0o666)
	told(t, d.Close(fd))
	_, err := d.Write(fd, []byte("x"))
	_, statErr := d.StatFD(fd)
	for _, err := range []error{err, statErr, d.Truncate(fd, 0), d.Sync(fd), d.Datasync(fd), d.Chmod(fd, 0), d.Chown(fd, 0, 0), d.Close(fd)} {
		if err == nil {
			t.Error("a closed descriptor was taken")
		}
	}
}

func TestResolveFollowsTheLastLinks(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, folder := range []string{"sub", "other"} {
		told(t, os.Mkdir(in(folder), 0o777))
	}
	told(t, os.WriteFile(in("sub/file"), nil, 0o666))
	link(t, "sub/file", in("relative"))
	link(t, in("relative"), in("absolute"))
	link(t, "sub/missing", in("dangling"))
	link(t, "../absolute", in("sub/up"))
	link(t, "sub", in("folder"))
	link(t, "../other/x", in("sub/beside"))
	link(t, "loop", in("loop"))
	check := func(path, want string) {
		t.Helper()
		got, err := Disk{}.Resolve(in(path))
		if err != nil || filepath.Clean(got) != in(want) {
			t.Errorf("%s: %s, %v, want %s", path, got, err, want)
		}
	}
	check("sub/file", "sub/file")
	check("missing", "missing")
	check("relative", "sub/file")
	check("absolute", "sub/file")
	check("dangling", "sub/missing")
	check("sub/up", "sub/file")
	check("folder/file", "folder/file")
	check("none/file", "none/file")
	got, err := Disk{}.Resolve(in("folder/beside"))
	if want := in("folder") + "/../other/x"; err != nil || got != want { // not dir/other/x: only the system knows
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	if got, err := (Disk{}).Resolve(in("loop")); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a loop: %s, %v", got, err)
	}
}

func TestResolveFollowsARelativePathFromHere(t *testing.T) {
	t.Chdir(t.TempDir())
	link(t, "target", "link")
	if got, err := (Disk{}).Resolve("link"); got != "target" || err != nil {
		t.Error(got, err)
	}
}

func TestDescriptorLimitIsKnownOnUnix(t *testing.T) {
	n, ok := DescriptorLimit()
	if runtime.GOOS == "windows" {
		if ok {
			t.Error(n)
		}
		return
	}
	if !ok || n < 16 {
		t.Error(n, ok)
	}
}

// TestTimesAreSetAndRead to the second, which all file systems keep, and the time of the
// last access apart from that of the last write.
func TestTimesAreSetAndRead(t *testing.T) {
	switch runtime.GOOS {
	case "linux", "darwin", "windows":
	default:
		t.Skip("package os tells only when a file was written")
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("text"), 0o666); err != nil {
		t.Fatal(err)
	}
	d := Disk{}
	fd, err := d.OpenFile(AtCwd, Name(path+"\x00"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(fd)
	accessed, modified := time.Unix(1_000_000_000, 0), time.Unix(1_100_000_000, 0)
	if err := d.SetTimes(fd, accessed, modified); err != nil {
		t.Fatal(err)
	}
	is, err := d.StatFile(fd)
	if err != nil || !is.Accessed.Equal(accessed) || !is.Modified.Equal(modified) {
		t.Errorf("read at %v, written at %v: %v", is.Accessed, is.Modified, err)
	}
	a, m, err := d.TimesIn(AtCwd, Name(path+"\x00"))
	if err != nil || !a.Equal(accessed) || !m.Equal(modified) {
		t.Errorf("by its name: read at %v, written at %v: %v", a, m, err)
	}
}
