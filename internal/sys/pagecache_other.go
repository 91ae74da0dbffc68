//go:build !linux

package sys

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// PageCache returns an error that wraps [errors.ErrUnsupported].
func PageCache(f *os.File) (Residency, error) {
	return Residency{}, fmt.Errorf("page cache of %s is not known on %s: %w", f.Name(), runtime.GOOS, errors.ErrUnsupported)
}
