package sys

import (
	"os"
	"syscall"
)

// A Handle makes system calls on an open file, and allocates at the first of each alone. One goroutine
// at a time may call each method. It keeps the descriptor alive while it runs and fails with
// os.ErrClosed after the file's Close.
type Handle struct {
	raw syscall.RawConn
	handleState
}

// NewHandle returns a Handle on f, which must stay open while it is used.
func NewHandle(f *os.File) (*Handle, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &Handle{raw: raw}, nil
}
