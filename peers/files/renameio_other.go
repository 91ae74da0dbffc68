//go:build !unix

package main

import (
	"errors"
	"fmt"
)

func renameioWrite(string, []byte) error { return fmt.Errorf("renameio: %w", errors.ErrUnsupported) }
