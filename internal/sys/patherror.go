package sys

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// PathError returns the error of a call on a path as os.IsNotExist, os.IsExist and os.IsPermission
// know it: these know only the errors of package os. It returns nil if the error is none of the three.
func PathError(op, path string, err error) *fs.PathError {
	var number syscall.Errno
	if errors.As(err, &number) && (os.IsNotExist(number) || os.IsExist(number) || os.IsPermission(number)) {
		return &fs.PathError{Op: op, Path: path, Err: number}
	}
	return nil
}
