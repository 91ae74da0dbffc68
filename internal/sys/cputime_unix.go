//go:build unix

package sys

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// ProcessTimes returns the CPU time that this process has used so far, in its
// own code and in the kernel, all threads together.
//
// The unit is a nanosecond; the system counts in microseconds, and some in
// clock ticks.
func ProcessTimes() (user, system time.Duration, err error) {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return 0, 0, fmt.Errorf("CPU time is not known: getrusage: %w", err)
	}
	return time.Duration(usage.Utime.Nano()), time.Duration(usage.Stime.Nano()), nil
}
