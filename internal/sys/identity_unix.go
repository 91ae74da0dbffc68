//go:build unix && !linux

package sys

import (
	"io/fs"
	"os"
	"syscall"
)

// WaitForNobody are flags of open: it does not wait for a pipe's other end, and takes no terminal.
const WaitForNobody = syscall.O_NONBLOCK | syscall.O_NOCTTY

// addIdentity sets the file's device, inode, number of names and owner.
func addIdentity(s *Stat, info fs.FileInfo) {
	if is, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Device, s.Inode, s.Links = uint64(is.Dev), uint64(is.Ino), uint64(is.Nlink)
		s.UID, s.GID = is.Uid, is.Gid
	}
}

func chown(f *os.File, uid, gid int) error { return f.Chown(uid, gid) }
