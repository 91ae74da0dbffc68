//go:build !linux

package probe

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// AdviseAccess returns an error that wraps [errors.ErrUnsupported].
func AdviseAccess(f *os.File, _ Access) error {
	return fmt.Errorf("%s: no advice on reading can be given on %s: %w", f.Name(), runtime.GOOS, errors.ErrUnsupported)
}
