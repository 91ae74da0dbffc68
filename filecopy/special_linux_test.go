package filecopy_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/filecopy"
)

// specials makes a directory with a file, a pipe, a socket and, as root, two devices.
func specials(t *testing.T) (dir string, names []string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "from")
	err := os.Mkdir(dir, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o644)
	}
	make := func(name string, mode uint32, dev uint64) {
		t.Helper()
		path := filepath.Join(dir, name)
		if e := unix.Mknod(path, mode, int(dev)); errors.Is(e, unix.EPERM) && mode&unix.S_IFMT != unix.S_IFIFO && mode&unix.S_IFMT != unix.S_IFSOCK {
			return
		} else if e != nil {
			t.Fatal(e)
		}
		names = append(names, name)
		for _, e := range []error{unix.Chmod(path, mode&0o7777), os.Chtimes(path, time.Unix(1e9, 0), time.Unix(1e9, 5000))} {
			err = errors.Join(err, e)
		}
	}
	make("pipe", unix.S_IFIFO|0o622, 0)
	make("socket", unix.S_IFSOCK|0o600, 0)
	make("null", unix.S_IFCHR|0o666, unix.Mkdev(1, 3))
	make("disk", unix.S_IFBLK|0o640, unix.Mkdev(7, 300))
	if err != nil {
		t.Fatal(err)
	}
	return dir, names
}

// TestSpecialsAreKept with their kind, device, permissions and times, also over what has their names.
func TestSpecialsAreKept(t *testing.T) {
	for _, o := range []filecopy.Options{{}, {Archive: true}, {Atomic: true, Policy: holdfast.Durable()}} {
		o.Special = filecopy.KeepSpecial
		from, names := specials(t)
		to := filepath.Join(t.TempDir(), "to")
		for range 2 { // the second time they are there
			totals := copyAll(t, o, to, from)
			if totals.Links != len(names) || totals.Files != 1 || totals.Refused+totals.Skipped != 0 {
				t.Errorf("%+v", totals)
			}
			for _, name := range names {
				var was, is unix.Stat_t
				if err := errors.Join(unix.Lstat(filepath.Join(from, name), &was), unix.Lstat(filepath.Join(to, name), &is)); err != nil {
					t.Fatal(err)
				}
				if was.Mode != is.Mode || was.Rdev != is.Rdev || was.Mtim != is.Mtim || was.Ino == is.Ino && was.Dev == is.Dev {
					t.Errorf("%s: %o %d:%d %v, and the source %o %d:%d %v", name, is.Mode, unix.Major(is.Rdev), unix.Minor(is.Rdev), is.Mtim, was.Mode, unix.Major(was.Rdev), unix.Minor(was.Rdev), was.Mtim)
				}
			}
			if left, err := os.ReadDir(to); err != nil || len(left) != len(names)+1 {
				t.Errorf("%v, %v", left, err)
			}
		}
		one := filepath.Join(filepath.Dir(to), "one")
		copyAll(t, o, one, filepath.Join(from, "pipe"))
		if is, err := os.Lstat(one); err != nil || is.Mode() != fs.ModeNamedPipe|0o622 {
			t.Errorf("a pipe of its own: %v, %v", is, err)
		}
	}
}

// TestNobodyGainsASpecial: a copy for the caller's group is not for who was in the source's.
func TestNobodyGainsASpecial(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("to give a file to another group takes root")
	}
	from, _ := specials(t)
	if err := os.Chown(filepath.Join(from, "disk"), 0, 65534); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "to")
	copyAll(t, filecopy.Options{Special: filecopy.KeepSpecial}, to, from)
	if is, err := os.Lstat(filepath.Join(to, "disk")); err != nil || is.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", is.Mode(), err)
	}
	copyAll(t, filecopy.Options{Special: filecopy.KeepSpecial, Archive: true}, to, from)
	if is, err := os.Lstat(filepath.Join(to, "disk")); err != nil || is.Mode().Perm() != 0o640 || is.Sys().(*syscall.Stat_t).Gid != 65534 {
		t.Errorf("with Archive: %v, %v", is.Mode(), err)
	}
}

func TestSpecialsAreRefusedOrSkipped(t *testing.T) {
	from, names := specials(t)
	to := filepath.Join(t.TempDir(), "to")
	totals, err := filecopy.All(context.Background(), pairs(to, from), filecopy.Options{})
	if err == nil || totals.Refused != len(names) || totals.Files != 1 {
		t.Errorf("%+v, %v", totals, err)
	}
	totals = copyAll(t, filecopy.Options{Special: filecopy.SkipSpecial}, to, from)
	if totals.Skipped != len(names) || totals.Refused != 0 {
		t.Errorf("%+v", totals)
	}
	if left, err := os.ReadDir(to); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
	if err := (filecopy.Options{Special: 3}).Validate(); err == nil || !strings.Contains(err.Error(), "Special 3") {
		t.Error(err)
	}
}

// TestFilterLeavesNamesOut: also the content of a directory that is left out.
func TestFilterLeavesNamesOut(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
	for _, name := range []string{"kept/a", "kept/b.tmp", "dropped/c", "d.tmp", "e"} {
		path := filepath.Join(from, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, nil, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("e", filepath.Join(from, "link")); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	asked := map[string]fs.FileMode{}
	totals := copyAll(t, filecopy.Options{Progress: func(filecopy.Progress) {}, Filter: func(source, destination string, kind fs.FileMode) bool {
		if !mu.TryLock() {
			t.Error("two calls at a time")
			return true
		}
		defer mu.Unlock()
		name, err := filepath.Rel(from, source)
		if other, failed := filepath.Rel(to, destination); err != nil || failed != nil || name != other {
			t.Errorf("%s, %s", source, destination)
		}
		if _, again := asked[name]; again {
			t.Errorf("%s is asked for again", name)
		}
		asked[name] = kind
		return name != "dropped" && !strings.HasSuffix(name, ".tmp")
	}}, to, from)
	if totals.Skipped != 3 || totals.Files != 2 || totals.Links != 1 || totals.Dirs != 2 {
		t.Errorf("%+v", totals)
	}
	var left []string
	filepath.WalkDir(to, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(to, path)
		left = append(left, name)
		return err
	})
	if want := []string{".", "e", "kept", "kept/a", "link"}; !slices.Equal(left, want) {
		t.Errorf("%q are there, want %q", left, want)
	}
	if len(asked) != 7 || asked["kept"] != fs.ModeDir || asked["link"] != fs.ModeSymlink || asked["e"] != 0 {
		t.Error(asked)
	}
}

// TestFreshTimes are the ones of now, for files, directories and links.
func TestFreshTimes(t *testing.T) {
	from, _ := specials(t)
	old := time.Unix(1e9, 0)
	if err := errors.Join(os.Symlink("file", filepath.Join(from, "link")), os.Chtimes(filepath.Join(from, "file"), old, old),
		unix.Lutimes(filepath.Join(from, "link"), []unix.Timeval{{Sec: 1e9}, {Sec: 1e9}}), os.Chtimes(from, old, old)); err != nil {
		t.Fatal(err)
	}
	for _, fresh := range []bool{true, false} {
		to := filepath.Join(t.TempDir(), "to")
		copyAll(t, filecopy.Options{FreshTimes: fresh, Special: filecopy.KeepSpecial}, to, from)
		filepath.WalkDir(to, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				t.Fatal(err)
			}
			if is, err := d.Info(); err != nil || (is.ModTime().Unix() != 1e9) != fresh {
				t.Errorf("FreshTimes %v: %s is of %v, %v", fresh, path, is.ModTime(), err)
			}
			return nil
		})
	}
}
