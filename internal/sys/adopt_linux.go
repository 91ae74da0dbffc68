package sys

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// WaitForNobody are flags of open: it does not wait for a pipe's other end, and takes no terminal.
const WaitForNobody = unix.O_NONBLOCK | unix.O_NOCTTY

// Adopt returns a descriptor for the calls of a [Disk]. It takes f.
func Adopt(f *os.File) (fd int, err error) {
	defer f.Close() // nothing was written to it
	return unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
}

// StatOf returns the attributes that package os has returned.
func StatOf(info fs.FileInfo) Stat {
	is := info.Sys().(*syscall.Stat_t)
	return Stat{Device: uint64(is.Dev), Inode: is.Ino, Links: uint64(is.Nlink), Mode: is.Mode, UID: is.Uid, GID: is.Gid,
		Size: is.Size, Blocks: is.Blocks}
}
