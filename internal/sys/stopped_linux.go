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
// file whose bytes were written and whose size was not.
func stopped(fd int) error {
	if canStop(fileSystem(fd)) {
		return refusal(fd)
	}
	return nil
}

// canStop reports whether a file system of that kind may stop as stopped says.
func canStop(kind uint32) bool {
	return kind == unix.EXT4_SUPER_MAGIC || kind == unix.XFS_SUPER_MAGIC || kind == unix.BTRFS_SUPER_MAGIC
}

// refusal returns the error by which a stopped file system refuses a call that changes the file. The
// call changes nothing on a working file system: it removes an attribute that does not exist.
//
// Note: on ext4 no read-only call reports it, because ext4 checks its journal at the start of a
// change. BenchmarkBehindASync times it: some 0.5 µs.
func refusal(fd int) error {
	_, _, e := unix.Syscall(unix.SYS_FREMOVEXATTR, uintptr(fd), uintptr(unsafe.Pointer(&absent[0])), 0)
	switch e {
	case unix.EROFS, unix.EIO, unix.EUCLEAN:
		return e
	}
	return nil // mostly ENODATA, or the caller may not ask
}

// fileSystem returns the kind of an open file's file system, or 0 if the kernel does not say.
func fileSystem(fd int) uint32 {
	var s unix.Statfs_t
	if unix.Fstatfs(fd, &s) != nil {
		return 0
	}
	return uint32(s.Type) // the field may be negative
}
