package uml

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// NewLine returns the two ends of a line on which the program outside and the one
// inside talk: outside is the caller's to close, inside goes into a [Guest]. What is
// read from outside ends when the guest has ended, or is ECONNRESET. The program inside
// has the first word: until then its terminal may change what it is sent. It holds 4095
// bytes (termios(3)): no more may be on their way to it at a time. What comes from it
// may be of any length.
func NewLine() (outside, inside *os.File, err error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	return os.NewFile(uintptr(ends[0]), "line"), os.NewFile(uintptr(ends[1]), "line inside"), nil
}

// linePath is what the line is inside: the first serial line.
const linePath = "/dev/ttyS0"

// openLine opens the guest's end, which is a terminal to it, and keeps it from changing
// what goes through it: termios(3), raw mode.
func openLine() (*os.File, error) {
	line, err := os.OpenFile(linePath, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	if _, err := term.MakeRaw(int(line.Fd())); err != nil {
		return nil, errors.Join(err, line.Close())
	}
	return line, nil
}
