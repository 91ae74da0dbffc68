//go:build !linux

package probe

import (
	"errors"
	"fmt"
	"runtime"
)

// A SyscallCounter counts the system calls of this process. There is none on
// this system.
type SyscallCounter struct{}

// StartSyscallCounter returns an error that wraps [errors.ErrUnsupported].
func StartSyscallCounter() (*SyscallCounter, error) {
	return nil, fmt.Errorf("system calls can't be counted on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Stop returns an error that wraps [errors.ErrUnsupported].
func (c *SyscallCounter) Stop() (SyscallCounts, error) {
	return SyscallCounts{}, fmt.Errorf("system calls can't be counted on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
