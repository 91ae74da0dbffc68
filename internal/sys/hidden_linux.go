package sys

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// hiding holds, for each device, whether its file system may rename a removed file that is open: one
// fstatfs for each device, and not for each sync. (A number that the kernel gives to another file
// system later has the first one's answer.)
var hiding sync.Map // of bool, by uint64

// isHidden reports whether an open file with one name was removed on a file system that keeps such a
// file under a hidden name: NFS, and servers of FUSE such as ntfs-3g. It knows that by the kernel's
// name of the file, so a file that only the server removes is not noticed.
func isHidden(fd int, device uint64) bool {
	hides, known := hiding.Load(device)
	if !known {
		var s unix.Statfs_t
		if unix.Fstatfs(fd, &s) != nil {
			return false
		}
		switch uint32(s.Type) {
		case unix.FUSE_SUPER_MAGIC, unix.NFS_SUPER_MAGIC:
			hides = true
		default:
			hides = false
		}
		hiding.Store(device, hides)
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
