//go:build !unix

package sys

import (
	"io/fs"
	"os"
)

// waitForNobody: the system has no pipes that are opened by a file's name, or none that
// wait.
const waitForNobody = 0

// addIdentity adds nothing: a FileInfo does not report which file it is.
func addIdentity(*Stat, fs.FileInfo) {}

// chown does nothing: files have no owner that a number names.
func chown(*os.File, int, int) error { return nil }

// Identity says nothing: see addIdentity.
func Identity(*os.File) (device, inode uint64) { return 0, 0 }
