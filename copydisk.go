package holdfast

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// copyFileCalls is the calls that copying one file makes of the system, one system call
// each where the system has it. A call that the system does not have is
// errors.ErrUnsupported. An interrupted call and a short count are the caller's to go
// on with. The folder sys.AtCwd takes a path as a name.
type copyFileCalls interface {
	disk

	// OpenSource opens a file for reading. It waits for nobody, and follows a symbolic
	// link only where the name is a path.
	OpenSource(folder int, name sys.Name) (fd int, err error)
	StatFile(fd int) (sys.FileStat, error)
	ReadAt(fd int, p []byte, at int64) (n int, err error)
	WriteAt(fd int, p []byte, at int64) (n int, err error)
	// Allocate gives a range of a file its room on the disk, without writing it; grow
	// lets the file's size grow with it.
	Allocate(fd int, at, n int64, grow bool) error
	// AllocatesFaster reports whether fd's file system writes faster into room that it
	// has given before.
	AllocatesFaster(fd int) bool

	// SharesFaster reports whether it is faster to Clone a small file than to write it,
	// on the file system of a device that has the file fd.
	SharesFaster(fd int, device uint64) bool
	// IsCold reports whether it is known, without a look at the disk, that the page cache
	// has nothing of a file.
	IsCold(fd int) bool
	// Clone makes a file share all bytes of another: FICLONE.
	Clone(to, from int) error
	// CopiesRanges reports whether CopyRange from a file of fd's file system is done by
	// who has the bytes, such as the server of a network.
	CopiesRanges(fd int) bool
	CopyRange(to, from int, at int64, n int) (int, error)
	// SendFile writes at the position that SeekTo has set.
	SendFile(to, from int, at int64, n int) (int, error)
	Pipe() (r, w int, err error)
	// Splice moves bytes from or to a pipe, whose position is -1.
	Splice(to int, toAt int64, from int, fromAt int64, n int) (int, error)

	SeekTo(fd int, at int64) error
	// SeekData and SeekHole return the first byte from at on that is in data, or in a
	// hole. No more data is ENXIO.
	SeekData(fd int, at int64) (int64, error)
	SeekHole(fd int, at int64) (int64, error)
	// Unwritten appends the ranges from at on that have room on the disk and were not
	// written: FIEMAP. It goes on where next says, until that is -1.
	Unwritten(fd int, at int64, to []sys.Range) (ranges []sys.Range, next int64, err error)

	// RenameNew is Rename, but fails where there is a file of that name.
	RenameNew(folder int, from, to sys.Name) error
	// Lock keeps other programs from locking the file, until it is closed; it is an
	// error if one has.
	Lock(fd int) error
	SetTimes(fd int, accessed, modified time.Time) error
	Attributes(fd int) (names []string, err error)
	Attribute(fd int, name string) ([]byte, error)
	SetAttribute(fd int, name string, value []byte) error
	RemoveAttribute(fd int, name string) error

	// Evict drops a synced file's pages from the page cache, as far as they can be.
	Evict(fd int) error
	// Cached returns how many of its pages are there.
	Cached(fd int, size int64) (pages int64, err error)
	// Free returns how many bytes we may still write to fd's file system.
	Free(fd int) (int64, error)
}

// copyDisk is the calls that copying makes.
type copyDisk interface {
	copyFileCalls
	copyFolderCalls
}

var _ copyDisk = sys.Disk{}
