package sys

import "time"

// AtCwd stands for an open folder where the name is a path: AT_FDCWD of openat(2).
const AtCwd = -100

// A FileStat is what copying wants to know of a file.
type FileStat struct {
	Stat
	Accessed, Modified, Changed time.Time
}

// A FolderStat is what copying wants to know of a folder.
type FolderStat struct {
	FileStat
	// Mounted: the folder is one that something is mounted on, as far as the system
	// tells: what it holds is elsewhere too, or in another file system.
	Mounted bool
}

// A Range is a part of a file, from At up to but without End.
type Range struct{ At, End int64 }
