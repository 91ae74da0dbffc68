package sys

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// evictTries is the number of Evict's requests. The kernel itself tries twice (generic_fadvise in
// mm/fadvise.c, Linux 5.15), the second time after it has emptied the lists of new pages of each
// CPU.
const evictTries = 3

// Evict makes f durable (fdatasync(2)) and asks the kernel to drop its pages (posix_fadvise(2),
// POSIX_FADV_DONTNEED). A nil error promises nothing: mapped and locked pages, pages being written,
// and pages of a file system in memory stay. Call [PageCache] after it. It may block as long as a
// sync.
func Evict(f *os.File) error {
	err := OnDescriptor(f, evict)
	if err != nil {
		return fmt.Errorf("%s can't be evicted from the page cache: %w", f.Name(), err)
	}
	return nil
}

// evict stops early when no page is resident. If that is not known, it makes all tries.
func evict(fd int) error {
	err := Uninterrupted(func() error { return unix.Fdatasync(fd) })
	if errors.Is(err, unix.EINVAL) { // a file system without the call, such as bfs
		err = Uninterrupted(func() error { return unix.Syncfs(fd) })
	}
	if err != nil {
		return fmt.Errorf("fdatasync: %w", err)
	}
	for range evictTries {
		// Offset and length 0 are the whole file: a length that ends inside the
		// last page would leave it (posix_fadvise(2), Notes).
		if err := unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED); err != nil {
			return fmt.Errorf("posix_fadvise: %w", err)
		}
		if emptied(fd) {
			return nil
		}
	}
	return nil
}

func emptied(fd int) bool {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return false
	}
	r, err := residency(fd, stat.Size)
	return err == nil && r.Resident == 0
}
