//go:build unix

package gen

import (
	"io/fs"
	"os"
	"syscall"
)

// asItIs opens what another user may have put under a name meanwhile: it waits for no pipe,
// and follows no link to a device.
const asItIs = syscall.O_NONBLOCK | syscall.O_NOFOLLOW

// isLeftover reports whether a file may be one that this user's killed gen has left.
func isLeftover(info fs.FileInfo) bool {
	is, ok := info.Sys().(*syscall.Stat_t)
	return ok && is.Nlink == 1 && int(is.Uid) == os.Geteuid()
}
