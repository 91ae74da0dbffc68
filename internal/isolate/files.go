package isolate

import (
	"bytes"
	"errors"
	"os"
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
