package volume

import (
	"path/filepath"
	"time"
)

// What a volume has: a folder with these in it.
const (
	prefix     = "holdfast-volume-"
	markerName = "volume.json"
	imageName  = "image"
	mountName  = "mount"
)

func markerIn(folder string) string { return filepath.Join(folder, markerName) }
func imageIn(folder string) string  { return filepath.Join(folder, imageName) }
func mountIn(folder string) string  { return filepath.Join(folder, mountName) }

// A Leftover is what a process that was killed has left of a volume.
type Leftover struct {
	Folder  string
	Kind    string    // empty if the process was killed before it wrote what it makes
	Process int       // the number that it had
	Made    time.Time // when
	Mounted bool
	Bytes   int64 // what its image takes
}
