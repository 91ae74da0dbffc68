//go:build unix

package copies

import (
	"io/fs"
	"syscall"
)

// allocated is how many bytes a file takes on the disk.
func allocated(info fs.FileInfo) (bytes int64, ok bool) {
	is, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int64(is.Blocks) * 512, true // stat(2): blocks are of 512 bytes
}
