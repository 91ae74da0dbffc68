//go:build !linux

package uml

import (
	"context"
	"errors"
	"fmt"
	"os"
)

var errNotLinux = fmt.Errorf("User-Mode Linux is a program of Linux: %w", errors.ErrUnsupported)

// Run returns an error: a guest runs on Linux only.
func (k Kernel) Run(context.Context, Guest) error { return errNotLinux }

// NewLine returns an error: a guest runs on Linux only.
func NewLine() (outside, inside *os.File, err error) { return nil, nil, errNotLinux }
