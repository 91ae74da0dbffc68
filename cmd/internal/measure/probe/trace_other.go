//go:build !linux

package probe

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
)

// MarkSyscalls returns an error that wraps [errors.ErrUnsupported].
func MarkSyscalls(begin bool) error {
	return fmt.Errorf("system calls can't be counted on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// TraceSyscalls returns an error that wraps [errors.ErrUnsupported], and doesn't
// run cmd.
func TraceSyscalls(cmd *exec.Cmd) ([]SyscallCounts, error) {
	return nil, fmt.Errorf("system calls can't be counted on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
