package records

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// fdatasync is called instead of fsync by programs that care for their speed.
func fdatasync(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

// sleep blocks the thread in a system call, as a sync does.
func sleep(d time.Duration) error {
	// Without this the kernel adds some 50 µs, so that it wakes less often. It is of the thread.
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return err
	}
	t := unix.NsecToTimespec(int64(d))
	for {
		if err := unix.Nanosleep(&t, &t); err != unix.EINTR { // of the runtime, which preempts goroutines
			return err
		}
	}
}

// look makes the calls that internal/sys makes behind a sync, on any file system.
func look(f *os.File) error {
	var s unix.Statx_t
	if err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_NLINK, &s); err != nil {
		return os.NewSyscallError("statx", err)
	}
	switch err := unix.Fremovexattr(int(f.Fd()), "user.holdfast.none"); err {
	case nil, unix.ENODATA, unix.ENOTSUP:
		return nil
	default:
		return os.NewSyscallError("fremovexattr", err)
	}
}
