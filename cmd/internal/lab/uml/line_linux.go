package uml

import (
	"os"

	"golang.org/x/sys/unix"
)

// NewLine returns the two ends of a line between the program outside and the one
// inside. The caller closes outside; inside goes into a [Guest]. When the guest has
// ended, a read of outside returns io.EOF or ECONNRESET. The program inside must write
// first: until then its terminal may change the bytes sent to it. The terminal holds
// 4095 bytes (termios(3)): send no more before the program has read them. The program inside may
// send any number of bytes.
func NewLine() (outside, inside *os.File, err error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	return os.NewFile(uintptr(ends[0]), "line"), os.NewFile(uintptr(ends[1]), "line inside"), nil
}
