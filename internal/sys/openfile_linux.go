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
// os. named is true for a regular file that has a name.
func OpenFile(path string, flag int, perm fs.FileMode) (f *os.File, named bool, err error) {
	if perm != perm.Perm() {
		f, err = os.OpenFile(path, flag, perm) // package os converts the bits of special permissions
		return f, false, err
	}
	fd := -1
	err = Uninterrupted(func() (err error) {
		fd, err = syscall.Open(path, flag|syscall.O_CLOEXEC, uint32(perm))
		return err
	})
	if err != nil {
		return nil, false, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	var is Stat
	err = Uninterrupted(func() (err error) {
		is, err = Disk{}.StatFD(fd)
		return err
	})
	kind := is.Mode & unix.S_IFMT
	if err == nil && (kind == unix.S_IFREG || kind == unix.S_IFDIR) || flag&unix.O_NONBLOCK != 0 {
		return os.NewFile(uintptr(fd), path), err == nil && kind == unix.S_IFREG && is.Links > 0, nil
	}
	// A blocked call must hold no thread, and Close must end it: package os polls a nonblocking
	// descriptor. A file that can't be polled must block.
	err = unix.SetNonblock(fd, true)
	f = os.NewFile(uintptr(fd), path)
	if err == nil && f.SetDeadline(time.Time{}) != nil {
		err = unix.SetNonblock(fd, false)
	}
	if err != nil {
		return nil, false, errors.Join(&fs.PathError{Op: "fcntl", Path: path, Err: err}, f.Close())
	}
	return f, false, nil
}
