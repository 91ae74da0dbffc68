//go:build !linux && !darwin && !windows

package sys

import (
	"errors"
	"fmt"
)

// FreeSpace returns an error that wraps [errors.ErrUnsupported].
func FreeSpace(dir string) (int64, error) {
	return 0, fmt.Errorf("free space of %s is not known: %w", dir, errors.ErrUnsupported)
}
