//go:build unix

package probe

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// ProcessUsage returns what this process has used so far: getrusage(2).
func ProcessUsage() (Usage, error) {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		return Usage{}, fmt.Errorf("CPU time is not known: getrusage: %w", err)
	}
	// The counts are 32 bits wide on some systems.
	return Usage{
		User:                time.Duration(r.Utime.Nano()),
		System:              time.Duration(r.Stime.Nano()),
		VoluntarySwitches:   int64(r.Nvcsw),
		InvoluntarySwitches: int64(r.Nivcsw),
		MinorFaults:         int64(r.Minflt),
		MajorFaults:         int64(r.Majflt),
		BlocksIn:            int64(r.Inblock),
		BlocksOut:           int64(r.Oublock),
	}, nil
}
