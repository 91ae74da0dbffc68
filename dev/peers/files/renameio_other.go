//go:build !unix

package files

import (
	"errors"
	"fmt"
)

func renameioWrite(string, []byte) error { return fmt.Errorf("renameio: %w", errors.ErrUnsupported) }
