package volume

import "time"

// A Leftover is what a process that was killed has left of a volume.
type Leftover struct {
	Folder  string
	Kind    string    // empty if the process was killed before it wrote what it makes
	Process int       // the number that it had
	Made    time.Time // when
	Mounted bool
	Bytes   int64 // what its image takes
}
