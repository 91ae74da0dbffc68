//go:build !unix

package sys

import (
	"io/fs"
	"os"
)

// WaitForNobody: the system has no named pipes, or none that wait.
const WaitForNobody = 0

// addIdentity does nothing: a FileInfo has no identity here.
func addIdentity(*Stat, fs.FileInfo) {}

// chown does nothing: files have no numeric owner.
func chown(*os.File, int, int) error { return nil }

// Identity returns 0 and 0: see addIdentity.
func Identity(*os.File) (device, inode uint64) { return 0, 0 }

// RegularDevice returns 0: see addIdentity.
func RegularDevice(*os.File) uint64 { return 0 }
