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

// WriteOnce makes one call for p, and returns how many bytes the kernel took.
func (d Descriptor) WriteOnce(p []byte) int {
	n, _ := syscall.Write(d.fd, p) // tells the race detector of p
	return max(n, 0)
}
