//go:build !unix && !windows

package sys

import (
	"errors"
	"fmt"
	"time"
)

// ProcessTimes returns an error that wraps [errors.ErrUnsupported].
func ProcessTimes() (user, system time.Duration, err error) {
	return 0, 0, fmt.Errorf("CPU time is not known: %w", errors.ErrUnsupported)
}
