//go:build !linux && !darwin && !windows

package sys

import (
	"errors"
	"os"
)

// The operations of flock.
const lockAlone, lockWait, lockShared, unlock = 0, 0, 0, 0

func flock(*os.File, int) error { return errors.ErrUnsupported }
