package sys

import (
	"os"

	"golang.org/x/sys/unix"
)

// MemoryFile returns a new file in memory without a path. Its memory grows with the bytes written.
func MemoryFile(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}
