//go:build unix

package sys

import (
	"os"
	"syscall"
)

// Identity says which file an open file is, or 0 and 0 where that is not known.
func Identity(f *os.File) (device, inode uint64) {
	info, err := f.Stat()
	if err != nil {
		return 0, 0
	}
	is, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return uint64(is.Dev), uint64(is.Ino)
}
