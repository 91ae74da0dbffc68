package sys

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// absent is the name of an attribute that does not exist.
var absent = [...]byte{'u', 's', 'e', 'r', '.', 'h', 'o', 'l', 'd', 'f', 'a', 's', 't', '.', 'n', 'o', 'n', 'e', 0}

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
