//go:build unix

package main

import (
	"io/fs"
	"os"
	"syscall"
)

// isLeftover reports whether a file may be one that this user's killed gen has left.
func isLeftover(info fs.FileInfo) bool {
	is, ok := info.Sys().(*syscall.Stat_t)
	return ok && is.Nlink == 1 && int(is.Uid) == os.Geteuid()
}
