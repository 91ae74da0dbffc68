package sys

import (
	"os"

	"golang.org/x/sys/unix"
)

// The operations of flock(2).
const lockAlone, lockWait, lockShared, unlock = unix.LOCK_EX | unix.LOCK_NB, unix.LOCK_EX, unix.LOCK_SH | unix.LOCK_NB, unix.LOCK_UN

func flock(f *os.File, how int) error { return unix.Flock(int(f.Fd()), how) }
