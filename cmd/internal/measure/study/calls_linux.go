package study

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// OpenDataSync opens a file whose every write returns when its data is on stable
// storage; 0 where there is no such flag.
const OpenDataSync = syscall.O_DSYNC

// Reflinks makes the second file share the first one's bytes.
func Reflinks(from, to int) error { return unix.IoctlFileClone(to, from) }
