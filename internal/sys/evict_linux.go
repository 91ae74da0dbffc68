package sys

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// evictTries is how often Evict asks. The kernel itself tries twice (generic_fadvise in
// mm/fadvise.c, Linux 5.15). The second time is after it has emptied the lists of new
// pages that each CPU keeps.
const evictTries = 3

// Evict makes f durable (fdatasync(2)) and asks the kernel to drop its pages
// (posix_fadvise(2), POSIX_FADV_DONTNEED). That is no promise, also with a nil
// error: pages that are mapped, locked, being written or of a file system in
// memory stay. Ask [PageCache] after it. It may block as long as a sync.
func Evict(f *os.File) error {
	err := OnDescriptor(f, evict)
	if err != nil {
		return fmt.Errorf("%s can't be evicted from the page cache: %w", f.Name(), err)
	}
	return nil
}

// evict stops early once nothing is resident; where that is not known, it tries
// as often as it may.
func evict(fd int) error {
	err := Uninterrupted(func() error { return unix.Fdatasync(fd) })
	if errors.Is(err, unix.EINVAL) { // a file system that has none, such as bfs
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
