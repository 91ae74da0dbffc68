package sys

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Reserve takes room on the disk for the first size bytes of a file that is going to be mapped. Without
// it, the first store on a full disk ends the process by SIGBUS. Where a file system or a container
// lacks the call, and elsewhere than on Linux, it does nothing.
func Reserve(f *os.File, size int64) error {
	err := Uninterrupted(func() error { return unix.Fallocate(int(f.Fd()), 0, 0, size) })
	if err == nil || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, unix.EPERM) {
		return nil
	}
	return &os.PathError{Op: "reserve room for", Path: f.Name(), Err: err}
}
