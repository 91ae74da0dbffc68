package filecopy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/folding"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A copySpot names a file: in an open directory, or by a path if dir is sys.AtCwd. The field path
// is for messages, and to follow a symbolic link.
type copySpot struct {
	dir   int
	name  sys.Name
	path  string
	mark  *copyMark      // the destination's mark; nil: its temporary name is random
	given *folding.Names // the names given in the destination's directory, or nil
}

// A copier copies files. Any number of goroutines may use it.
type copier struct {
	disk       vfs.CopyDisk
	attributes vfs.Attributes // disk's
	o          Options
	names      *durable.NameSyncs
	since      int // names.now when the copy began

	// moved, if not nil, is called with each number of bytes of data and holes done, by the
	// goroutine that copies them.
	moved func(n int64)

	sharing deviceAnswer // whether small files are shared

	// batch is set for All, which syncs and verifies the files later if write does not sync them.
	// All replaces symbolic links and does not follow them.
	batch bool
}

// newCopier returns a copier. It must be made before the first file is.
func newCopier(disk vfs.CopyDisk, o Options) *copier {
	c := &copier{disk: disk, attributes: vfs.AttributesOf(disk), o: o, names: durable.NameSyncsOf(disk)}
	c.since = c.names.Now()
	return c
}

// A madeCopy is a written file, which may not have its name yet.
type madeCopy struct {
	dir       int            // the directory of the names; sys.AtCwd: they are paths
	name      sys.Name       // the final name
	temporary sys.Name       // the current name; "": name
	mark      *copyMark      // the mark that gave the temporary name, or nil
	given     *folding.Names // see copySpot
	replaces  bool           // a file of the final name exists
	partial   bool           // after a failure the temporary stays, to be resumed

	// elsewhere: the destination was a symbolic link. The directory to be synced is then the
	// target's: publish syncs it if the copy was synced.
	elsewhere bool
	synced    bool
	noJournal bool // the target's file system has no journal
}

// A copyJob copies one file.
type copyJob struct {
	*copier
	ctx      context.Context
	to, from copySpot
	sync     bool
	made     madeCopy
	r        Result

	in, out int
	was     sys.FileStat // the source at the beginning
	list    []byte       // the source's access control list, if the copy does not get that
	old     sys.Stat     // the earlier regular file at the destination, or none
	oldList []byte       // the earlier file's access control list
	has     sys.FileStat // the destination before its attributes were changed
	looked  bool         // has is known
	changed bool         // the destination's permissions may differ from has

	withoutOwner bool  // the owner could not be kept
	done         int64 // the offset up to which the copy is complete
	moving       mover
}

// write copies a file with its permissions and times. If the file has a temporary name, publish
// gives it its own. write syncs the file if sync says so, or the options do by Atomic or Verify.
// With Verify it also reads it back. It fills in the result, except for Durable and the Outcome
// after publish. After an error nothing is left of the copy, unless the options let it be resumed.
func (c *copier) write(ctx context.Context, to, from copySpot, sync bool) (made madeCopy, r Result) {
	j := copyJob{copier: c, ctx: ctx, to: to, from: from, sync: sync || !c.batch && (c.o.Atomic || c.o.Verify), in: -1, out: -1}
	j.r = Result{Source: from.path, Destination: to.path}
	if !c.batch { // File times its whole call
		j.r.Err = j.run()
		return j.made, j.r
	}
	began := time.Now()
	j.r.Err = j.run()
	j.r.Elapsed = time.Since(began)
	return j.made, j.r
}

func (j *copyJob) run() error {
	if err := j.openSource(); err != nil {
		return err
	}
	defer j.disk.Close(j.in) // it was only read
	if err := j.openDestination(); err != nil {
		return err
	}
	err := j.fill()
	if err != nil && !j.looked {
		_ = j.lookAtCopy() // the first failure is the one to report
	}
	if failed := j.disk.Close(j.out); failed != nil && err == nil {
		err = j.failed("close", -1, failed)
	}
	if err != nil {
		return j.undo(err)
	}
	if j.made.temporary == "" {
		j.r.Outcome = holdfast.OutcomeWritten
	}
	return nil
}

// fill copies the source into the open file.
func (j *copyJob) fill() error {
	steps := []func() error{j.resume, j.copyBytes, j.lookAgain, j.keepAttributes, j.syncFile, j.verify}
	for _, step := range steps {
		if err := j.stopped(); err != nil {
			return err
		}
		if err := step(); err != nil {
			return err
		}
	}
	return j.stopped()
}

// undo removes a failed copy, or leaves it to be resumed.
func (j *copyJob) undo(err error) error {
	if j.made.partial && j.done > 0 {
		return err
	}
	j.made.partial = false
	if j.made.temporary == "" && j.has.Inode != 0 {
		if is, failed := j.statAs(j.made.name); failed == nil && idOf(is) != idOf(j.has.Stat) {
			return err // another copy has replaced this file
		}
	}
	if failed := j.discard(&j.made); failed != nil {
		if j.made.temporary == "" {
			j.r.Outcome = holdfast.OutcomePartial
		}
		return stillThere(err, failed)
	}
	return err
}

