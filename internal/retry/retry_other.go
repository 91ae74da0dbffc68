//go:build !windows

package retry

import "syscall"

// commonErrno returns the number itself: only Windows has its own.
func commonErrno(errno syscall.Errno) syscall.Errno { return errno }
