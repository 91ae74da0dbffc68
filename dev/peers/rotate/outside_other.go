//go:build !linux

package rotate

import (
	"errors"
	"fmt"
)

var errLinuxAlone = fmt.Errorf("%w: it needs Linux", errors.ErrUnsupported)

func forbidChanges(string, bool) error { return errLinuxAlone }

func mountSmall(string, int64) (func() error, error) { return nil, errLinuxAlone }
