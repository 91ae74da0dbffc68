package sys

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

// The operations of flock. Nothing waits for a lock on Windows.
const lockAlone, lockWait, lockShared, unlock = 1, 2, 3, 4

// flock locks one byte. Windows lets nobody else read or write it, so it is a byte that no file reaches. A directory
// can't be locked.
func flock(f *os.File, how int) (err error) {
	const now = windows.LOCKFILE_FAIL_IMMEDIATELY
	file, at := windows.Handle(f.Fd()), &windows.Overlapped{OffsetHigh: 1<<31 - 1}
	switch how {
	case lockAlone:
		err = windows.LockFileEx(file, now|windows.LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, at)
	case lockShared:
		err = windows.LockFileEx(file, now, 0, 1, 0, at)
	case unlock:
		err = windows.UnlockFileEx(file, 0, 1, 0, at)
	default:
		return errors.ErrUnsupported
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION), errors.Is(err, windows.ERROR_IO_PENDING):
		return syscall.EAGAIN
	}
	return errors.ErrUnsupported
}
