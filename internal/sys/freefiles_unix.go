//go:build linux || darwin

package sys

import (
	"errors"
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

// FreeFiles returns the number of files that can still be made on dir's file system. If the file
// system has no fixed number, the error wraps [errors.ErrUnsupported].
func FreeFiles(dir string) (int64, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return 0, fmt.Errorf("how many files %s has room for is not known: statfs: %w", dir, err)
	}
	if stat.Files == 0 {
		return 0, fmt.Errorf("%s has no fixed number of files: %w", dir, errors.ErrUnsupported)
	}
	return int64(min(stat.Ffree, math.MaxInt64)), nil
}
