// Package dirent makes the directory entries of new files durable: fsync(2) of the file alone does
// not.
package dirent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// An Entry is the directory entry of a new file. The zero Entry does nothing.
type Entry struct {
	Pending bool     // the entry is not durable yet
	Named   bool     // the file was regular and had a name at its open
	Device  uint64   // the number of its file system, if it is Named
	since   int      // durable.KernelSyncs.Now before it was made
	path    string   // the directory's path; absolute if Dir is nil
	unknown error    // the error of making path absolute
	Dir     *os.File // the open directory, if it will be synced
}

// newEntry opens the directory now if it will be synced: it may be renamed before the first sync.
// Otherwise it saves the descriptor, and opens the directory only if Sync is called, when the
// working directory may have changed.
func newEntry(file string, syncs bool) (e Entry, err error) {
	e = Entry{Pending: true, since: durable.KernelSyncs.Now()}
	e.path, _ = vfs.SplitPath(file)
	if syncs {
		return e, e.open()
	}
	e.path, e.unknown = sys.Absolute(e.path)
	return e, nil
}

// Open opens or creates a file, and opens its directory now if that will be synced. It follows a
// symbolic link.
func Open(path string, syncs bool, flag int, perm fs.FileMode) (*os.File, Entry, error) {
	f, e, err := openName(path, syncs, flag|sys.NoFollow, perm)
	if !errors.Is(err, syscall.ELOOP) && !errors.Is(err, syscall.EMLINK) { // EMLINK: FreeBSD
		return f, e, err
	}
	f, _, err = sys.OpenFile(path, flag&^os.O_CREATE, 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, Entry{}, err
	}
	target, failed := sys.Disk{}.Resolve(path)
	switch {
	case err != nil && failed != nil:
		return nil, Entry{}, err
	case err != nil:
		return openName(target, syncs, flag|sys.NoFollow, perm)
	case failed != nil:
		return f, Entry{}, nil
	}
	is, err := f.Stat()
	named, failed := os.Lstat(target)
	if err != nil || failed != nil || !os.SameFile(is, named) {
		return f, Entry{}, nil // the file behind /dev/stdout may have no name
	}
	if e, err = newEntry(target, syncs); err != nil {
		return nil, Entry{}, errors.Join(err, f.Close())
	}
	return f, e, nil
}

// openName opens or creates a file whose name is no symbolic link.
func openName(path string, syncs bool, flag int, perm fs.FileMode) (*os.File, Entry, error) {
	e, err := newEntry(path, syncs)
	if err != nil {
		return nil, Entry{}, err
	}
	f, named, err := sys.OpenFile(path, flag, perm)
	if err != nil {
		return nil, Entry{}, errors.Join(err, e.Close())
	}
	e.Named, e.Device = named.Links > 0, named.Device
	return f, e, nil
}

func (e *Entry) open() (err error) {
	if err = e.unknown; err == nil {
		e.Dir, _, err = sys.OpenFile(e.path, os.O_RDONLY, 0)
	}
	if err != nil {
		return fmt.Errorf("directory of the file: %w", err)
	}
	return nil
}

// Sync makes the entry durable. It is called until it succeeds once.
func (e *Entry) Sync() error {
	if e.Dir == nil {
		if err := e.open(); err != nil {
			return err
		}
	}
	is := e.key()
	err := durable.KernelSyncs.Directory(is, func() error {
		err := sys.SyncDir(e.Dir)
		if errors.Is(err, errors.ErrUnsupported) {
			return nil
		}
		return err
	})
	if err == nil && durable.KernelSyncs.Losses(is) > e.since {
		err = durable.ErrDirLost
	}
	if err != nil {
		return fmt.Errorf("directory of the file: %w", err)
	}
	e.Pending = false
	return e.Close()
}

// Lose reports a failed sync of the file to durable.KernelSyncs: the kernel may have lost the
// directory entry too. It does not check the file system: a needless doubt costs less than a lost
// name.
func (e *Entry) Lose() {
	if e.Pending && e.Dir != nil {
		durable.KernelSyncs.Fail(e.key())
	}
}

// key identifies the directory.
func (e *Entry) key() keyed.Key {
	device, inode := sys.Identity(e.Dir)
	return keyed.Key{Device: device, Inode: inode}
}

// Close closes the directory, if it is open.
func (e *Entry) Close() error {
	if e.Dir == nil {
		return nil
	}
	dir := e.Dir
	e.Dir = nil
	return dir.Close()
}
