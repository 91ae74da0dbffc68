package probe

import (
	"fmt"
	"time"

	"golang.org/x/sys/windows"
)

// ProcessUsage returns the CPU time that this process has used so far. Windows keeps no
// count of context switches or of blocks for a process, and its page faults are not
// distinguished: all counts are 0.
func ProcessUsage() (Usage, error) {
	var created, ended, kernel, own windows.Filetime
	if err := windows.GetProcessTimes(windows.CurrentProcess(), &created, &ended, &kernel, &own); err != nil {
		return Usage{}, fmt.Errorf("CPU time is not known: GetProcessTimes: %w", err)
	}
	return Usage{User: filetimeSpan(own), System: filetimeSpan(kernel)}, nil
}

// filetimeSpan reads a Filetime that is a duration: units of 100 ns.
// (Its Nanoseconds method reads it as a date.)
func filetimeSpan(t windows.Filetime) time.Duration {
	return time.Duration(int64(t.HighDateTime)<<32|int64(t.LowDateTime)) * 100
}
