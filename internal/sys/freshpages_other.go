//go:build !linux

package sys

import "errors"

// MapFresh is not to be had here.
func MapFresh(int) ([]byte, error) { return nil, errors.ErrUnsupported }

// Unmap is not to be had here.
func Unmap([]byte) error { return errors.ErrUnsupported }
