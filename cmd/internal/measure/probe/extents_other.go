//go:build !linux

package probe

import (
	"errors"
	"os"
)

// Extents is not known here.
func Extents(*os.File) (int, error) { return 0, errors.ErrUnsupported }

// BlockBytes is not known here.
func BlockBytes(*os.File) (int64, error) { return 0, errors.ErrUnsupported }
