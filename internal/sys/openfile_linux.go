package sys

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// OpenFile is os.OpenFile in fewer system calls for files and directories: it does not offer
// epoll(7) files that epoll refuses. Pipes, terminals and other devices are opened as by package
// os. It returns the attributes of a regular file that has a name, and none of others. If the caller may
// write to the file, pages that can't be written are dropped: see [Disk.DropRefused].
func OpenFile(path string, flag int, perm fs.FileMode) (f *os.File, named Stat, err error) {
	if perm != perm.Perm() {
		f, err = os.OpenFile(path, flag, perm) // package os converts the bits of special permissions
		return f, Stat{}, err
	}
	fd := -1
	err = Uninterrupted(func() (err error) {
		fd, err = syscall.Open(path, flag|syscall.O_CLOEXEC, uint32(perm))
		return err
	})
	if err != nil {
		return nil, Stat{}, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	var is Stat
	err = Uninterrupted(func() (err error) {
		is, err = Disk{}.StatFD(fd)
		return err
	})
	kind := is.Mode & unix.S_IFMT
	if err == nil && kind == unix.S_IFREG && is.Size > 0 && flag&(os.O_WRONLY|os.O_RDWR) != 0 {
		written := int64(0)
		if flag&os.O_APPEND != 0 {
			written = is.Size - 1 // the next byte may be in its block
		}
		Disk{}.DropRefused(fd, written)
	}
	if err == nil && (kind == unix.S_IFREG || kind == unix.S_IFDIR) || flag&unix.O_NONBLOCK != 0 {
		if err == nil && kind == unix.S_IFREG && is.Links > 0 {
			named = is
		}
		return os.NewFile(uintptr(fd), path), named, nil
	}
	// A blocked call must hold no thread, and Close must end it: package os polls a nonblocking
	// descriptor. A file that can't be polled must block.
	err = unix.SetNonblock(fd, true)
	f = os.NewFile(uintptr(fd), path)
	if err == nil && f.SetDeadline(time.Time{}) != nil {
		err = unix.SetNonblock(fd, false)
	}
	if err != nil {
		return nil, Stat{}, errors.Join(&fs.PathError{Op: "fcntl", Path: path, Err: err}, f.Close())
	}
	return f, Stat{}, nil
}
