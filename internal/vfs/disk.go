// Package vfs has interfaces of the file system calls of files and copies, so that a test can make
// them fail. [sys.Disk] implements them by the kernel. [Disk] and [CopyDisk] have the calls of
// every system; optional interfaces have the calls of some: see [Attributes]. The package also has
// the kinds of files.
package vfs

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// Disk has the calls of a files.Set, one system call each where the system has it. [sys.Disk] calls
// the kernel. A descriptor is a small number, of a file or a directory. Any goroutine may call any
// method. After an interrupted call (EINTR) or a short write the caller repeats or continues.
// Errors are the system's, for errors.Is.
type Disk interface {
	Opener
	Stater
	Namer
	Owner
	Syncer
	Locker

	Write(fd int, p []byte) (n int, err error)
	// WriteAt writes at an offset of a file that was not opened to append.
	WriteAt(fd int, p []byte, at int64) (n int, err error)
	Truncate(fd int, size int64) error
}

// CopyDisk has the calls of copying. With the directory sys.AtCwd a name is a path.
type CopyDisk interface {
	Disk
	Source
	Tree

	// RenameNew is Rename, but fails if a file of that name exists.
	RenameNew(dir int, from, to sys.Name) error
	SetTimes(fd int, accessed, modified time.Time) error
	// Free returns the number of bytes that this user may still write to fd's file system.
	Free(fd int) (int64, error)
}

// An Opener opens files and directories, and closes them.
type Opener interface {
	// OpenDir opens a directory for calls that take one, and for Sync.
	OpenDir(path sys.Name) (fd int, err error)
	// OpenForNames opens a directory that need not be readable. The descriptor is only for calls
	// that take a name in it, and for StatFD.
	OpenForNames(path sys.Name) (fd int, err error)
	// OpenDirIn opens a directory in a directory; ".." is its parent.
	OpenDirIn(dir int, name sys.Name) (fd int, err error)
	// OpenFile opens a file in a directory for writing, with flags of package os and the
	// permissions of a new file before umask. It does not wait for a reader of a pipe.
	OpenFile(dir int, name sys.Name, flag int, perm uint32) (fd int, err error)
	Close(fd int) error
}

// A Stater returns the attributes of files, and lists directories.
type Stater interface {
	// Stat returns the attributes of a name in a directory; it does not follow a symbolic link.
	Stat(dir int, name sys.Name) (sys.Stat, error)
	// StatFD returns the attributes of an open file or directory.
	StatFD(fd int) (sys.Stat, error)
	// StatPath returns the attributes of a path; it follows symbolic links.
	StatPath(path sys.Name) (sys.Stat, error)
	// Resolve follows the symbolic links of a path to a file, which may not exist.
	Resolve(path string) (string, error)
	// ReadNames appends some of a directory's names, and none if there are no more.
	ReadNames(fd int, buf []byte, to []sys.DirEntry) ([]sys.DirEntry, error)
}

// A Namer changes the names in directories.
type Namer interface {
	Rename(dir int, from, to sys.Name) error
	Remove(dir int, name sys.Name) error
	Mkdir(path sys.Name, perm uint32) error
}

// An Owner changes a file's permissions and its owner.
type Owner interface {
	Chmod(fd int, perm uint32) error
	Chown(fd int, uid, gid uint32) error
}

// A Syncer makes one file durable.
type Syncer interface {
	// Sync makes a file's bytes, or a directory's names, durable: fsync(2).
	Sync(fd int) error
	// Datasync makes a file's bytes, and the metadata to read them, durable: fdatasync(2), where
	// the system has it.
	Datasync(fd int) error
}

// A Locker locks a file against other programs until it is closed. It fails if another program has
// it locked. LockShared takes a shared lock. Unlock releases either. LockWait is Lock that waits
// for the other program, without a limit.
type Locker interface {
	Lock(fd int) error
	LockWait(fd int) error
	LockShared(fd int) error
	Unlock(fd int) error
}

// A Source has the calls by which copying reads.
type Source interface {
	// OpenSource opens a file for reading. It waits for no lease and no writer of a pipe,
	// and follows a symbolic link only where the name is a path.
	OpenSource(dir int, name sys.Name) (fd int, err error)
	StatFile(fd int) (sys.FileStat, error)
	ReadAt(fd int, p []byte, at int64) (n int, err error)
	// StatDir returns the attributes of an open directory, and whether something is mounted on it.
	StatDir(fd int) (sys.DirStat, error)
}

// A Tree has the calls on directories and links. All but LinkIn take one directory and a name in
// it, so that no path is too long, and follow no symbolic link.
type Tree interface {
	MkdirIn(dir int, name sys.Name, perm uint32) error
	ReadLinkIn(dir int, name sys.Name) (string, error)
	SymlinkIn(target sys.Name, dir int, name sys.Name) error
	LinkIn(fromDir int, from sys.Name, toDir int, to sys.Name) error
	ChownIn(dir int, name sys.Name, uid, gid uint32) error
	TimesIn(dir int, name sys.Name) (accessed, modified time.Time, err error)
	SetTimesIn(dir int, name sys.Name, accessed, modified time.Time) error
}

// NewSet makes a files.Set on any Disk. It is a func(Disk, files.Options) *files.Set, set by
// package files for the package that crashes Sets; users of the library can't see it.
var NewSet any

// OpenLog, ScanLog and OpenRotated are the same for [wal.Open], [wal.Scan] and [rotate.Open], on a [ReadDisk].
var OpenLog, ScanLog, OpenRotated any

// A ReadDisk has the calls of a log.
type ReadDisk interface {
	Disk
	Source
}
