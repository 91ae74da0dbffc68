//go:build !linux

package probe

import "errors"

// EmptyCalls returns errors.ErrUnsupported: Darwin and Windows have no stable system
// calls, only libraries in front of them.
func EmptyCalls(int) error { return errors.ErrUnsupported }

// EmptyScheduledCalls returns errors.ErrUnsupported.
func EmptyScheduledCalls(int) error { return errors.ErrUnsupported }
