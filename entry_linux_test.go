package holdfast_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// openDirectories returns the directories that this process has open below another.
func openDirectories(t *testing.T, below string) (all []string) {
	t.Helper()
	numbers, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	for _, n := range numbers {
		path, err := os.Readlink("/proc/self/fd/" + n.Name())
		if err != nil {
			continue
		}
		if within, err := filepath.Rel(below, path); err != nil || within[0] == '.' {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			all = append(all, path)
		}
	}
	return all
}

// TestKernelIsAskedToSyncTheDirectoryOfANewName has the kernel refuse fsync(2), which a
// Writer calls for directories alone, and looks which directory it has open: that of the name.
func TestKernelIsAskedToSyncTheDirectoryOfANewName(t *testing.T) {
	isolate.Process(t, func(t *testing.T) {
		top := t.TempDir()
		for _, dir := range []string{"links", "files"} {
			if err := os.Mkdir(filepath.Join(top, dir), 0o777); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(top, "files/old"), nil, 0o666); err != nil {
			t.Fatal(err)
		}
		for link, target := range map[string]string{"toOld": "../files/old", "toNew": filepath.Join(top, "files/new")} {
			if err := os.Symlink(target, filepath.Join(top, "links", link)); err != nil {
				t.Fatal(err)
			}
		}
		// Behind this link .. is not the directory that the path names before it.
		if err := errors.Join(os.Mkdir(filepath.Join(top, "deep"), 0o777), os.Symlink("../links", filepath.Join(top, "deep/way"))); err != nil {
			t.Fatal(err)
		}
		create := func(path string) (*holdfast.Writer, error) { return holdfast.Create(path, holdfast.Durable()) }
		add := func(path string) (*holdfast.Writer, error) { return holdfast.Append(path, holdfast.Durable()) }
		var asked []*holdfast.Writer
		for _, path := range []string{"files/created", "files/appended", "links/toNew", "links/toOld", "deep/way/toOld"} {
			for _, open := range []func(string) (*holdfast.Writer, error){create, add} {
				w, err := open(filepath.Join(top, path))
				if err != nil {
					t.Fatal(err)
				}
				if dirs := openDirectories(t, top); len(dirs) != 1 || dirs[0] != filepath.Join(top, "files") {
					t.Errorf("%s: %q are open to be synced", path, dirs)
				}
				if _, err := w.Write([]byte("once")); err != nil {
					t.Error(err)
				}
				if dirs := openDirectories(t, top); len(dirs) != 0 {
					t.Errorf("%s: %q are open after the first sync", path, dirs)
				}
				asked = append(asked, w)
			}
		}
		var later []*holdfast.Writer
		for _, open := range []func(string) (*holdfast.Writer, error){create, add} {
			w, err := open(filepath.Join(top, "files/later"))
			if err != nil {
				t.Fatal(err)
			}
			later = append(later, w)
		}
		// SECCOMP_FILTER_FLAG_TSYNC: all threads.
		if err := isolate.Forbid(unix.SYS_FSYNC, unix.EDQUOT, 1); err != nil {
			t.Skip(err)
		}
		for _, w := range asked {
			if _, err := w.Write([]byte("twice")); err != nil {
				t.Errorf("the name is durable, and its directory is synced again: %v", err)
			}
			w.Close()
		}
		for _, w := range later {
			if _, err := w.Write([]byte("once")); !errors.Is(err, unix.EDQUOT) {
				t.Errorf("the directory of a new name was not synced: %v", err)
			}
			w.Close()
		}
	})
}

// TestWorkingDirectoryMayBeDeeperThanAPathIsLong where getcwd(2) can't name it.
func TestWorkingDirectoryMayBeDeeperThanAPathIsLong(t *testing.T) {
	isolate.Process(t, func(t *testing.T) {
		top := t.TempDir()
		t.Chdir(top)
		level := strings.Repeat("d", 200)
		for range 25 {
			if err := errors.Join(os.Mkdir(level, 0o777), os.Chdir(level)); err != nil {
				t.Fatal(err)
			}
		}
		defer os.Chdir(top)
		for _, p := range []holdfast.Policy{holdfast.Durable(), holdfast.Unbuffered()} {
			w, err := holdfast.Create("file", p)
			if err != nil {
				t.Errorf("%v: %v", p, err)
				continue
			}
			_, err = w.Write([]byte("x"))
			if p.Sync.Mode == holdfast.SyncNever { // the directory was not opened when the file was
				// An ordinary user may not even read the directories above, as getcwd(3) then does.
				if err := w.Sync(); !errors.Is(err, unix.ENAMETOOLONG) && !errors.Is(err, unix.ERANGE) && !errors.Is(err, unix.EACCES) {
					t.Errorf("%v: Sync can't find the directory, and returns %v", p, err)
				}
				w.Close()
			} else if err := errors.Join(err, w.Close()); err != nil {
				t.Errorf("%v: %v", p, err)
			}
			if is, err := os.Stat("file"); err != nil || is.Size() != 1 {
				t.Errorf("%v: %v, %v", p, is, err)
			}
		}
	})
}
