package sys

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// hiding holds, for each mount, whether its file system may rename a removed file that is open: one
// fstatfs for each mount, and not for each sync. The number of a device is no key: it is given to the
// next file system that is mounted.
var hiding sync.Map // of bool, by uint64

// canHide reports whether a file system of that kind may keep a removed file under a hidden name.
func canHide(kind uint32) bool {
	return kind == unix.FUSE_SUPER_MAGIC || kind == unix.NFS_SUPER_MAGIC
}

// isHidden reports whether an open file with one name was removed on a file system that keeps such a
// file under a hidden name: NFS, and servers of FUSE such as ntfs-3g. It knows that by the kernel's
// name of the file, so a file that only the server removes is not noticed. The mount's number is one
// that no other ever gets, or 0.
func isHidden(fd int, mount uint64) bool {
	hides, known := hiding.Load(mount)
	if !known {
		kind := fileSystem(fd)
		if kind == 0 {
			return false
		}
		hides = canHide(kind)
		if mount != 0 {
			hiding.Store(mount, hides)
		}
	}
	if !hides.(bool) {
		return false
	}
	path, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return false
	}
	if strings.HasPrefix(filepath.Base(path), ".nfs0") {
		return true
	}
	if !strings.HasSuffix(path, " (deleted)") {
		return false
	}
	var is, named unix.Stat_t // a file may have such a name
	return unix.Fstat(fd, &is) != nil || unix.Lstat(path, &named) != nil || is.Ino != named.Ino || is.Dev != named.Dev
}
