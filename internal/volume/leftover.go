package volume

import "time"

// A Leftover is a volume, or a part of it, that a killed process has left.
type Leftover struct {
	Dir     string
	Kind    string    // empty if the process was killed before it wrote the marker
	Process int       // its number
	Made    time.Time // when it made the volume
	Mounted bool
	Bytes   int64 // its image's size
}
