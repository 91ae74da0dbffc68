//go:build !linux

package sys

import (
	"io/fs"
	"os"
)

// OpenFile is os.OpenFile. It never reports named.
func OpenFile(path string, flag int, perm fs.FileMode) (f *os.File, named bool, err error) {
	f, err = os.OpenFile(path, flag, perm)
	return f, false, err
}
