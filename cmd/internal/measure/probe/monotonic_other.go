//go:build !unix || solaris || aix || netbsd

package probe

import (
	"errors"
	"fmt"
	"time"
)

// Monotonic returns an error that wraps [errors.ErrUnsupported].
func Monotonic() (time.Duration, error) {
	return 0, fmt.Errorf("no clock that processes share: %w", errors.ErrUnsupported)
}
