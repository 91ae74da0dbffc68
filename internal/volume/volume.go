// Package volume makes file systems to order: an image file, mkfs, a loop device, a
// mount with chosen options; and takes all of it away again, also what a killed
// program has left.
//
// Start with [Parse] and [Make].
package volume

import "context"

// A Volume is a mounted file system of its own, in an image file.
type Volume struct {
	kind   Kind
	dir    string // where it is mounted
	folder string // that holds the image and dir; removed by Close
	device string // such as /dev/loop3; empty for tmpfs
}

// Kind returns what file system it is.
func (v *Volume) Kind() Kind { return v.kind }

// Dir returns the folder where it is mounted.
func (v *Volume) Dir() string { return v.dir }

// Make makes a file system of size bytes in an image in a new folder of parent, and
// mounts it. An error of what is missing is a [*MissingError]. Nothing is left of a
// Make that failed.
func Make(ctx context.Context, parent string, k Kind, size int64) (*Volume, error) {
	panic("not yet")
}

// Remount unmounts it and mounts it again: nothing of it is in the page cache then.
func (v *Volume) Remount(ctx context.Context) error { panic("not yet") }

// Close unmounts it, lets the file system's own program check it, and removes all of
// it. What the check has found is a [*DamageError].
func (v *Volume) Close() error { panic("not yet") }
