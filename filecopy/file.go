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
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A copySpot is a file by its name in an open directory, which may be sys.AtCwd: then the
// name is a path. The field path is for messages, and to follow a symbolic link.
type copySpot struct {
	dir  int
	name sys.Name
	path string
	mark *copyMark // of a destination; nil: its temporary has a name of no meaning
}

// A copier copies files, any number at a time.
type copier struct {
	disk       vfs.CopyDisk
	attributes vfs.Attributes // of disk
	o          Options
	names      *durable.NameSyncs
	since      int // names.now when the copy began

	// moved, if not nil, counts the bytes of data and holes that are done. The goroutine
	// that copies them calls it.
	moved func(n int64)

	sharing deviceAnswer // whether small files are shared

	// batch: the files are those of All. It syncs and verifies them later if write does not
	// sync them. It replaces symbolic links and does not follow them.
	batch bool
}

// newCopier returns a copier, which begins now.
func newCopier(disk vfs.CopyDisk, o Options) *copier {
	c := &copier{disk: disk, attributes: vfs.AttributesOf(disk), o: o, names: durable.NameSyncsOf(disk)}
	c.since = c.names.Now()
	return c
}

// A madeCopy is a file that was written and may have to get its name yet.
type madeCopy struct {
	dir       int       // of the names; sys.AtCwd: they are paths
	name      sys.Name  // what it is, or is to be, named
	temporary sys.Name  // what it is named; "": name
	mark      *copyMark // that the temporary name is from, or nil
	replaces  bool      // there is a file of that name
	partial   bool      // its temporary is to stay if it fails, for the next time

	// elsewhere: the destination was a symbolic link. The names to be synced are then in the
	// directory where the link leads: publish syncs them if the copy was synced.
	elsewhere bool
	synced    bool
	noJournal bool // that directory's file system has none
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
	list    []byte       // its access control list, if the copy does not get that
	old     sys.Stat     // the regular file that was at the destination, or none
	oldList []byte       // its access control list
	has     sys.FileStat // the destination, before anything but its bytes was changed
	looked  bool         // has is known
	changed bool         // the destination's permissions are not what they were then
	done    int64        // how far the copy is
	moving  mover
}

// write copies a file and gives it its permissions and times. It leaves the name to
// publish, if the file does not have it. It syncs the file if sync says so, or the options
// do by Atomic or Verify. With Verify it also reads it back. It fills in the result but for
// Durable and the Outcome after publish. After an error nothing is left of the copy, unless
// the options say that it may be resumed.
func (c *copier) write(ctx context.Context, to, from copySpot, sync bool) (made madeCopy, r Result) {
	j := copyJob{copier: c, ctx: ctx, to: to, from: from, sync: sync || !c.batch && (c.o.Atomic || c.o.Verify), in: -1, out: -1}
	j.r = Result{Source: from.path, Destination: to.path}
	if !c.batch { // then it is the whole call that is timed
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

// fill makes an open file the source's copy.
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

// undo removes what was made of a copy that failed, or leaves it to be resumed.
func (j *copyJob) undo(err error) error {
	if j.made.partial && j.done > 0 {
		return err
	}
	j.made.partial = false
	if j.made.temporary == "" && j.has.Inode != 0 {
		if is, failed := j.statAs(j.made.name); failed == nil && idOf(is) != idOf(j.has.Stat) {
			return err // another copy has put its own file in the place of this one
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

// stillThere adds to the error of a copy why what was made of it can't be removed, if so.
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

// failed returns the error of a call, at a byte of the file or, at -1, as a whole.
func (j *copyJob) failed(op string, at int64, err error) error {
	return &Error{Op: op, Source: j.from.path, Destination: j.to.path, Offset: at, Err: err}
}

func (j *copyJob) refused(format string, args ...any) error {
	return j.failed("refuse", -1, fmt.Errorf(format, args...))
}

// stopped returns an error if the copying is to stop.
func (j *copyJob) stopped() error {
	if j.ctx.Err() != nil {
		return j.failed("stop", j.done, context.Cause(j.ctx))
	}
	return nil
}

// lookAgain checks whether the source is still what it was, and notes the size that was copied.
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
		j.made.partial = false // what the disk has of it is not known
		return j.failed("sync", -1, err)
	}
	j.made.synced = true
	return nil
}

// publish gives a copy its name, if it does not have it. After an error it is discarded.
func (c *copier) publish(m *madeCopy) error {
	if m.temporary != "" {
		rename := c.disk.Rename
		if !m.replaces {
			rename = c.disk.RenameNew
		}
		err := sys.Uninterrupted(func() error { return rename(m.dir, m.temporary, m.name) })
		if !m.replaces && cannot(err) { // the file system knows only the plain rename
			err = sys.Uninterrupted(func() error { return c.disk.Rename(m.dir, m.temporary, m.name) })
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

// syncNames makes the names durable that an open directory has by now.
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

// discard removes a copy that is not to get its name, or is to lose it.
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

// cannot reports whether an error says that a call can't be made on such files, so that
// another way is worth a try. The errors are those of ioctl_ficlone(2),
// copy_file_range(2), splice(2) and fallocate(2). A seccomp filter says EPERM.
func cannot(err error) bool {
	for _, e := range []syscall.Errno{syscall.EXDEV, syscall.EINVAL, syscall.ENOTTY, sys.ErrTextBusy, syscall.EPERM, syscall.EBADF} {
		if errors.Is(err, e) {
			return true
		}
	}
	return errors.Is(err, errors.ErrUnsupported)
}

// copyFlags open what a copy is written to, which no other file may be.
const copyFlags = os.O_RDWR | os.O_CREATE | os.O_EXCL
