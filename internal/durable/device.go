package durable

import (
	"errors"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A durable step is made after this number of files, or of bytes.
const (
	MostPerStep      = 4096
	MostBytesPerStep = 256 << 20
)

// The decision between syncfs and a sync of each file. syncfs also writes other programs' dirty
// pages; syncing each file costs more per file. Known are the dirty bytes, and the number of files
// in the batch so far. The guess is that the same number will follow.
const (
	FreeDirty    = 4 << 20  // syncfs is worth it up to this many dirty bytes, even for few files
	dirtyPerFile = 48 << 10 // bytes written at 1 GB/s in the 48 µs that syncfs saves per file
	decideEvery  = 32       // files between two decisions, while each is synced by itself
	FewDirs      = 4        // up to this number, directories are synced one by one after renames, at one commit each
	FewOpenFiles = 7        // up to this number, open files are synced one by one: they share one commit just as well
)

// WorthSyncAll reports whether to sync the whole file system from now on.
func WorthSyncAll(files int, dirty int64) bool {
	return dirty <= FreeDirty+int64(files)*dirtyPerFile
}

// WorthIt reports whether a disk's file system is to be synced in place of some open files.
func WorthIt(disk vfs.Disk, files int) bool {
	return files > FewOpenFiles && worthSyncAll(disk, files)
}

func worthSyncAll(disk vfs.Disk, files int) bool {
	dirty, known := vfs.Dirty(disk)
	return known && WorthSyncAll(files, dirty)
}

// An Errseq is a descriptor of a directory, open before the first byte that it must sync. syncfs by
// it reports every failure since then, once, and does not name the file. So one sync at a time uses
// it, and none after a failure.
type Errseq struct {
	ID     uint64 // the file system's device number
	Fd     int    // -1: not open
	failed atomic.Bool
}

// Works reports whether it is open, and no sync by it has failed.
func (e *Errseq) Works() bool { return e.Fd >= 0 && !e.failed.Load() }

var errDeviceLost = errors.New("another sync of the file system failed meanwhile")

// sync makes a sync unless one has failed before: later bytes may be lost too, and another sync
// would succeed. It is called in a turn of the device.
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
	// Allowed says that syncfs is reliable and the file system has a journal. Without a journal,
	// files that are synced by themselves lose fewer names to a crash.
	Allowed, NoJournal bool
	Known              bool // Allowed and NoJournal are set

	// Guarded by Step.mu; Run reads without it the fields that only Run writes.
	files    int  // files in the batch
	decideAt int  // the number of files at the next decision
	together bool // files of this part are synced by syncfs
	watched  bool // by Watch

	// Set by a Run:
	worth  bool  // syncfs was worth it for the files, or there were none, and Fd was open
	synced bool  // syncfs was called
	err    error // its error
	names  int   // number of directories with new names
}
