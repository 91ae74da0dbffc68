package probe

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Extents returns the number of extents of a file on the disk: FS_IOC_FIEMAP of linux/fiemap.h, which
// only counts if it gets no room for the extents. Data that is not on the disk yet has no extent: sync
// the file before.
func Extents(f *os.File) (int, error) {
	m := struct {
		start, length           uint64
		flags, mapped, room, to uint32
	}{length: ^uint64(0)}
	const fiemap = 0xc020660b // _IOWR('f', 11, struct fiemap)
	if _, _, e := syscall.Syscall(unix.SYS_IOCTL, f.Fd(), fiemap, uintptr(unsafe.Pointer(&m))); e != 0 {
		return 0, os.NewSyscallError("FS_IOC_FIEMAP", e)
	}
	return int(m.mapped), nil
}

// BlockBytes returns the size of the blocks in which the file system would have a file
// written: st_blksize.
func BlockBytes(f *os.File) (int64, error) {
	var s unix.Stat_t
	err := unix.Fstat(int(f.Fd()), &s)
	return int64(s.Blksize), os.NewSyscallError("fstat", err)
}
