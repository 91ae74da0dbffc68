package sys

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ReadRandomly tells the kernel that f will be read here and there
// (posix_fadvise(2), POSIX_FADV_RANDOM): it then reads nothing ahead.
func ReadRandomly(f *os.File) error {
	err := onDescriptor(f, func(fd int) error { return unix.Fadvise(fd, 0, 0, unix.FADV_RANDOM) })
	if err != nil {
		return fmt.Errorf("read-ahead of %s can't be turned off: posix_fadvise: %w", f.Name(), err)
	}
	return nil
}
