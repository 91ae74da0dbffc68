//go:build unix

package workdir

import (
	"io/fs"
	"os"
	"syscall"
)

// isOwn reports whether a directory is this user's, and no other user may write to it. An access
// control list that lets another user write shows in the group's bits.
func isOwn(info fs.FileInfo) bool {
	is, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(is.Uid) == os.Geteuid() && info.Mode().Perm()&0o022 == 0
}
