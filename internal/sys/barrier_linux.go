package sys

import "golang.org/x/sys/unix"

// The commands of membarrier(2), from linux/membarrier.h; Linux 4.14.
const (
	membarrierPrivate         = 1 << 3
	membarrierRegisterPrivate = 1 << 4
)

// RegisterBarrier lets this process use [Barrier]. The first time takes some ms.
func RegisterBarrier() error { return membarrier(membarrierRegisterPrivate) }

// Barrier has every thread of this process that runs pass a full memory barrier
// before it returns. It must have been registered.
func Barrier() error { return membarrier(membarrierPrivate) }

func membarrier(command uintptr) error {
	if _, _, errno := unix.RawSyscall(unix.SYS_MEMBARRIER, command, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
