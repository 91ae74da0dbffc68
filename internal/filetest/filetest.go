// Package filetest has helpers for files in tests. It is for tests only.
package filetest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// MemoryDir returns a directory in a file system in memory if there is one.
func MemoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "holdfast")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func MustWrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// ContentOf returns the content of a file, or "" if it does not exist.
func ContentOf(t *testing.T, path string) []byte {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return got
}

// LeftIn returns the temporary files below a directory.
func LeftIn(dir string) (left []string) {
	filepath.WalkDir(dir, func(path string, d os.DirEntry, _ error) error {
		if strings.HasPrefix(filepath.Base(path), ".holdfast-") {
			left = append(left, path)
		}
		return nil
	})
	return left
}

// FailSync records a failed sync of a real directory, as if by another part of the program. The record ends with the test: a later
// directory may get the same inode.
func FailSync(t *testing.T, directory string) {
	t.Helper()
	name, err := sys.NewName(directory)
	if err != nil {
		t.Fatal(err)
	}
	is, err := sys.Disk{}.StatPath(name)
	if err != nil {
		t.Fatal(err)
	}
	key := keyed.Key{Device: is.Device, Inode: is.Inode}
	if err := durable.KernelSyncs.Directory(key, func() error { return syscall.EIO }); err == nil {
		t.Fatal("it did not fail")
	}
	t.Cleanup(func() { delete(durable.KernelSyncs.Lost, key) })
}
