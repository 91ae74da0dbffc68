//go:build !linux

package sys

import "errors"

// LowestPriority gives the calling thread the lowest priority, where the system has priorities
// of threads.
func LowestPriority() error { return errors.ErrUnsupported }
