//go:build !linux

package probe

import (
	"errors"
	"fmt"
	"runtime"
)

// DropCaches returns an error that wraps [errors.ErrUnsupported].
func DropCaches() error {
	return fmt.Errorf("caches can't be dropped on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// MayDropCaches returns an error that wraps [errors.ErrUnsupported].
func MayDropCaches() error { return DropCaches() }
