package holdfast

import "github.com/holdfast-go/holdfast/internal/sys"

// disk is the calls that Files makes of a file system, one system call each where
// the system has it. [sys.Disk] makes them of the kernel. A descriptor is a small
// number, of a file or a folder. Any goroutine may call any method; an interrupted
// call (EINTR) and a short write are the caller's to go on with. Errors are what
// the system said, for errors.Is.
type disk interface {
	// OpenFolder opens a folder for the calls that take one, and for Sync.
	OpenFolder(path sys.Name) (fd int, err error)
	// OpenFile opens a file of a folder for writing, with flags of package os and
	// the permissions of a new one before umask. It does not wait for who reads a pipe.
	OpenFile(folder int, name sys.Name, flag int, perm uint32) (fd int, err error)
	Write(fd int, p []byte) (n int, err error)
	Truncate(fd int, size int64) error
	// Sync makes a file's bytes, or a folder's names, durable: fsync(2).
	Sync(fd int) error
	// Datasync makes a file's bytes durable, and of the rest what it takes to read
	// them: fdatasync(2), where the system has it.
	Datasync(fd int) error
	// SyncAll makes all files of fd's file system durable, with their names: syncfs(2)
	// and what else it takes there. It reports what failed since fd was opened.
	SyncAll(fd int) error
	// SyncsAll reports whether SyncAll can be relied on where fd is.
	SyncsAll(fd int) bool
	// Dirty returns how many bytes of all programs wait to be written: an upper bound of what
	// SyncAll takes along.
	Dirty() (bytes int64, ok bool)
	Close(fd int) error
	Rename(folder int, from, to sys.Name) error
	Remove(folder int, name sys.Name) error
	// Stat says what a name of a folder is; of a symbolic link, that it is one.
	Stat(folder int, name sys.Name) (sys.Stat, error)
	// StatFD says what an open file or folder is.
	StatFD(fd int) (sys.Stat, error)
	// StatPath says what a path is; it follows symbolic links.
	StatPath(path sys.Name) (sys.Stat, error)
	Chmod(fd int, perm uint32) error
	Chown(fd int, uid, gid uint32) error
	Mkdir(path sys.Name, perm uint32) error
	// Resolve follows the symbolic links of a path to a file, which may be missing at its end.
	Resolve(path string) (string, error)
}

var _ disk = sys.Disk{}
