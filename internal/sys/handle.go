package sys

import (
	"os"
	"syscall"
)

// A Handle makes system calls on an open file. It allocates only at the first call of each kind.
// One goroutine at a time may use it. The descriptor stays open during a call; after the
// file's Close a call fails with os.ErrClosed.
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
