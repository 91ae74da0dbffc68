// Package volume makes file systems to order: an image file, mkfs, a loop device, a
// mount with chosen options; and takes all of it away again, also what a killed
// program has left.
//
// All that a volume has lies in a new folder holdfast-volume-…: a marker that says
// who made what and that is locked while the volume is in use, the image, and the
// folder where it is mounted. What a process leaves that gets no chance to close its
// volumes is a [Leftover]: it is known by its name and marker and by the lock that
// nobody holds, and the next Make beside it removes it.
//
// Start with [Parse] and [Make].
package volume

import (
	"os"
	"path/filepath"
)

// A Volume is a mounted file system of its own, in an image file.
//
// Use defer to close it: then it goes in a panic too. A program that is to leave
// nothing after a signal has the signal end its context and returns.
type Volume struct {
	kind    Kind
	size    int64
	folder  string   // that holds the rest; removed by Close
	lock    *os.File // the marker
	device  string   // such as /dev/loop3; empty for tmpfs
	direct  bool
	removed []string
}

// Kind returns what file system it is.
func (v *Volume) Kind() Kind { return v.kind }

// Dir returns the folder where it is mounted.
func (v *Volume) Dir() string { return mountIn(v.folder) }

// mountName is where a volume is mounted, in its folder.
const mountName = "mount"

func mountIn(folder string) string { return filepath.Join(folder, mountName) }

// Device returns the loop device, such as /dev/loop3, or nothing for a tmpfs.
func (v *Volume) Device() string { return v.device }

// Size returns the bytes of the image, or the limit of a tmpfs.
func (v *Volume) Size() int64 { return v.size }

// DirectIO tells whether the loop device reads and writes the image past the page
// cache. If not, the image's own pages make reads warm that should be cold, and
// what is to be written is in memory twice.
func (v *Volume) DirectIO() bool { return v.direct }

// Removed returns the folders of leftovers that Make removed first.
func (v *Volume) Removed() []string { return v.removed }

// Close unmounts it, lets the file system's own program check it, and removes all of
// it. What the check has found is a [*DamageError], as is a file system that was
// stopped (FS_IOC_SHUTDOWN) and not remounted since. If it can't be unmounted, or is
// mounted in another mount namespace too, the error names who uses it, the folder
// stays, and Close may be called again. Once
// removed, it is nil. It waits for other programs some seconds, and for the check.
func (v *Volume) Close() error {
	if v.lock == nil {
		return nil
	}
	return v.close()
}
