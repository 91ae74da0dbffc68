//go:build !unix && !windows

package probe

import (
	"errors"
	"fmt"
)

// ProcessUsage returns an error that wraps [errors.ErrUnsupported].
func ProcessUsage() (Usage, error) {
	return Usage{}, fmt.Errorf("CPU time is not known: %w", errors.ErrUnsupported)
}
