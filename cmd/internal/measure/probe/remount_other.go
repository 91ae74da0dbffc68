//go:build !linux

package probe

import (
	"errors"
	"fmt"
	"runtime"
)

// Remount returns an error that wraps [errors.ErrUnsupported].
func Remount(dir string) error {
	return fmt.Errorf("%s can't be remounted on %s: %w", dir, runtime.GOOS, errors.ErrUnsupported)
}
