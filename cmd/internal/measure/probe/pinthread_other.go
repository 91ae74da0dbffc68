//go:build !linux

package probe

import "errors"

// PinThread returns errors.ErrUnsupported.
func PinThread() error { return errors.ErrUnsupported }
