//go:build !linux

package sys

import "errors"

// RegisterBarrier is not to be had here.
func RegisterBarrier() error { return errors.ErrUnsupported }

// Barrier is not to be had here.
func Barrier() error { return errors.ErrUnsupported }
