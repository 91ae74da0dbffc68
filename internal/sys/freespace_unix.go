//go:build linux || darwin

package sys

import (
	"errors"
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

// roomUnknown reports whether statfs tells nothing about room: some FUSE servers report no blocks at
// all, and a read-only file system refuses a file by its own error.
func roomUnknown(s *unix.Statfs_t) bool { return s.Blocks == 0 || s.Flags&readOnly != 0 }

// FreeSpace returns the number of bytes that an ordinary user may still write to dir's file system.
// The part reserved for root is left out, also for root.
func FreeSpace(dir string) (int64, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return 0, fmt.Errorf("free space of %s is not known: statfs: %w", dir, err)
	}
	if roomUnknown(&stat) {
		return 0, fmt.Errorf("free space of %s is not known: %w", dir, errors.ErrUnsupported)
	}
	size := uint64(stat.Bsize)
	if size != 0 && stat.Bavail > math.MaxInt64/size {
		return math.MaxInt64, nil
	}
	return int64(stat.Bavail * size), nil
}
