package holdfast

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// target is the File under a Writer, with what newTarget has found out about it. That
// is the fastest correct way to sync it, whether its links can be counted, and the
// directory entry that must become durable with it.
//
// Note: O_DSYNC and RWF_DSYNC write and sync in one call. For a growing file they gained
// nothing over write and fdatasync, and neither did fallocate (figures:
// docs/design/decisions.md).
type target struct {
	file   File
	path   string
	handle *sys.Handle // of an *os.File; see look
	linked bool        // the file had a name in newTarget
	entry  dirEntry    // what must be durable for the file to be found
	// datasync is cleared when the system reports that it has none.
	datasync bool
}

// newTarget looks at f, unless it is known to be a regular file that has a name.
func newTarget(f File, p Policy, entry dirEntry) (target, error) {
	t := target{file: f, entry: entry}
	if named, ok := f.(interface{ Name() string }); ok {
		t.path = named.Name()
	}
	osFile, ok := f.(*os.File)
	if !ok {
		return t, nil
	}
	t.datasync, t.linked = true, entry.named
	if t.linked {
		return t, nil
	}
	links, err := t.links()
	t.linked = err == nil && links > 0
	if err != nil || p.Sync.Mode != SyncNever {
		return t, syncable(osFile, p)
	}
	return t, nil
}

// syncable refuses a policy that syncs what has no stable storage.
func syncable(f *os.File, p Policy) error {
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("holdfast: %w", err)
	}
	const never = fs.ModeNamedPipe | fs.ModeSocket | fs.ModeCharDevice
	if p.Sync.Mode != SyncNever && info.Mode()&never != 0 {
		return fmt.Errorf("holdfast: %s is a pipe, socket or device and has no stable storage for sync=%v; use sync=never", f.Name(), p.Sync)
	}
	return nil
}

// write hands p to the file until the file has taken all of it or an error stops it. It
// returns how much was taken, and in how many calls.
func (t *target) write(p []byte) (n, calls int, err error) {
	for n < len(p) {
		k, err := t.file.Write(p[n:])
		calls++
		if k < 0 || k > len(p)-n {
			return n, calls, fmt.Errorf("file says that it wrote %d of %d bytes", k, len(p)-n)
		}
		n += k
		if err == nil && k > 0 {
			continue
		}
		if err == nil {
			err = io.ErrShortWrite
		}
		if interrupted := errors.Is(err, syscall.EINTR) || errors.Is(err, io.ErrShortWrite) && k > 0; !interrupted {
			return n, calls, err
		}
	}
	return n, calls, nil
}

// sync makes all that the file has taken durable, and the first time its directory
// entry too. It returns how many calls it made.
func (t *target) sync() (calls int, err error) {
	if err := t.syncData(); err != nil {
		t.entry.lose()
		return 1, err
	}
	calls = 1
	if t.entry.pending {
		calls++
		if err := t.entry.sync(); err != nil {
			return calls, err
		}
	}
	if t.linked {
		calls++
		links, err := t.links()
		if err != nil {
			return calls, err
		}
		if links == 0 {
			return calls, ErrUnlinked
		}
	}
	return calls, nil
}

// look returns the handle of an *os.File. It is made at the first use: a file of one record
// that is not synced needs none.
func (t *target) look() (h *sys.Handle, err error) {
	if t.handle == nil {
		t.handle, err = sys.NewHandle(t.file.(*os.File))
	}
	return t.handle, err
}

// links returns how many names an *os.File has.
func (t *target) links() (uint64, error) {
	h, err := t.look()
	if err != nil {
		return 0, err
	}
	return h.Links()
}

func (t *target) syncData() error {
	if t.datasync {
		h, err := t.look()
		if err == nil {
			err = h.Datasync()
		}
		if !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
		t.datasync = false
	}
	return t.file.Sync()
}

// close closes the file and what was opened beside it.
func (t *target) close() error {
	return errors.Join(t.entry.close(), t.file.Close())
}

// Create creates or truncates the file path, with mode 0666 before umask, and
// returns a Writer on it. The first sync also syncs its directory: a durable file can
// be found after a crash. Create refuses an invalid policy before it touches the file.
// As in Append each write goes to the end of the file: if another program truncates
// it (logrotate's copytruncate), no hole is left.
func Create(path string, p Policy) (*Writer, error) {
	return OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|os.O_TRUNC, 0o666, p)
}

// Append opens the file path for appending, or creates it as Create does. The Writer's
// offsets count its own bytes, not those that the file already holds. Append does not
// look at the end of the file. After a crash it may be a part of a record, which the
// caller must handle.
func Append(path string, p Policy) (*Writer, error) {
	return OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666, p)
}

