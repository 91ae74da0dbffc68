//go:build linux || darwin

package sys

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Duplicate returns another descriptor of an open file. It shares the lock of TryLock, which ends
// when both are closed.
func Duplicate(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// TryLock takes the lock of the open file or directory f for this process, and reports false if
// another process has it. It never waits. The lock ends when f is closed, and when the process ends
// in any way: flock(2).
//
// An error that wraps [errors.ErrUnsupported] says that the file system has no such locks.
func TryLock(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return false, nil
	case errors.Is(err, unix.EBADF), errors.Is(err, unix.EINVAL): // a directory on NFS; a special file
		return false, fmt.Errorf("%s can't be locked: flock: %w (%w)", f.Name(), err, errors.ErrUnsupported)
	}
	return false, fmt.Errorf("%s can't be locked: flock: %w", f.Name(), err)
}
