//go:build !linux && !windows

package sys

import (
	"io/fs"
	"os"
)

// openShared is os.OpenFile: here a file that is open may be renamed and removed.
func openShared(path string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(path, flag, perm)
}
