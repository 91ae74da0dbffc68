package sys

import (
	"syscall"
	"time"
)

// AtCwd as a directory means that the name is a path: AT_FDCWD of openat(2).
const AtCwd = -100

// A FileStat holds the attributes of a file for copying.
type FileStat struct {
	Stat
	Accessed, Modified, Changed time.Time
}

// A DirStat holds the attributes of a directory for copying.
type DirStat struct {
	FileStat
	// Mounted: something is mounted on the directory, as far as the system reports. Its contents
	// are in another place too, or in another file system.
	Mounted bool
}

// A Range is a part of a file: the bytes at ≥ At and < End.
type Range struct{ At, End int64 }

// ErrNoAttribute is the error for a missing attribute: ENODATA on Linux, the only system with
// attributes here. Some other systems lack the name.
const ErrNoAttribute = syscall.Errno(0x3d)
