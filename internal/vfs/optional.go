package vfs

import (
	"errors"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// The following interfaces have calls that some systems lack. A disk implements the ones that it
// has: use a type assertion. If only the file system lacks a call, the error is
// errors.ErrUnsupported, or the kernel's.

// FileSystems has the calls on whole file systems. The functions of the same names take any disk.
type FileSystems interface {
	// SyncAll makes all files of fd's file system durable, with their names: syncfs(2), and more
	// calls where that needs them. It reports failures since fd was opened.
	SyncAll(fd int) error
	// SyncsAll reports whether SyncAll is reliable on fd's file system.
	SyncsAll(fd int) bool
	// LacksJournal reports whether later work in a directory may lose its durable names in a crash,
	// on fd's file system: ext2, and ext4 without a journal.
	LacksJournal(fd int) bool
	// Dirty returns the number of dirty bytes of all programs: an upper bound of the bytes that
	// SyncAll writes.
	Dirty() (bytes int64, ok bool)
}

// SyncAll is [FileSystems].SyncAll, for a disk whose SyncsAll is true.
func SyncAll(d Disk, fd int) error {
	if all, ok := d.(FileSystems); ok {
		return all.SyncAll(fd)
	}
	return errors.ErrUnsupported
}

// SyncsAll is [FileSystems].SyncsAll, and false for a disk without it.
func SyncsAll(d Disk, fd int) bool {
	all, ok := d.(FileSystems)
	return ok && all.SyncsAll(fd)
}

// LacksJournal is [FileSystems].LacksJournal, and false for a disk without it.
func LacksJournal(d Disk, fd int) bool {
	all, ok := d.(FileSystems)
	return ok && all.LacksJournal(fd)
}

// Dirty is [FileSystems].Dirty. It is not ok if the number is not known.
func Dirty(d Disk) (bytes int64, ok bool) {
	if all, is := d.(FileSystems); is {
		return all.Dirty()
	}
	return 0, false
}

// A Folder knows whether a directory may take two names for one.
type Folder interface{ FoldsNames(dir int) bool }

// FoldsNames is [Folder].FoldsNames, and true for a disk without it.
func FoldsNames(d Disk, dir int) bool {
	f, ok := d.(Folder)
	return !ok || f.FoldsNames(dir)
}

// Attributes has the calls on extended attributes of an open file. AttributesIn and AttributeIn
// take a name in a directory, and do not follow a symbolic link. See [AttributesOf].
type Attributes interface {
	Attributes(fd int) (names []string, err error)
	Attribute(fd int, name string) ([]byte, error)
	SetAttribute(fd int, name string, value []byte) error
	RemoveAttribute(fd int, name string) error
	AttributesIn(dir int, name sys.Name) (names []string, err error)
	AttributeIn(dir int, name sys.Name, attribute string) ([]byte, error)
}

// LinkAttributes sets attributes of a symbolic link itself.
type LinkAttributes interface {
	SetAttributeIn(dir int, name sys.Name, attribute string, value []byte) error
}

// Specials has the calls on a device, a pipe or a socket in a directory, which are not opened.
type Specials interface {
	// MakeLike makes one of the other's kind. No other user may use it before ChmodIn.
	MakeLike(fromDir int, from sys.Name, toDir int, to sys.Name) error
	ChmodIn(dir int, name sys.Name, perm uint32) error
}

// AttributesOf returns a disk's calls on extended attributes. For a disk without them they return
// errors.ErrUnsupported, as for a file system without attributes.
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
	// SharesFaster reports whether Clone of a small file is faster than a write, on the device of
	// the file fd. There Clone also shares allocated ranges that were never written.
	SharesFaster(fd int, device uint64) bool
}

// A Mover copies bytes between files in the kernel.
type Mover interface {
	// CopiesRanges reports whether the server of fd's file system (NFS 4.2, SMB) executes
	// CopyRange.
	CopiesRanges(fd int) bool
	CopyRange(to, from int, at int64, n int) (int, error)
	Pipe() (r, w int, err error)
	// Splice moves bytes from or to a pipe; the position of the pipe is -1.
	Splice(to int, toAt int64, from int, fromAt int64, n int) (int, error)
}

// Holes has the calls that find holes, and allocated ranges that were never written.
type Holes interface {
	// SeekData and SeekHole return the first byte from at on that is in data, or in a hole. If no
	// data follows, the error is ENXIO.
	SeekData(fd int, at int64) (int64, error)
	SeekHole(fd int, at int64) (int64, error)
	// Unwritten appends the ranges from at on that are allocated and were not written: FIEMAP. Call
	// it again at next, until that is -1.
	Unwritten(fd int, at int64, to []sys.Range) (ranges []sys.Range, next int64, err error)
}

// An Allocator allocates disk space of files before they are written.
type Allocator interface {
	// Allocate allocates a range of a file; with grow the file's size grows to its end.
	Allocate(fd int, at, n int64, grow bool) error
	// AllocatesFaster reports whether fd's file system writes faster to allocated space.
	AllocatesFaster(fd int) bool
}

// A PageCache has the calls on the kernel's cache of file pages.
type PageCache interface {
	// IsCold reports whether the page cache is known, without reading the disk, to hold no page of
	// a file.
	IsCold(fd int) bool
	// Evict drops the pages of a synced file, if the kernel can.
	Evict(fd int) error
	// Cached returns the number of a file's pages in the cache.
	Cached(fd int, size int64) (pages int64, err error)
	// DropRefused drops a file's pages if they can't be written any more, because the disk has refused the first write of a block
	// from an offset on.
	DropRefused(fd int, at int64)
}

// DropRefused is [PageCache].DropRefused, and does nothing for a disk without it.
func DropRefused(d Disk, fd int, at int64) {
	if cache, ok := d.(PageCache); ok {
		cache.DropRefused(fd, at)
	}
}
