//go:build linux || darwin

package sys

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

// FreeSpace returns the number of bytes that an ordinary user may still write to dir's file system.
// The part reserved for root is left out, also for root.
func FreeSpace(dir string) (int64, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return 0, fmt.Errorf("free space of %s is not known: statfs: %w", dir, err)
	}
	size := uint64(stat.Bsize)
	if size != 0 && stat.Bavail > math.MaxInt64/size {
		return math.MaxInt64, nil
	}
	return int64(stat.Bavail * size), nil
}
