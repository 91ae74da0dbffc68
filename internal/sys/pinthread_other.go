//go:build !linux

package sys

import "errors"

// PinThread is not to be had here.
func PinThread() error { return errors.ErrUnsupported }
