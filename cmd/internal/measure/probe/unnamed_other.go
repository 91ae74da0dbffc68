//go:build !linux

package probe

import (
	"errors"
	"io/fs"
	"os"
)

// CreateUnnamed returns [errors.ErrUnsupported].
func CreateUnnamed(string, fs.FileMode) (*os.File, error) { return nil, errors.ErrUnsupported }

// GiveName returns [errors.ErrUnsupported].
func GiveName(*os.File, string) error { return errors.ErrUnsupported }
