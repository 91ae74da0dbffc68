package sys

import (
	"errors"
	"io/fs"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

// supported fails a test unless err is nil or says that this system has no such thing.
func supported(t *testing.T, err error) {
	t.Helper()
	isolate.Supported(t, err)
}

func TestFreeSpaceIsPositive(t *testing.T) {
	free, err := FreeSpace(t.TempDir())
	supported(t, err)
	if free <= 0 {
		t.Errorf("free space = %d in a directory that tests write to", free)
	}
}

func TestFileSystemHasAName(t *testing.T) {
	name, err := FileSystem(t.TempDir())
	supported(t, err)
	if name == "" {
		t.Error("the name is empty")
	}
}

func TestFileSystemKnowsProc(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has /proc")
	}
	if name, err := FileSystem("/proc"); err != nil || name != "proc" {
		t.Errorf("FileSystem(/proc) = %q, %v; want proc", name, err)
	}
}

func TestNoSuchDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	if _, err := FreeSpace(dir); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("FreeSpace(%s) = %v, want ErrNotExist", dir, err)
	}
	if _, err := FileSystem(dir); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("FileSystem(%s) = %v, want ErrNotExist", dir, err)
	}
}