// OpenFile opens the file path as [os.OpenFile] does with flag and perm, and returns a Writer
// on it. In all else it is as Create. Without os.O_APPEND the Writer begins at byte 0.
func OpenFile(path string, flag int, perm fs.FileMode, p Policy) (*Writer, error) {
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("holdfast: %w", err)
	}
	if flag&(os.O_WRONLY|os.O_RDWR) == 0 {
		return nil, fmt.Errorf("holdfast: flag %#x opens %s for reading alone; add os.O_WRONLY", flag, path)
	}
	f, entry, err := openEntry(path, p, flag, perm)
	if err != nil {
		return nil, fmt.Errorf("holdfast: %w", err)
	}
	w, err := newWriter(f, p, entry)
	if err != nil {
		return nil, errors.Join(err, f.Close(), entry.close())
	}
	w.nameless = true
	return w, nil
}

// A dirEntry is the name of a new file in its directory, which fsync(2) of the file
// alone does not promise to make durable. The zero dirEntry asks for nothing.
type dirEntry struct {
	pending bool     // not durable yet
	named   bool     // the file was regular and had a name when it was opened
	since   int      // durable.KernelSyncs.now before it was made
	path    string   // of the directory; absolute where dir is nil
	unknown error    // why path could not be made absolute
	dir     *os.File // the directory, held open where the policy will sync
}

// newEntry opens the directory now if the policy syncs: it may be renamed before
// the first sync. A policy that never syncs takes no second descriptor, and needs the
// directory only if Sync is called, when the working directory may be another.
func newEntry(file string, p Policy) (e dirEntry, err error) {
	e = dirEntry{pending: true, since: durable.KernelSyncs.Now()}
	e.path, _ = vfs.SplitPath(file)
	if p.Sync.Mode != SyncNever {
		return e, e.open()
	}
	e.path, e.unknown = sys.Absolute(e.path)
	return e, nil
}

// openEntry opens or makes a file, and opens the directory of its name. It follows a
// symbolic link.
func openEntry(path string, p Policy, flag int, perm fs.FileMode) (*os.File, dirEntry, error) {
	f, e, err := openName(path, p, flag|sys.NoFollow, perm)
	if !errors.Is(err, syscall.ELOOP) && !errors.Is(err, syscall.EMLINK) { // EMLINK: FreeBSD
		return f, e, err
	}
	f, _, err = sys.OpenFile(path, flag&^os.O_CREATE, 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, dirEntry{}, err
	}
	target, failed := sys.Disk{}.Resolve(path)
	switch {
	case err != nil && failed != nil:
		return nil, dirEntry{}, err
	case err != nil:
		return openName(target, p, flag|sys.NoFollow, perm)
	case failed != nil:
		return f, dirEntry{}, nil
	}
	is, err := f.Stat()
	named, failed := os.Lstat(target)
	if err != nil || failed != nil || !os.SameFile(is, named) {
		return f, dirEntry{}, nil // the file behind /dev/stdout may have no name
	}
	if e, err = newEntry(target, p); err != nil {
		return nil, dirEntry{}, errors.Join(err, f.Close())
	}
	return f, e, nil
}

// openName opens or makes the file of a name that is no symbolic link.
func openName(path string, p Policy, flag int, perm fs.FileMode) (*os.File, dirEntry, error) {
	e, err := newEntry(path, p)
	if err != nil {
		return nil, dirEntry{}, err
	}
	f, named, err := sys.OpenFile(path, flag, perm)
	if err != nil {
		return nil, dirEntry{}, errors.Join(err, e.close())
	}
	e.named = named
	return f, e, nil
}

func (e *dirEntry) open() (err error) {
	if err = e.unknown; err == nil {
		e.dir, _, err = sys.OpenFile(e.path, os.O_RDONLY, 0)
	}
	if err != nil {
		return fmt.Errorf("directory of the file: %w", err)
	}
	return nil
}

// sync makes the name durable. It is called until it succeeds once.
func (e *dirEntry) sync() error {
	if e.dir == nil {
		if err := e.open(); err != nil {
			return err
		}
	}
	is := e.key()
	err := durable.KernelSyncs.Directory(is, func() error {
		err := sys.SyncDir(e.dir)
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
	e.pending = false
	return e.close()
}

// lose reports a failed sync of the file to durable.KernelSyncs: the kernel may have lost
// the directory entry too. It looks at no file system: a needless doubt costs less than a
// lost name.
func (e *dirEntry) lose() {
	if e.pending && e.dir != nil {
		durable.KernelSyncs.Fail(e.key())
	}
}

// key identifies the directory.
func (e *dirEntry) key() keyed.Key {
	device, inode := sys.Identity(e.dir)
	return keyed.Key{Device: device, Inode: inode}
}

func (e *dirEntry) close() error {
	if e.dir == nil {
		return nil
	}
	dir := e.dir
	e.dir = nil
	return dir.Close()
}
