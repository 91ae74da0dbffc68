package sys

import (
	"os"
	"syscall"
)

// A ReadAdvice advises the kernel how an open file is being read, without allocating:
// posix_fadvise(2). A nil error promises nothing. One goroutine at a time may call each method;
// after the file's Close it fails. On a system without the call each method returns
// [errors.ErrUnsupported].
type ReadAdvice struct {
	raw syscall.RawConn
	readAdviceState
}

// NewReadAdvice returns a ReadAdvice on f, which must stay open while it is used.
func NewReadAdvice(f *os.File) (*ReadAdvice, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	a := &ReadAdvice{raw: raw}
	a.init()
	return a, nil
}
