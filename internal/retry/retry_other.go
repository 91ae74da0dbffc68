//go:build !windows

package retry

import "syscall"

// commonErrno returns the number that all systems share for an error.
func commonErrno(errno syscall.Errno) syscall.Errno { return errno }
