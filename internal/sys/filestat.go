package sys

import (
	"syscall"
	"time"
)

// AtCwd stands for an open directory where the name is a path: AT_FDCWD of openat(2).
const AtCwd = -100

// A FileStat is what copying wants to know of a file.
type FileStat struct {
	Stat
	Accessed, Modified, Changed time.Time
}

// A DirStat is what copying wants to know of a directory.
type DirStat struct {
	FileStat
	// Mounted: something is mounted on the directory, as far as the system reports. What it holds is
	// elsewhere too, or in another file system.
	Mounted bool
}

// A Range is a part of a file, from At up to but without End.
type Range struct{ At, End int64 }

// ErrNoAttribute says that a file has no attribute of a name: ENODATA of Linux, the only
// system that is asked for attributes. Some others lack the name.
const ErrNoAttribute = syscall.Errno(0x3d)
