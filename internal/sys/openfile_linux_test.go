package sys

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestOpenFileIsThatOfPackageOS opens each kind of file in both ways. Whether a file takes a
// deadline is whether it is polled.
func TestOpenFileIsThatOfPackageOS(t *testing.T) {
	outcome := func(open func(string, int, fs.FileMode) (*os.File, error), path string, flag int, perm fs.FileMode) string {
		f, err := open(path, flag, perm)
		if err != nil {
			return err.Error()
		}
		defer f.Close()
		raw, err := f.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var status, inherited int
		if err := raw.Control(func(fd uintptr) {
			status, _ = unix.FcntlInt(fd, unix.F_GETFL, 0)
			inherited, _ = unix.FcntlInt(fd, unix.F_GETFD, 0)
		}); err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		_, at := f.WriteAt([]byte("x"), 0) // O_APPEND refuses it
		return fmt.Sprintf("%s %v, flags %#x %#x, deadline %v, at %v", f.Name(), info.Mode(), status, inherited, f.SetDeadline(time.Time{}), at)
	}
	ours := func(path string, flag int, perm fs.FileMode) (*os.File, error) {
		f, named, err := OpenFile(path, flag, perm)
		if err == nil {
			info, err := f.Stat()
			if err != nil {
				t.Fatal(err)
			}
			// With special permissions it is the call of package os, which does not look.
			want := Stat{}
			if is := StatOf(info); info.Mode().IsRegular() && is.Links > 0 && perm == perm.Perm() {
				want = is
			}
			if named != want {
				t.Errorf("%s, flag %#x: its attributes are %+v, want %+v", path, flag, named, want)
			}
		}
		return f, err
	}
	check := func(path string, flag int, perm fs.FileMode, after func(string)) {
		t.Helper()
		want := outcome(os.OpenFile, path, flag, perm)
		after(path)
		if got := outcome(ours, path, flag, perm); got != want {
			t.Errorf("%s, flag %#x: %s\nof package os: %s", path, flag, got, want)
		}
		after(path)
	}
	stays := func(string) {}
	remove := func(path string) {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
	dir := t.TempDir()
	file, pipe, link := filepath.Join(dir, "file"), filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	check(file, os.O_WRONLY, 0, stays) // there is none
	check(file, os.O_WRONLY|os.O_CREATE, 0o640, remove)
	check(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o751|fs.ModeSetuid|fs.ModeSticky, remove)
	check(file, os.O_RDWR|os.O_CREATE|unix.O_NONBLOCK, 0o600, stays)
	check(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600, stays)
	check(dir, os.O_RDONLY, 0, stays)
	check(dir, os.O_WRONLY, 0, stays)
	check(dir, os.O_WRONLY|unix.O_TMPFILE, 0o600, stays) // no name
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	check(pipe, os.O_RDWR, 0, stays) // waits for nobody
	check(pipe, os.O_RDWR|unix.O_NONBLOCK, 0, stays)
	check(pipe, os.O_WRONLY|unix.O_NONBLOCK, 0, stays) // nobody reads it
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	check(link, os.O_WRONLY|NoFollow, 0, stays)
	check(os.DevNull, os.O_WRONLY, 0, stays)
	check(os.DevNull, os.O_WRONLY|unix.O_NONBLOCK, 0, stays)
	check("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0, stays)
}
