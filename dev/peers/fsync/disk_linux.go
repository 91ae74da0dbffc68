package fsync

import "golang.org/x/sys/unix"

// Flags of open(2).
const (
	oDsync  = unix.O_DSYNC
	oDirect = unix.O_DIRECT
)
