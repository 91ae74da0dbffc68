//go:build amd64 || arm64

package sys

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func fstatat(dir int, name Name, s *unix.Stat_t, flags int) error {
	_, _, e := syscall.Syscall6(unix.SYS_NEWFSTATAT, uintptr(dir), uintptr(unsafe.Pointer(name.pointer())),
		uintptr(unsafe.Pointer(s)), uintptr(flags), 0, 0)
	return errnoError(e)
}
