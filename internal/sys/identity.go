//go:build unix

package sys

import (
	"io/fs"
	"os"
	"syscall"
)

// Identity returns the device and inode of an open file, or 0 and 0 if they are not known.
func Identity(f *os.File) (device, inode uint64) {
	info, err := f.Stat()
	if err != nil {
		return 0, 0
	}
	return identity(info)
}

// RegularDevice returns the device of an open regular file, or 0. A write to a pipe or to a device's own
// file waits for something else than the file system that its name is on.
func RegularDevice(f *os.File) uint64 {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	device, _ := identity(info)
	return device
}

func identity(info fs.FileInfo) (device, inode uint64) {
	is, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return uint64(is.Dev), uint64(is.Ino)
}
