package sys

import (
	"errors"
	"syscall"
)

// mostInterruptions is how often a call is made again. A signal interrupts a call now and
// then; a call that is interrupted each time would else never end.
const mostInterruptions = 100

// Uninterrupted makes a call again when a signal has interrupted it.
func Uninterrupted(call func() error) (err error) {
	for range mostInterruptions {
		if err = call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
	return err
}
