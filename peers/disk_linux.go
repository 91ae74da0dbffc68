package main

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// fdatasync is what a program that cares for its speed calls instead of fsync.
func fdatasync(f *os.File) error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); err != syscall.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

// inMemory reports whether dir's file system has no disk under it, where
// "durable" means nothing.
func inMemory(dir string) bool {
	var s unix.Statfs_t
	err := unix.Statfs(dir, &s)
	return err == nil && (s.Type == unix.TMPFS_MAGIC || s.Type == unix.RAMFS_MAGIC)
}
