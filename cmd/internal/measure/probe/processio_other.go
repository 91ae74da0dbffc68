//go:build !linux

package probe

import "errors"

// ReadProcessIO returns errors.ErrUnsupported.
func ReadProcessIO() (ProcessIO, error) { return ProcessIO{}, errors.ErrUnsupported }
