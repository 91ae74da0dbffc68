package vfs

import (
	"errors"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// The following interfaces are of calls that not every system has. A disk with these calls
// has the methods: use a type assertion. If the system has a call and the file system has
// not, the error is errors.ErrUnsupported, or the kernel's.

// FileSystems are synced as a whole. The functions of the same names take any disk, also one
// without these calls.
type FileSystems interface {
	// SyncAll makes all files of fd's file system durable, with their names: syncfs(2),
	// and what else that needs there. It reports what failed since fd was opened.
	SyncAll(fd int) error
	// SyncsAll reports whether SyncAll can be relied on where fd is.
	SyncsAll(fd int) bool
	// LacksJournal reports whether durable names on fd's file system may be gone after a crash during
	// later work in their directory. They may on ext2, and ext4 without a journal.
	LacksJournal(fd int) bool
	// Dirty returns how many bytes of all programs wait to be written: an upper bound of
	// what SyncAll writes.
	Dirty() (bytes int64, ok bool)
}

// SyncAll is [FileSystems].SyncAll of a disk where SyncsAll was true.
func SyncAll(d Disk, fd int) error {
	if all, ok := d.(FileSystems); ok {
		return all.SyncAll(fd)
	}
	return errors.ErrUnsupported
}

// SyncsAll is false of a disk that does not sync file systems as a whole.
func SyncsAll(d Disk, fd int) bool {
	all, ok := d.(FileSystems)
	return ok && all.SyncsAll(fd)
}

// LacksJournal is false where no file system without a journal is known.
func LacksJournal(d Disk, fd int) bool {
	all, ok := d.(FileSystems)
	return ok && all.LacksJournal(fd)
}

// Dirty is not ok where the number is not known.
func Dirty(d Disk) (bytes int64, ok bool) {
	if all, is := d.(FileSystems); is {
		return all.Dirty()
	}
	return 0, false
}

// Attributes are the extended attributes of an open file; AttributesIn and AttributeIn are
// of a name in a directory, and of a symbolic link itself. See [AttributesOf].
type Attributes interface {
	Attributes(fd int) (names []string, err error)
	Attribute(fd int, name string) ([]byte, error)
	SetAttribute(fd int, name string, value []byte) error
	RemoveAttribute(fd int, name string) error
	AttributesIn(dir int, name sys.Name) (names []string, err error)
	AttributeIn(dir int, name sys.Name, attribute string) ([]byte, error)
}

// LinkAttributes are set on a symbolic link itself.
type LinkAttributes interface {
	SetAttributeIn(dir int, name sys.Name, attribute string, value []byte) error
}

// AttributesOf returns a disk's extended attributes. Those of a disk without them are
// errors.ErrUnsupported, as those of a file system without them.
func AttributesOf(d Disk) Attributes {
	if a, ok := d.(Attributes); ok {
		return a
	}
	return noAttributes{}
}

type noAttributes struct{}

func (noAttributes) Attributes(int) ([]string, error)       { return nil, errors.ErrUnsupported }
func (noAttributes) Attribute(int, string) ([]byte, error)  { return nil, errors.ErrUnsupported }
func (noAttributes) SetAttribute(int, string, []byte) error { return errors.ErrUnsupported }
func (noAttributes) RemoveAttribute(int, string) error      { return errors.ErrUnsupported }
func (noAttributes) AttributesIn(int, sys.Name) ([]string, error) {
	return nil, errors.ErrUnsupported
}
func (noAttributes) AttributeIn(int, sys.Name, string) ([]byte, error) {
	return nil, errors.ErrUnsupported
}

// A Cloner lets files share their bytes.
type Cloner interface {
	// Clone makes a file share all bytes of another: FICLONE.
	Clone(to, from int) error
	// SharesFaster reports whether Clone of a small file is faster than a write, on the
	// file system of a device that has the file fd. There Clone shares room that was never
	// written, too.
	SharesFaster(fd int, device uint64) bool
}

// A Mover moves bytes from file to file without memory of this process.
type Mover interface {
	// CopiesRanges reports whether the machine that holds the bytes, such as a server (NFS 4.2, SMB),
	// does CopyRange from a file of fd's file system.
	CopiesRanges(fd int) bool
	CopyRange(to, from int, at int64, n int) (int, error)
	Pipe() (r, w int, err error)
	// Splice moves bytes from or to a pipe; the position of the pipe is -1.
	Splice(to int, toAt int64, from int, fromAt int64, n int) (int, error)
}

// Holes are the ranges of a file that take no room, or were not written.
type Holes interface {
	// SeekData and SeekHole return the first byte from at on that is in data, or in a
	// hole. No more data is ENXIO.
	SeekData(fd int, at int64) (int64, error)
	SeekHole(fd int, at int64) (int64, error)
	// Unwritten appends the ranges from at on that have room on the disk and were not
	// written: FIEMAP. It goes on where next says, until that is -1.
	Unwritten(fd int, at int64, to []sys.Range) (ranges []sys.Range, next int64, err error)
}

// An Allocator gives files their room on the disk before they are written.
type Allocator interface {
	// Allocate gives a range of a file its room; grow lets the file's size grow with it.
	Allocate(fd int, at, n int64, grow bool) error
	// AllocatesFaster reports whether fd's file system writes faster into room that it
	// has given before.
	AllocatesFaster(fd int) bool
}

// A PageCache is what the kernel keeps of files in memory.
type PageCache interface {
	// IsCold reports whether it is known, without a look at the disk, that the page cache
	// has nothing of a file.
	IsCold(fd int) bool
	// Evict drops a synced file's pages, as far as they can be.
	Evict(fd int) error
	// Cached returns how many of its pages are there.
	Cached(fd int, size int64) (pages int64, err error)
}
