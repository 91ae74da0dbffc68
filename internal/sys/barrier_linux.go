package sys

import "golang.org/x/sys/unix"

// The commands of membarrier(2), from linux/membarrier.h; Linux 4.14.
const (
	membarrierPrivate         = 1 << 3
	membarrierRegisterPrivate = 1 << 4
)

// RegisterBarrier lets this process use [Barrier]. The first time takes some ms, in
// which Go's scheduler may use the processor otherwise.
func RegisterBarrier() error {
	_, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, membarrierRegisterPrivate, 0, 0)
	return membarrierError(errno)
}

// Barrier has every thread of this process that runs pass a full memory barrier
// before it returns. It fails, and costs little, as long as this process has not
// registered.
func Barrier() error {
	_, _, errno := unix.RawSyscall(unix.SYS_MEMBARRIER, membarrierPrivate, 0, 0)
	return membarrierError(errno)
}

func membarrierError(errno unix.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}
