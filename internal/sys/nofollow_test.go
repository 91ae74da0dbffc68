package sys

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestOpenFileFollowsNoLink, not even to make a file, and writes to what is no link.
func TestOpenFileFollowsNoLink(t *testing.T) {
	if NoFollow == 0 {
		t.Skip("this system opens no link itself")
	}
	dir, d := t.TempDir(), Disk{}
	directory := openDir(t, dir)
	for _, flag := range []int{create, os.O_WRONLY | os.O_APPEND, os.O_RDONLY} { // the first makes the file
		fd := openFile(t, directory, "file", flag|NoFollow, 0o666)
		if flag != os.O_RDONLY {
			if _, err := d.Write(fd, []byte("x")); err != nil {
				t.Error(err)
			}
		}
		supported(t, d.Close(fd))
	}
	if got, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(got) != "xx" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := d.OpenFile(directory, newName(t, "none"), os.O_WRONLY|NoFollow, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a name that is not there: %v", err)
	}
	if _, err := d.OpenFile(directory, newName(t, "file"), create|os.O_EXCL|NoFollow, 0o666); !errors.Is(err, fs.ErrExist) {
		t.Errorf("of a name that is there: %v", err)
	}
	for link, target := range map[string]string{"soft": "file", "dangling": "made"} {
		path := filepath.Join(dir, link)
		err := os.Symlink(target, path)
		if is, look := os.Lstat(path); err != nil || look != nil || is.Mode()&fs.ModeSymlink == 0 {
			t.Skipf("no symbolic links here (Windows may refuse one, and wine makes none): %v, %v", err, look)
		}
		for _, flag := range []int{create, os.O_WRONLY | os.O_APPEND, os.O_RDONLY} {
			fd, err := d.OpenFile(directory, newName(t, link), flag|NoFollow, 0o666)
			if err == nil {
				d.Close(fd)
			}
			if !errors.Is(err, syscall.ELOOP) {
				t.Errorf("%s with flags %#x: %v, want ELOOP", link, flag, err)
			}
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "made")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file behind the dangling link was made: %v", err)
	}
}
