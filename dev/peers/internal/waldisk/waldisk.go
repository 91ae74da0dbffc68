// Package waldisk opens a log of package wal on a disk of the caller's, such as one whose syncs take
// a time of their own. Package wal exports no way to do so, because no program needs another disk.
package waldisk

import (
	_ "unsafe" // for go:linkname

	"github.com/holdfast-go/holdfast/internal/vfs"
	"github.com/holdfast-go/holdfast/wal"
)

// A Disk has the methods that package wal wants of a disk.
type Disk interface {
	vfs.Disk
	ReadAt(fd int, p []byte, at int64) (n int, err error)
	WriteAt(fd int, p []byte, at int64) (n int, err error)
}

// Open is [wal.Open] on a disk.
func Open(d Disk, dir string, o wal.Options) (*wal.Log, wal.Recovery, error) { return open(d, dir, o) }

//go:linkname open github.com/holdfast-go/holdfast/wal.open
func open(d Disk, dir string, o wal.Options) (*wal.Log, wal.Recovery, error)
