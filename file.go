package holdfast

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// target is the File under a Writer with what was found out about it once, in
// newTarget: the fastest correct way to sync it, whether its links can be
// counted, and the directory whose entry must become durable with it.
//
// Note: O_DSYNC and RWF_DSYNC, which write and sync in one call, and fallocate
// were measured against write and fdatasync and gained nothing for a growing
// file (see DESIGN.md), so there is one way.
type target struct {
	file   File
	path   string
	handle *sys.Handle // of an *os.File, else nil
	linked bool        // the file had a name when we got it
	entry  entry       // what must be durable for the file to be found
	// datasync is cleared when the system turns out not to have it.
	datasync bool
}

func newTarget(f File, p Policy) (target, error) {
	t := target{file: f}
	osFile, ok := f.(*os.File)
	if !ok {
		return t, nil
	}
	t.path = osFile.Name()
	if err := syncable(osFile, p); err != nil {
		return target{}, err
	}
	handle, err := sys.NewHandle(osFile)
	if err != nil {
		return target{}, fmt.Errorf("holdfast: %w", err)
	}
	links, err := handle.Links()
	t.handle, t.datasync = handle, true
	t.linked = err == nil && links > 0
	return t, nil
}

// syncable refuses a policy that syncs what has no stable storage.
func syncable(f *os.File, p Policy) error {
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("holdfast: %w", err)
	}
	const never = fs.ModeNamedPipe | fs.ModeSocket | fs.ModeCharDevice
	if p.syncs() && info.Mode()&never != 0 {
		return fmt.Errorf("holdfast: %s is a pipe, socket or terminal and has no stable storage for sync=%v; use sync=never", f.Name(), p.Sync)
	}
	return nil
}

// write hands p to the file until all of it is taken or an error stops it, and
// returns how much was taken and in how many calls.
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
		interrupted := errors.Is(err, syscall.EINTR) || errors.Is(err, io.ErrShortWrite) && k > 0
		if !interrupted {
			return n, calls, err
		}
	}
	return n, calls, nil
}

// sync makes everything that the file has taken durable, and the first time its
// directory entry too. It returns how many calls it made.
func (t *target) sync() (calls int, err error) {
	if err := t.syncData(); err != nil {
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
		links, err := t.handle.Links()
		if err != nil {
			return calls, err
		}
		if links == 0 {
			return calls, ErrUnlinked
		}
	}
	return calls, nil
}

func (t *target) syncData() error {
	if t.datasync {
		err := t.handle.Datasync()
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
// returns a Writer on it. The first sync also syncs its directory, so that what
// is called durable is found after a crash. An invalid policy is refused before
// the file is touched.
func Create(path string, p Policy) (*Writer, error) {
	return open(path, p, os.O_TRUNC)
}

// Append opens the file path for appending, and creates it, as Create does, if
// it is not there. The Writer's offsets count its own bytes, not those that the
// file already holds.
func Append(path string, p Policy) (*Writer, error) {
	return open(path, p, os.O_APPEND)
}

func open(path string, p Policy, flag int) (*Writer, error) {
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("holdfast: %w", err)
	}
	entry, err := newEntry(path, p)
	if err != nil {
		return nil, fmt.Errorf("holdfast: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|flag, 0o666)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("holdfast: %w", err), entry.close())
	}
	w, err := New(f, p)
	if err != nil {
		return nil, errors.Join(err, f.Close(), entry.close())
	}
	w.target.entry, w.nameless = entry, true
	return w, nil
}
