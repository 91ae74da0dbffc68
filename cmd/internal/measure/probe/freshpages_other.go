//go:build !linux

package probe

import "errors"

// MapFresh returns errors.ErrUnsupported.
func MapFresh(int) ([]byte, error) { return nil, errors.ErrUnsupported }

// Unmap returns errors.ErrUnsupported.
func Unmap([]byte) error { return errors.ErrUnsupported }
