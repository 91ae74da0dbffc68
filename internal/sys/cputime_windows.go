package sys

import (
	"fmt"
	"time"

	"golang.org/x/sys/windows"
)

// ProcessTimes returns the CPU time that this process has used so far, in its
// own code and in the kernel, all threads together. Windows counts it in clock
// ticks, commonly of 15.6 ms.
func ProcessTimes() (user, system time.Duration, err error) {
	var created, ended, kernel, own windows.Filetime
	if err := windows.GetProcessTimes(windows.CurrentProcess(), &created, &ended, &kernel, &own); err != nil {
		return 0, 0, fmt.Errorf("CPU time is not known: GetProcessTimes: %w", err)
	}
	return filetimeSpan(own), filetimeSpan(kernel), nil
}

// filetimeSpan reads a Filetime that is a length of time: units of 100 ns.
// (Its Nanoseconds method takes it for a date.)
func filetimeSpan(t windows.Filetime) time.Duration {
	return time.Duration(int64(t.HighDateTime)<<32|int64(t.LowDateTime)) * 100
}
