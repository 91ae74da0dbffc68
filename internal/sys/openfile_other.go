//go:build !linux

package sys

import (
	"io/fs"
	"os"
)

// OpenFile is os.OpenFile, and does not look at what it has opened.
func OpenFile(path string, flag int, perm fs.FileMode) (f *os.File, named bool, err error) {
	f, err = os.OpenFile(path, flag, perm)
	return f, false, err
}
