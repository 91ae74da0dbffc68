package probe

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// dropCaches takes 1 (page cache), 2 (dentries and inodes) or 3 (both):
// proc_sys_vm(5), Linux 2.6.16.
const dropCaches = "/proc/sys/vm/drop_caches"

// DropCaches writes dirty pages back (sync(2)) and drops the clean pages, dentries
// and inodes of the whole machine. Everything on the machine is slower for a while. It
// takes root. Pages in use stay, and so do file systems in memory.
func DropCaches() error {
	unix.Sync()
	return dropError(os.WriteFile(dropCaches, []byte("3\n"), 0))
}

// MayDropCaches returns the error that DropCaches would return if rights are missing, and drops
// nothing.
func MayDropCaches() error {
	f, err := os.OpenFile(dropCaches, os.O_WRONLY, 0)
	if err != nil {
		return dropError(err)
	}
	return f.Close()
}

// dropError adds a hint to an error.
func dropError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EROFS):
		return fmt.Errorf("caches can't be dropped: %w; /proc/sys is read-only, as in a container: do it outside", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("caches can't be dropped: %w; run as root", err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("caches can't be dropped: %w (%w); mount /proc, or use a kernel with CONFIG_SYSCTL", err, errors.ErrUnsupported)
	}
	return fmt.Errorf("caches can't be dropped: %w", err)
}
