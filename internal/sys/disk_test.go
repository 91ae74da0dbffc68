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

// openDir opens a directory until the test ends.
func openDir(t testing.TB, path string) int {
	t.Helper()
	fd, err := Disk{}.OpenDir(newName(t, path))
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

func openFile(t testing.TB, dir int, name string, flag int, perm uint32) int {
	t.Helper()
	fd, err := Disk{}.OpenFile(dir, newName(t, name), flag, perm)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

func TestDiskWritesAndSyncsAFile(t *testing.T) {
	dir, d := t.TempDir(), Disk{}
	directory := openDir(t, dir)
	fd := openFile(t, directory, "file", create|os.O_EXCL, 0o666)
	for _, s := range []string{"one", "two"} {
		if n, err := d.Write(fd, []byte(s)); n != 3 || err != nil {
			t.Fatal(n, err)
		}
	}
	supported(t, d.Truncate(fd, 4))
	supported(t, d.Datasync(fd))
	supported(t, d.Sync(fd))
	supported(t, d.Close(fd))
	supported(t, d.Sync(directory))
	fd = openFile(t, directory, "file", os.O_WRONLY|os.O_APPEND, 0)
	if n, err := d.Write(fd, []byte("!")); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := d.Write(fd, nil); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	supported(t, d.Close(fd))
	if got, err := os.ReadFile(filepath.Join(dir, "file")); string(got) != "onet!" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestDiskRenamesAndRemoves(t *testing.T) {
	dir, d := t.TempDir(), Disk{}
	directory := openDir(t, dir)
	for _, name := range []string{"a", "b"} {
		supported(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o666))
	}
	supported(t, d.Rename(directory, newName(t, "a"), newName(t, "b")))
	if got, err := os.ReadFile(filepath.Join(dir, "b")); string(got) != "a" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	supported(t, d.Remove(directory, newName(t, "b")))
	if left, err := os.ReadDir(dir); len(left) != 0 || err != nil {
		t.Error(left, err)
	}
	supported(t, d.Mkdir(newName(t, filepath.Join(dir, "sub")), 0o777))
	openDir(t, filepath.Join(dir, "sub"))
}

func TestDiskStatReportsWhatAFileIs(t *testing.T) {
	dir, d := t.TempDir(), Disk{}
	directory := openDir(t, dir)
	fd := openFile(t, directory, "file", create, 0o666)
	defer d.Close(fd)
	if _, err := d.Write(fd, []byte("12345")); err != nil {
		t.Fatal(err)
	}
	byName, err := d.Stat(directory, newName(t, "file"))
	supported(t, err)
	byFD, err := d.StatFD(fd)
	supported(t, err)
	byPath, err := d.StatPath(newName(t, filepath.Join(dir, "file")))
	supported(t, err)
	if byFD.Size != 5 || byFD.Links != 1 || byFD.Mode&0o170000 != 0o100000 {
		t.Errorf("%+v", byFD)
	}
	if byFD.Inode != 0 && (byFD != byName || byFD != byPath) {
		t.Errorf("%+v, by name %+v, by path %+v", byFD, byName, byPath)
	}
	if s, err := d.StatFD(directory); err != nil || s.Mode&0o170000 != 0o040000 {
		t.Errorf("directory: %+v, %v", s, err)
	}
	if runtime.GOOS == "windows" {
		return // no such permissions, owners and links there
	}
	supported(t, d.Chmod(fd, 0o640))
	supported(t, d.Chown(fd, byFD.UID, byFD.GID))
	supported(t, os.Link(filepath.Join(dir, "file"), filepath.Join(dir, "more")))
	if s, err := d.StatFD(fd); err != nil || s.Mode != 0o100640 || s.Links != 2 ||
		s.UID != uint32(os.Getuid()) || s.Inode == 0 {
		t.Errorf("%+v, %v", s, err)
	}
	supported(t, os.Remove(filepath.Join(dir, "more")))
	supported(t, os.Remove(filepath.Join(dir, "file")))
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
	directory := openDir(t, dir)
	supported(t, os.WriteFile(filepath.Join(dir, "file"), []byte("12345"), 0o666))
	link(t, "file", filepath.Join(dir, "link"))
	if s, err := d.Stat(directory, newName(t, "link")); err != nil || s.Mode&0o170000 != 0o120000 {
		t.Errorf("by name: %+v, %v, want a link", s, err)
	}
	if s, err := d.StatPath(newName(t, filepath.Join(dir, "link"))); err != nil || s.Size != 5 {
		t.Errorf("by path: %+v, %v, want the file", s, err)
	}
}

func TestDiskErrorsAreTheSystems(t *testing.T) {
	dir, d := t.TempDir(), Disk{}
	directory := openDir(t, dir)
	supported(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o666))
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
	_, err := d.OpenFile(directory, missing, os.O_WRONLY, 0)
	check("open", err, fs.ErrNotExist)
	_, err = d.OpenFile(directory, file, create|os.O_EXCL, 0o666)
	check("create", err, fs.ErrExist)
	_, err = d.OpenDir(under("missing"))
	check("open directory", err, fs.ErrNotExist)
	_, err = d.OpenDir(under("file"))
	check("open file as directory", err, syscall.ENOTDIR)
	_, err = d.Stat(directory, missing)
	check("stat", err, fs.ErrNotExist)
	_, err = d.StatPath(under("missing"))
	check("stat path", err, fs.ErrNotExist)
	check("rename", d.Rename(directory, missing, file), fs.ErrNotExist)
	check("remove", d.Remove(directory, missing), fs.ErrNotExist)
	check("mkdir", d.Mkdir(under("file"), 0o777), fs.ErrExist)
	check("mkdir deep", d.Mkdir(under("missing", "sub"), 0o777), fs.ErrNotExist)
}

func TestDiskRefusesAClosedDescriptor(t *testing.T) {
	d := Disk{}
	dir := openDir(t, t.TempDir())
	fd := openFile(t, dir, "file", create, 0o666)
	supported(t, d.Close(fd))
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
	for _, directory := range []string{"sub", "other"} {
		supported(t, os.Mkdir(in(directory), 0o777))
	}
	supported(t, os.WriteFile(in("sub/file"), nil, 0o666))
	link(t, "sub/file", in("relative"))
	link(t, in("relative"), in("absolute"))
	link(t, "sub/missing", in("dangling"))
	link(t, "../absolute", in("sub/up"))
	link(t, "sub", in("directory"))
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
	check("directory/file", "directory/file")
	check("none/file", "none/file")
	got, err := Disk{}.Resolve(in("directory/beside"))
	if want := in("directory") + "/../other/x"; err != nil || got != want { // not dir/other/x: only the system knows
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

// TestTimesAreSetAndRead to the second, which all file systems keep, and the time of the last
// access apart from the time of the last write.
func TestTimesAreSetAndRead(t *testing.T) {
	switch runtime.GOOS {
	case "linux", "darwin", "windows":
	default:
		t.Skip("package os reports only when a file was written")
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
