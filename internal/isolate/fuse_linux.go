package isolate

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Fuse runs a test as an ordinary user who may open /dev/fuse. If root runs the tests, it does so
// in a child process with its own mounts, which include such a device.
func Fuse(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	switch {
	case os.Geteuid() != 0 && unix.Access("/dev/fuse", unix.R_OK|unix.W_OK) != nil:
		t.Skip("/dev/fuse can't be opened")
	case os.Geteuid() != 0:
		test(t)
	case isChild(t):
		if err := openFuse(); err != nil {
			t.Skip("no /dev/fuse for all: ", err)
		}
		const nobody = 65534
		// A process that changes its user can't read its own /proc files (PR_SET_DUMPABLE(2const)),
		// and can't map users.
		err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody), unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0))
		if err != nil {
			t.Skip("root can't become an ordinary user: ", err)
		}
		test(t)
	default:
		run(t, &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS})
	}
}

// openFuse mounts a device that all users may open over /dev/fuse.
func openFuse() error {
	const dir = "/sys/fs/fuse/connections" // a directory to mount over
	if err := unix.Mount("holdfast-test", dir, "tmpfs", unix.MS_NOSUID, "mode=755"); err != nil {
		return err
	}
	device := filepath.Join(dir, "fuse")
	const number = 10<<8 | 229 // Documentation/admin-guide/devices.txt
	err := errors.Join(unix.Mknod(device, unix.S_IFCHR|0o666, number), os.Chmod(device, 0o666))
	return errors.Join(err, unix.Mount(device, "/dev/fuse", "", unix.MS_BIND, ""))
}
