//go:build unix

package main

import "golang.org/x/sys/unix"

// freeBytes is how much an unprivileged program may still write to dir's file
// system.
func freeBytes(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}
