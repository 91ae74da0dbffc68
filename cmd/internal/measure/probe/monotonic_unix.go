//go:build unix && !solaris && !aix && !netbsd

package probe

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Monotonic returns CLOCK_MONOTONIC of clock_gettime(2): the time since some moment that
// is the same for all processes until the machine restarts. So one process can put a
// time into a file, and another can compute how long ago that was. The monotonic reading
// of [time.Now] can't do that, nor can the time of day, which may be set.
func Monotonic() (time.Duration, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0, fmt.Errorf("no clock that processes share: clock_gettime: %w", err)
	}
	return time.Duration(now.Nano()), nil
}
