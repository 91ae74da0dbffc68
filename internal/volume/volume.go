// Package volume makes file systems to order: an image file, mkfs, a loop device, a
// mount with chosen options. It removes all of it again, also what a killed program has
// left.
//
// All that a volume has lies in a new directory holdfast-volume-…: a marker, the image,
// and the directory where it is mounted. The marker says which process made what, and
// is locked while the volume is in use. A process that is killed leaves its volumes as
// [Leftover]s. Their names, markers and free locks identify them, and the next Make
// beside them removes them.
//
// The directory is this user's alone and stays open. So a user who may rename it, or a
// part of its path, can't make the package write elsewhere. The package never removes
// directories of others.
//
// Start with [Parse] and [Make].
package volume

import (
	"os"
	"path/filepath"

	"github.com/holdfast-go/holdfast/internal/workdir"
)

// A Volume is a mounted file system of its own, in an image file.
//
// Use defer to close it, so that a panic removes it too. To leave nothing after a
// signal, let the signal end the context, and return.
type Volume struct {
	// Device is the loop device, such as /dev/loop3, or nothing for a tmpfs.
	Device string

	// DirectIO reports whether the loop device bypasses the image's page cache. If not, the
	// image's own pages make reads warm that should be cold, and dirty data is in memory
	// twice.
	DirectIO bool

	// Removed are the directories of leftovers that Make removed first.
	Removed []string

	kind Kind
	size int64
	dir  *workdir.Dir // that holds the rest; removed by Close
	lock *os.File     // the marker
}

// Kind returns the kind of file system.
func (v *Volume) Kind() Kind { return v.kind }

// Dir returns the directory where it is mounted. Until Close the path leads nowhere else:
// see [workdir.Dir.Path].
func (v *Volume) Dir() string { return mountIn(v.dir.Path()) }

// mountName is where a volume is mounted, in its directory.
const mountName = "mount"

func mountIn(dir string) string { return filepath.Join(dir, mountName) }

// Size returns the bytes of the image, or the limit of a tmpfs.
func (v *Volume) Size() int64 { return v.size }
