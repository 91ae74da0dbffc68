//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// isUnread reports whether a file is a pipe or a socket whose other end is closed.
func isUnread(f *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(f.Fd())}}
	err := sys.Uninterrupted(func() error {
		_, err := unix.Poll(fds, 0)
		return err
	})
	return err == nil && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}
