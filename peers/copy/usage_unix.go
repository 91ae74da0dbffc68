//go:build unix

package main

import (
	"io/fs"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// childrenTime is the CPU time of the processes that this one has waited for.
func childrenTime() time.Duration {
	var used unix.Rusage
	if unix.Getrusage(unix.RUSAGE_CHILDREN, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// allocated is how many bytes a file takes on the disk.
func allocated(info fs.FileInfo) (bytes int64, ok bool) {
	is, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int64(is.Blocks) * 512, true // stat(2): blocks are of 512 bytes
}

// settle writes out what earlier trials left, so that no arm pays for the one
// before it.
func settle() { unix.Sync() }
