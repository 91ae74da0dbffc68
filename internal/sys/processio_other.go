//go:build !linux

package sys

import "errors"

// ReadProcessIO is errors.ErrUnsupported here.
func ReadProcessIO() (ProcessIO, error) { return ProcessIO{}, errors.ErrUnsupported }
