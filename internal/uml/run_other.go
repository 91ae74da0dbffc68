//go:build !linux

package uml

import (
	"context"
	"errors"
	"fmt"
	"os"
)

var errNotLinux = fmt.Errorf("User-Mode Linux is a program of Linux: %w", errors.ErrUnsupported)

// Run boots the kernel and runs the guest; it can on Linux only.
func (k Kernel) Run(context.Context, Guest) error { return errNotLinux }

// NewLine returns the ends of a line to a guest; there are guests on Linux only.
func NewLine() (outside, inside *os.File, err error) { return nil, nil, errNotLinux }
