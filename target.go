package holdfast

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/holdfast-go/holdfast/internal/deadline"
	"github.com/holdfast-go/holdfast/internal/dirent"
	"github.com/holdfast-go/holdfast/internal/records"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// target is the File of a Writer and the properties that newTarget found: the fastest
// correct way to sync it, whether its links can be counted, and the directory entry that
// must become durable with it.
//
// Note: O_DSYNC and RWF_DSYNC write and sync in one call. For a growing file they gained
// nothing over write and fdatasync, and neither did fallocate (figures:
// docs/design/decisions.md).
type target struct {
	file   File
	path   string
	handle *sys.Handle // of an *os.File; see look
	osFile *os.File    // the file, if it is one
	own    bool        // the Writer has opened osFile, and nobody else closes it
	fd     sys.Descriptor
	device uint64       // the number of its file system, if the policy has clocks and it is known
	linked bool         // the file had a name in newTarget
	entry  dirent.Entry // must be durable for the file to be found after a crash
	ender  records.Ender
	steady bool // no call of the file panics: it is an *os.File, or of package rotate
	// datasync: fdatasync is used. It is cleared when the system reports that it has none.
	datasync bool
}

// newTarget asks the system about f, unless name says that f is a regular file with a name.
func newTarget(f File, p Policy, name dirent.Entry) (target, error) {
	t := target{file: f, entry: name}
	if named, ok := f.(interface{ Name() string }); ok {
		t.path = named.Name()
	}
	osFile, ok := f.(*os.File)
	if !ok {
		t.ender, t.steady = f.(records.Ender)
		if placed, ok := f.(deadline.Placed); ok {
			t.device = placed.FileSystemDevice()
		}
		return t, nil
	}
	t.osFile, t.steady, t.datasync, t.linked, t.device = osFile, true, true, name.Named, name.Device
	if t.linked {
		t.fd, t.own = sys.NewDescriptor(osFile)
		return t, nil
	}
	sys.DropRefused(osFile, 0)
	if p.Due().Flush > 0 {
		t.device = sys.RegularDevice(osFile)
	}
	links, err := t.links()
	t.linked = err == nil && links > 0
	if err != nil || p.Sync.Mode != SyncNever {
		return t, syncable(osFile, p)
	}
	return t, nil
}

// syncable refuses a policy that syncs a file without stable storage.
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

// write writes all of p to the file, or stops at an error. It returns the number of bytes
// written and of calls made.
func (t *target) write(p []byte) (n, calls int, err error) {
	const mostInterrupts = 1000 // in a row, as internal/retry allows
	for interrupts := 0; n < len(p); interrupts++ {
		k, err := t.file.Write(p[n:])
		calls++
		if k > 0 {
			interrupts = 0
		}
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
		if interrupted := errors.Is(err, syscall.EINTR) || errors.Is(err, io.ErrShortWrite) && k > 0; !interrupted || interrupts == mostInterrupts {
			return n, calls, err
		}
	}
	return n, calls, nil
}

// sync makes all written bytes durable, and the first time the directory entry too. It
// returns the number of calls made.
func (t *target) sync() (calls int, err error) {
	if err := t.syncData(); err != nil {
		t.entry.Lose()
		return 1, err
	}
	calls = 1
	if t.entry.Pending {
		calls++
		if err := t.entry.Sync(); err != nil {
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

// look returns the handle of an *os.File. It is made at the first use, because a file that is
// never synced needs none.
func (t *target) look() (h *sys.Handle, err error) {
	if t.handle == nil {
		t.handle, err = sys.NewHandle(t.osFile)
	}
	return t.handle, err
}

// links returns the number of names of an *os.File.
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

// Stat returns what the file's own Stat does; for a File that has none it is
// errors.ErrUnsupported. Bytes that wait in memory are not in its size: see Written.
func (w *Writer) Stat() (fs.FileInfo, error) {
	if f, ok := w.target.file.(interface{ Stat() (fs.FileInfo, error) }); ok {
		return f.Stat()
	}
	return nil, fmt.Errorf("holdfast: stat: the file has no Stat: %w", errors.ErrUnsupported)
}

func (t *target) close() error {
	return errors.Join(t.entry.Close(), t.file.Close())
}

// Create creates or truncates the file path, with mode 0666 before umask, and
// returns a Writer on it. The first sync also syncs the directory, so that the file can
// be found after a crash. Create refuses an invalid policy before it touches the file.
// As in Append, each write goes to the end of the file: if another program truncates
// it (logrotate's copytruncate), no hole is left.
func Create(path string, p Policy) (*Writer, error) {
	return OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|os.O_TRUNC, 0o666, p)
}

// Append opens the file path for appending, or creates it as Create does. The Writer's
// offsets count its own bytes only, from 0. Append does not read the end of the file:
// after a crash it may be a part of a record, which the caller must handle. What another process
// has lost in a failed sync may be zeros there.
func Append(path string, p Policy) (*Writer, error) {
	return OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666, p)
}

// OpenFile opens the file path as [os.OpenFile] does with flag and perm, and returns a Writer
// on it. Otherwise it does as Create. Without os.O_APPEND the Writer begins at byte 0. A refusal of
// the system is a *fs.PathError, as os.OpenFile's.
func OpenFile(path string, flag int, perm fs.FileMode, p Policy) (*Writer, error) {
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("holdfast: %w", err)
	}
	if flag&(os.O_WRONLY|os.O_RDWR) == 0 {
		return nil, fmt.Errorf("holdfast: flag %#x opens %s for reading alone; add os.O_WRONLY", flag, path)
	}
	f, name, err := dirent.Open(path, p.Sync.Mode != SyncNever, flag, perm)
	if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
		return nil, pathErr // as os.OpenFile, for os.IsNotExist and its like
	}
	if err != nil {
		return nil, fmt.Errorf("holdfast: %w", err)
	}
	w, err := newWriter(f, p, name)
	if err != nil {
		return nil, errors.Join(err, f.Close(), name.Close())
	}
	w.sync.dirUnsynced = true
	return w, nil
}
