//go:build !linux

package sys

import "errors"

// EmptyCalls is not to be had here: Darwin and Windows have no stable system
// calls, only libraries in front of them.
func EmptyCalls(int) error { return errors.ErrUnsupported }

// EmptyScheduledCalls is not to be had here.
func EmptyScheduledCalls(int) error { return errors.ErrUnsupported }
