package probe

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/sys"
)

func TestDropCachesLeavesNothingClean(t *testing.T) {
	f := isolate.NewFile(t, filepath.Join(isolate.OnDisk(t), "file"), 10*os.Getpagesize())
	err := DropCaches()
	if os.Geteuid() != 0 {
		if err == nil || !strings.Contains(err.Error(), "root") {
			t.Errorf("err = %v, want one that names root", err)
		}
		return
	}
	if errors.Is(err, unix.EROFS) || errors.Is(err, os.ErrPermission) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if r, err := sys.PageCache(f); err != nil || r.Resident != 0 {
		t.Errorf("%+v, %v; want nothing resident", r, err)
	}
}

func TestDropCachesNamesAReadOnlyProc(t *testing.T) {
	isolate.Mounts(t, func(t *testing.T) {
		const dir = "/proc/sys"
		if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
			t.Skip(err)
		}
		if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
			t.Skip(err)
		}
		if err := DropCaches(); !errors.Is(err, unix.EROFS) || !strings.Contains(err.Error(), "container") {
			t.Errorf("err = %v, want that /proc/sys is read-only", err)
		}
	})
}
