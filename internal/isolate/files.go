package isolate

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"testing"
)

// Supported fails a test unless err is nil, and skips it if err is errors.ErrUnsupported.
func Supported(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Symlink makes a symbolic link, and skips the test where none can be made.
func Symlink(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Skipf("no symbolic links here (Windows asks for a right to make one): %v", err)
	}
	if is, err := os.Lstat(path); err != nil || is.Mode()&fs.ModeSymlink == 0 {
		if runtime.GOOS == "windows" {
			t.Skip("wine makes no symbolic links, and says that it did")
		}
		t.Fatalf("%s is no link: %v", path, err)
	}
}

// NewFile makes a file of size bytes, open for reading and writing until the test ends.
func NewFile(t *testing.T, path string, size int) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := f.Write(bytes.Repeat([]byte("x"), size)); err != nil {
		t.Fatal(err)
	}
	return f
}

// OnDisk returns a directory of the test's own, and skips the test if it is in memory.
func OnDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if InMemory(t, dir) {
		t.Skipf("%s is in memory: nothing of it can be evicted", dir)
	}
	return dir
}
