package durable

import (
	"errors"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A durable step of a batch is made when this number of files, or of bytes, have come together.
const (
	MostPerStep      = 4096
	MostBytesPerStep = 256 << 20
)

// Whether to sync a file system as a whole. syncfs also writes other programs' dirty pages; fsync
// costs more for each file. Known are the bytes that wait to be written, and the files of the batch
// so far. The guess is that as many will come again.
const (
	FreeDirty    = 4 << 20  // bytes that are written while few files are synced
	dirtyPerFile = 48 << 10 // what 1 GB/s writes in the time by which one file is cheaper: 48 µs
	decideEvery  = 32       // files, as long as they are synced by themselves
	FewDirs      = 4        // are synced one by one after renames, at one commit each
	FewOpenFiles = 7        // are synced one by one: they share one commit just as well
)

// WorthSyncAll reports whether to sync the file system as a whole from here on.
func WorthSyncAll(files int, dirty int64) bool {
	return dirty <= FreeDirty+int64(files)*dirtyPerFile
}

func worthSyncAll(disk vfs.Disk, files int) bool {
	dirty, known := vfs.Dirty(disk)
	return known && WorthSyncAll(files, dirty)
}

// An Errseq is a descriptor of a directory, open before the first byte that it is to sync. A sync of
// the whole file system by it reports every failure since. It reports a failure once, and does not
// name the file. So one sync at a time uses it, and none after a failure.
type Errseq struct {
	ID     uint64 // of the file system
	Fd     int    // -1: none is open
	failed atomic.Bool
}

// Works reports whether one is open, and no sync by it has failed.
func (e *Errseq) Works() bool { return e.Fd >= 0 && !e.failed.Load() }

var errDeviceLost = errors.New("another sync of the file system failed meanwhile")

// sync makes a sync unless one has failed before: what was written meanwhile may be lost too, and
// another sync would succeed. It is called in a turn of the device.
func (e *Errseq) sync(all func(fd int) error) error {
	if e.failed.Load() {
		return errDeviceLost
	}
	err := all(e.Fd)
	e.failed.Store(err != nil)
	return err
}

// A Device is a file system of a Step.
type Device struct {
	Errseq
	// Allowed says that it may be synced as a whole: that can be relied on, and it has a
	// journal. Without one, files that are synced by themselves lose fewer names to a crash.
	Allowed, NoJournal bool
	Known              bool // the two above are

	// Guarded by Step.mu; what Run alone writes it reads without.
	files    int  // of the batch
	decideAt int  // the number of them at which it is decided again whether to sync all
	together bool // files are synced with all, of this part

	// Of a Run:
	worth  bool  // a sync of all was worth it for the files, or there were none, and Fd was open
	synced bool  // it was synced as a whole
	err    error // of that
	names  int   // how many directories have new names
}
