//go:build !linux

package records

import (
	"fmt"
	"os"
)

func openOverwrite(string, bool) (*os.File, func(p []byte) error, error) {
	return nil, nil, fmt.Errorf("RWF_DSYNC and O_DIRECT are Linux's: %w", errUnsupported)
}
