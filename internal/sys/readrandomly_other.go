//go:build !linux

package sys

import (
	"errors"
	"os"
)

// ReadRandomly is not to be had here.
func ReadRandomly(*os.File) error { return errors.ErrUnsupported }
