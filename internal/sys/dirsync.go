//go:build !windows && !linux

package sys

import "os"

// SyncDir makes the names in the open directory d durable: fsync(2), which POSIX requires in
// addition to the file's own.
func SyncDir(d *os.File) error { return d.Sync() }
