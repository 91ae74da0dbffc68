//go:build unix && !solaris && !aix

package sys

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Monotonic returns the time since some moment that is the same for all processes
// of this machine until it is started anew: CLOCK_MONOTONIC, clock_gettime(2). So
// one process can put a time into a file and another tell how long ago that was,
// which neither [time.Now]'s own monotonic reading nor the time of day, which may
// be set, is good for.
func Monotonic() (time.Duration, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0, fmt.Errorf("no clock that processes share: clock_gettime: %w", err)
	}
	return time.Duration(now.Nano()), nil
}
