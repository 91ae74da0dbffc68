package sys

import (
	"os"
	"syscall"
)

// A Descriptor is that of a file which nobody else closes: writes to it need no guard.
type Descriptor struct{ fd int }

// NewDescriptor returns the descriptor of f, which is valid until f is closed. It reports false on a system where
// WriteOnce has no such call.
func NewDescriptor(f *os.File) (d Descriptor, ok bool) { return Descriptor{int(f.Fd())}, true }

// WriteOnce makes one call for p, and returns how many bytes the kernel took. A call that is to be made again is no error.
func (d Descriptor) WriteOnce(p []byte) (n int, err error) {
	n, err = syscall.Write(d.fd, p) // tells the race detector of p
	if err == syscall.EINTR || err == syscall.EAGAIN {
		err = nil
	}
	return max(n, 0), err
}
