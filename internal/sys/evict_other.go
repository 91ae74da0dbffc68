//go:build !linux

package sys

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// Evict returns an error that wraps [errors.ErrUnsupported].
func Evict(f *os.File) error {
	return fmt.Errorf("%s can't be evicted from the page cache on %s: %w", f.Name(), runtime.GOOS, errors.ErrUnsupported)
}
