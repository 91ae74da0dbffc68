//go:build unix

package command

import (
	"time"

	"golang.org/x/sys/unix"
)

// SettleAll writes out what earlier trials left on all file systems, so that no arm pays
// for the one before it.
func SettleAll() { unix.Sync() }

// childrenTime is the CPU time of the processes that this one has waited for.
func childrenTime() time.Duration {
	var used unix.Rusage
	if unix.Getrusage(unix.RUSAGE_CHILDREN, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
