//go:build !linux

package sys

import (
	"io/fs"
	"os"
)

// OpenFile is os.OpenFile. It returns no attributes.
func OpenFile(path string, flag int, perm fs.FileMode) (f *os.File, named Stat, err error) {
	f, err = os.OpenFile(path, flag, perm)
	return f, Stat{}, err
}
