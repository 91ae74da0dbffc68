package isolate

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/mountinfo"
)

// Mounts runs a test, for root, in a child process with a mount namespace of its own. The test
// can't change the machine's mounts.
func Mounts(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	switch {
	case os.Geteuid() != 0:
		t.Skip("to mount takes root")
	case isChild(t):
		leaveOthers(t)
		test(t)
	default:
		run(t, &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS})
	}
}

// leaveOthers unmounts the mounts of other tests in the new namespace. A copy of a mount here would
// keep its file system busy for the test that unmounts it.
func leaveOthers(t *testing.T) {
	t.Helper()
	mounts, err := mountinfo.Read()
	if err != nil {
		t.Fatal(err)
	}
	temporary := filepath.Clean(os.TempDir()) + "/"
	for _, m := range mounts {
		if strings.HasPrefix(m.Point, temporary) {
			unix.Unmount(m.Point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) // the mounts below it are detached with it
		}
	}
}
