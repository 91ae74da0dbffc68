package probe

import (
	"fmt"
	"os"

	"github.com/holdfast-go/holdfast/internal/sys"
	"golang.org/x/sys/unix"
)

// AdviseAccess tells the kernel how f will be read, as long as it is open. It is only advice; a nil
// error promises nothing.
func AdviseAccess(f *os.File, a Access) error {
	advice := [...]int{unix.FADV_NORMAL, unix.FADV_SEQUENTIAL, unix.FADV_RANDOM}[a]
	if err := sys.OnDescriptor(f, func(fd int) error { return unix.Fadvise(fd, 0, 0, advice) }); err != nil {
		return fmt.Errorf("%s: posix_fadvise: %w", f.Name(), err)
	}
	return nil
}
