package probe

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

func TestMissingUnnamedFilesAreReportedAsUnsupported(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may try to make a file in proc")
	}
	if f, err := CreateUnnamed("/proc", 0o666); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("in proc: %v, %v", f, err)
	}
	isolate.Mounts(t, func(t *testing.T) {
		dir := t.TempDir()
		if err := unix.Unmount("/proc", unix.MNT_DETACH); err != nil {
			t.Skip("proc can't be unmounted: ", err)
		}
		if f, err := CreateUnnamed(dir, 0o666); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("without proc: %v, %v", f, err)
		}
	})
}
