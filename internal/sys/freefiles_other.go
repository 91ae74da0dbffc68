//go:build !linux && !darwin

package sys

import (
	"errors"
	"fmt"
)

// FreeFiles returns an error that wraps [errors.ErrUnsupported].
func FreeFiles(dir string) (int64, error) {
	return 0, fmt.Errorf("how many files %s has room for is not known: %w", dir, errors.ErrUnsupported)
}
