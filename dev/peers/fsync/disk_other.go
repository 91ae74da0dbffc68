//go:build !linux

package fsync

// The groups that need these are left out.
const (
	oDsync  = 0
	oDirect = 0
)
