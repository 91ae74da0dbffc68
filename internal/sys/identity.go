//go:build unix

package sys

import (
	"os"
	"syscall"
)

// Identity returns the device and inode of an open file, or 0 and 0 if they are not known.
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
