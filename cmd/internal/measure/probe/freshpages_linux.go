package probe

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// MapFresh returns zeroed memory that has no page yet: the first touch of each is a
// page fault. It refuses huge pages (madvise(2), MADV_NOHUGEPAGE), so that no
// fault brings more than one. Only [Unmap] frees it; the garbage collector does not.
func MapFresh(size int) ([]byte, error) {
	memory, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("mmap of %d bytes: %w", size, err)
	}
	// A kernel without huge pages does not know the advice, and needs none.
	if err := unix.Madvise(memory, unix.MADV_NOHUGEPAGE); err != nil && !errors.Is(err, unix.EINVAL) {
		return nil, errors.Join(fmt.Errorf("madvise: %w", err), Unmap(memory))
	}
	return memory, nil
}

// Unmap frees what MapFresh returned; nothing may touch it afterwards.
func Unmap(memory []byte) error { return unix.Munmap(memory) }
