package sys

import (
	"os"
	"syscall"
)

// A ReadAdvice advises the kernel how an open file is being read, without
// allocating: posix_fadvise(2). It is advice; a nil error promises nothing. Each
// method may be called by one goroutine at a time, and fails after the file's
// Close. Where the system has no such call, each returns [errors.ErrUnsupported].
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
