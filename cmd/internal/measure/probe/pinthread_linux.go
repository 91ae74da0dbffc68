package probe

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// PinThread keeps the calling thread on the first CPU that it may run on. The
// goroutine must be locked to its thread, and should end without unlocking: the
// thread then ends too, and no other goroutine runs pinned.
func PinThread() error {
	var may, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		return fmt.Errorf("sched_getaffinity: %w", err)
	}
	for cpu := range len(may) * 64 {
		if may.IsSet(cpu) {
			one.Set(cpu)
			break
		}
	}
	if one.Count() == 0 {
		return errors.New("the thread may run on no CPU that is known")
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("sched_setaffinity: %w", err)
	}
	return nil
}
