//go:build !linux && !darwin && !windows

package sys

import (
	"errors"
	"fmt"
)

// FileSystem returns an error that wraps [errors.ErrUnsupported].
func FileSystem(dir string) (string, error) {
	return "", fmt.Errorf("file system of %s is not known: %w", dir, errors.ErrUnsupported)
}
