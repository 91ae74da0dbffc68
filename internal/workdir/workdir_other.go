//go:build !unix

package workdir

import "io/fs"

// isOwn reports true for every directory that this user may write to.
func isOwn(fs.FileInfo) bool { return true }
