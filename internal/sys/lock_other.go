//go:build !linux && !darwin

package sys

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// Duplicate returns [errors.ErrUnsupported].
func Duplicate(*os.File) (*os.File, error) { return nil, errors.ErrUnsupported }

// TryLock returns an error that wraps [errors.ErrUnsupported].
func TryLock(f *os.File) (bool, error) {
	return false, fmt.Errorf("%s can't be locked on %s: %w", f.Name(), runtime.GOOS, errors.ErrUnsupported)
}
