package sys

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// absent is the name of an attribute that does not exist.
var absent = [...]byte{'u', 's', 'e', 'r', '.', 'h', 'o', 'l', 'd', 'f', 'a', 's', 't', '.', 'n', 'o', 'n', 'e', 0}

// stopped returns the error of a file system that takes no more changes, or nil. It is called after
// each successful sync. After ext4 or xfs could not write its journal, or btrfs its trees, the
// unwritten changes are lost. But fsync(2) of a directory still succeeds, and on ext4 also of a
// file whose bytes were written and whose size was not. Such a file system refuses a call that
// changes the file. So stopped makes such a call, which changes nothing on a working file system:
// it removes an attribute that does not exist.
//
// Note: on ext4 no read-only call reports it, because ext4 checks its journal at the start of a
// change. Both calls take 2.6 µs at most; a write and an fdatasync take 131 µs with them and
// without.
func stopped(fd int) error {
	var s unix.Statfs_t
	if unix.Fstatfs(fd, &s) != nil {
		return nil
	}
	switch uint32(s.Type) { // the field may be negative
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC:
	default:
		return nil
	}
	_, _, e := unix.Syscall(unix.SYS_FREMOVEXATTR, uintptr(fd), uintptr(unsafe.Pointer(&absent[0])), 0)
	switch e {
	case unix.EROFS, unix.EIO, unix.EUCLEAN:
		return e
	}
	return nil // mostly ENODATA, or the caller may not ask
}
