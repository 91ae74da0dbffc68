//go:build !linux

package uml

import (
	"context"
	"errors"
	"fmt"
)

var errNotLinux = fmt.Errorf("User-Mode Linux is a program of Linux: %w", errors.ErrUnsupported)

// Run boots the kernel and runs the guest; it can on Linux only.
func (k Kernel) Run(context.Context, Guest) error { return errNotLinux }