// stillThere adds to the error of a copy the error of removing it, if that failed.
func stillThere(err, failed error) error {
	if failed == nil {
		return err
	}
	if e := (*Error)(nil); errors.As(err, &e) {
		e.Err = stillThere(e.Err, failed)
		return err
	}
	return fmt.Errorf("%w, and %w: %w", err, ErrLeftover, failed)
}

// failed returns the error of a call at a byte of the file; -1 if it has none.
func (j *copyJob) failed(op string, at int64, err error) error {
	return &Error{Op: op, Source: j.from.path, Destination: j.to.path, Offset: at, Err: err}
}

func (j *copyJob) refused(format string, args ...any) error {
	return j.failed("refuse", -1, fmt.Errorf(format, args...))
}

// stopped returns an error if the copy must stop.
func (j *copyJob) stopped() error {
	if j.ctx.Err() != nil {
		return j.failed("stop", j.done, context.Cause(j.ctx))
	}
	return nil
}

// lookAgain checks whether the source has changed, and records the size that was copied.
func (j *copyJob) lookAgain() error {
	now, err := j.stat(j.in)
	if err != nil {
		return j.failed("stat", -1, err)
	}
	j.r.Size = j.done
	j.r.Changed = now.Size != j.was.Size || !now.Modified.Equal(j.was.Modified) || !now.Changed.Equal(j.was.Changed)
	if shrank := min(now.Size, j.done); shrank < j.was.Size && j.r.Changed {
		j.made.partial = false
		return j.failed("read", shrank, fmt.Errorf("the source shrank from %d bytes while it was copied; copy it when nobody writes to it", j.was.Size))
	}
	return nil
}

func (j *copyJob) syncFile() error {
	if !j.sync {
		return nil
	}
	if err := sys.Uninterrupted(func() error { return j.disk.Sync(j.out) }); err != nil {
		j.made.partial = false // the bytes on the disk are unknown
		return j.failed("sync", -1, err)
	}
	j.made.synced = true
	return nil
}

// publish gives a copy its name, if it does not have it. After an error the copy is discarded.
func (c *copier) publish(m *madeCopy) error {
	if m.temporary != "" {
		var err error
		if m.given == nil {
			err = c.rename(m)
		} else {
			own := *m // m would be allocated for each copy
			err = c.give(own.given, own.dir, own.name, func() error { return c.rename(&own) })
		}
		if err != nil {
			return err
		}
		m.mark.giveBack(m.temporary)
		m.temporary = ""
	}
	if !m.elsewhere || !m.synced {
		return nil
	}
	name, err := sys.NewName(filepath.Dir(m.name.String()))
	if err != nil {
		return err
	}
	fd, err := c.disk.OpenDir(name)
	if err != nil {
		return err
	}
	defer c.disk.Close(fd) // nothing was written to it
	m.noJournal = vfs.LacksJournal(c.disk, fd)
	return c.syncNames(fd)
}

func (c *copier) rename(m *madeCopy) error {
	rename := c.disk.Rename
	if !m.replaces {
		rename = c.disk.RenameNew
	}
	err := sys.Uninterrupted(func() error { return rename(m.dir, m.temporary, m.name) })
	if !m.replaces && cannot(err) { // the file system has only the plain rename
		err = sys.Uninterrupted(func() error { return c.disk.Rename(m.dir, m.temporary, m.name) })
	}
	return err
}

// give calls do, which gives a file its name, unless that is the name of another file of the call.
func (c *copier) give(given *folding.Names, dir int, name sys.Name, do func() error) error {
	return given.Give(c.disk, dir, name, do)
}

// syncNames makes the names in an open directory durable.
func (c *copier) syncNames(fd int) error {
	var is sys.FileStat
	err := sys.Uninterrupted(func() (err error) {
		is, err = c.disk.StatFile(fd)
		return err
	})
	if err != nil {
		return err
	}
	key := keyed.Key{Device: is.Device, Inode: is.Inode}
	err = c.names.Directory(key, func() error {
		return sys.Uninterrupted(func() error { return c.disk.Sync(fd) })
	})
	if err == nil && c.names.Losses(key) > c.since {
		return durable.ErrDirLost
	}
	return err
}

// discard removes a copy under its current name.
func (c *copier) discard(m *madeCopy) error {
	name := m.temporary
	if name == "" {
		name = m.name
	}
	err := sys.Uninterrupted(func() error { return c.disk.Remove(m.dir, name) })
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		m.mark.giveBack(name)
		return nil
	}
	return err
}

func (c *copier) stat(fd int) (is sys.FileStat, err error) {
	err = sys.Uninterrupted(func() (err error) {
		is, err = c.disk.StatFile(fd)
		return err
	})
	return is, err
}

// cannot reports whether an error means that a call does not work on these files, and another
// method should be tried. The errors are listed in ioctl_ficlone(2), copy_file_range(2), splice(2)
// and fallocate(2). A seccomp filter returns EPERM.
func cannot(err error) bool {
	for _, e := range []syscall.Errno{syscall.EXDEV, syscall.EINVAL, syscall.ENOTTY, sys.ErrTextBusy, syscall.EPERM, syscall.EBADF} {
		if errors.Is(err, e) {
			return true
		}
	}
	return errors.Is(err, errors.ErrUnsupported)
}

// copyFlags open a new file for a copy.
const copyFlags = os.O_RDWR | os.O_CREATE | os.O_EXCL
