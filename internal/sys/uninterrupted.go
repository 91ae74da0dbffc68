package sys

import (
	"errors"
	"syscall"
)

// mostInterruptions is the most repetitions of a call. A signal interrupts a call now and then; a
// call that is interrupted each time would never end otherwise.
const mostInterruptions = 100

// Uninterrupted repeats a call that a signal has interrupted.
func Uninterrupted(call func() error) (err error) {
	for range mostInterruptions {
		if err = call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
	return err
}
