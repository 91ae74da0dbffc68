package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/handles"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// newSuffix ends the name of the whole new file while it is written over a mount point.
const newSuffix = ".holdfast-new"

// A tornError is of a file that could not be written in place to its end.
type tornError struct {
	kept sys.Name
	err  error
}

func (e tornError) Error() string {
	return fmt.Sprintf("the file can't be renamed over and was written in part: %v; the whole new one is %s beside it", e.err, e.kept)
}

func (e tornError) Unwrap() error { return e.err }

var errDescriptor = errors.New("the path names a descriptor of a process and no file; give the path of the file itself")

// overwrite writes the temporary file's bytes over a file that no rename can replace, because something
// is mounted on it. The temporary file first gets a name by which a user finds the bytes after a
// crash, and loses it when they are durable in the old file.
func (f *Set) overwrite(ctx context.Context, t *retry.Tries, in *handles.Dir, r *replacement) error {
	source, reads := f.disk.(vfs.Source)
	if !reads {
		return errors.ErrUnsupported
	}
	kept := sys.Name(strings.TrimSuffix(string(r.base), "\x00") + newSuffix + "\x00")
	if err := f.disk.Rename(in.Fd, r.temporary, kept); err != nil {
		return err
	}
	r.temporary = kept // until the old file is touched, a failure removes it
	syncs := f.options.Policy.Sync.Mode != holdfast.SyncNever
	if syncs {
		if err := f.syncDir(in); err != nil {
			return err
		}
	}
	from, err := source.OpenSource(in.Fd, kept)
	if err != nil {
		return err
	}
	defer f.disk.Close(from) // it was only read
	to, err := f.disk.OpenFile(in.Fd, r.base, os.O_WRONLY|sys.NoFollow, 0)
	if err != nil {
		return err
	}
	if syncs {
		vfs.DropRefused(f.disk, to, 0)
	}
	err = f.copyOver(ctx, t, source, to, from)
	if err == nil && syncs {
		err = f.syncFile(to, r.result.path)
	}
	if failed := f.disk.Close(to); err == nil {
		err = failed
	}
	if err != nil {
		return tornError{kept, err}
	}
	r.result.forgone |= inPlace
	return f.discard(in.Fd, kept)
}

// copyOver overwrites the bytes of file to with the bytes of file from.
func (f *Set) copyOver(ctx context.Context, t *retry.Tries, source vfs.Source, to, from int) error {
	buf := make([]byte, pendingBuffer)
	for at := int64(0); ; {
		n, err := source.ReadAt(from, buf, at)
		if err != nil && err != io.EOF {
			return err
		}
		if n == 0 {
			return sys.Uninterrupted(func() error { return f.disk.Truncate(to, at) })
		}
		for done := 0; done < n; {
			k, err := f.disk.WriteAt(to, buf[done:n], at+int64(done))
			if done += k; k > 0 {
				t.Progress()
			} else if err == nil {
				err = io.ErrShortWrite
			}
			if err != nil && done < n && !t.Again(ctx, retry.OpWrite, &err) {
				return err
			}
		}
		at += int64(n)
	}
}
