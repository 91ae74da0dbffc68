//go:build unix

package gen

import (
	"io/fs"
	"os"
	"syscall"
)

// asItIs are flags for a name where another user may have put something: open waits for no pipe,
// and follows no link to a device.
const asItIs = syscall.O_NONBLOCK | syscall.O_NOFOLLOW

// isLeftover reports whether a file may be left by a killed gen of this user.
func isLeftover(info fs.FileInfo) bool {
	is, ok := info.Sys().(*syscall.Stat_t)
	return ok && is.Nlink == 1 && int(is.Uid) == os.Geteuid()
}
