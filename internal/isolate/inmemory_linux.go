package isolate

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// InMemory reports whether dir's file system has no disk.
func InMemory(t *testing.T, dir string) bool {
	t.Helper()
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		t.Fatal(err)
	}
	kind := int64(uint32(stat.Type))
	return kind == unix.TMPFS_MAGIC || kind == unix.RAMFS_MAGIC
}

// shared is the parent of directories in memory, and inShared begins their names.
const (
	shared   = "/dev/shm"
	inShared = "holdfast-memory-"
)

// DirInMemory makes a directory on a file system in memory, where a sync takes no time, if there is
// one. It is locked until the test ends, which removes it. Directories of killed tests have no
// lock, and are removed here.
func DirInMemory(t *testing.T) string {
	t.Helper()
	all := locked(shared, unix.LOCK_EX) // no other test may remove a directory before it is locked
	if all == nil {
		return t.TempDir()
	}
	defer all.Close()
	old, err := filepath.Glob(filepath.Join(shared, inShared+"*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range old {
		if f := locked(dir, unix.LOCK_EX|unix.LOCK_NB); f != nil {
			_ = os.RemoveAll(dir) // another user's directory can't be removed
			_ = f.Close()
		}
	}
	dir, err := os.MkdirTemp(shared, inShared)
	if err != nil {
		return t.TempDir()
	}
	held := locked(dir, unix.LOCK_EX)
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
		_ = held.Close()
	})
	return dir
}

// locked opens a directory with a lock, or returns nil.
func locked(dir string, how int) *os.File {
	f, err := os.OpenFile(dir, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil
	}
	if unix.Flock(int(f.Fd()), how) != nil {
		_ = f.Close()
		return nil
	}
	return f
}
