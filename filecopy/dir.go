package filecopy

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/folding"
	"github.com/holdfast-go/holdfast/internal/handles"
	"github.com/holdfast-go/holdfast/internal/permission"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

const (
	dirUse  = 0o700  // the permissions that a directory needs while it is filled
	allowed = 0o777  // the permissions that are always kept
	sticky  = 0o1000 // only the owner of a file, or of the directory, may remove it
)

// The calls on directories, as an [Error] names them.
const (
	opReadDir  retry.Op = "readdir"
	opReadLink retry.Op = "readlink"
	opSymlink  retry.Op = "symlink"
	opLink     retry.Op = "link"
	opTimes    retry.Op = "utimens"
	opRefuse   retry.Op = "refuse"
	opVerify   retry.Op = "verify"
	opMknod    retry.Op = "mknod"
)

// An opError is a failed call before the names of the files are added.
type opError struct {
	op  retry.Op
	err error
}

func (e *opError) Error() string { return string(e.op) + ": " + e.err.Error() }
func (e *opError) Unwrap() error { return e.err }

// copyFailure adds the failed call to its error.
func copyFailure(op retry.Op, err error) error {
	if err == nil {
		return nil
	}
	return &opError{op, err}
}

// copyErrorOf adds the names of the two files to an error.
func copyErrorOf(from, to string, err error) *Error {
	e := &Error{Op: string(retry.OpOpen), Source: from, Destination: to, Offset: -1, Err: err}
	var failed *opError
	var inner *Error
	if errors.As(err, &inner) {
		e.Op, e.Offset, e.Err = inner.Op, inner.Offset, inner.Err
	} else if errors.As(err, &failed) {
		e.Op, e.Err = string(failed.op), failed.err
	}
	return e
}

// failed returns the result of a directory that could not be copied.
func (t *copyTree) failed(n *copyNode, err error) Result {
	from, to := n.path(atSource), n.path(atDestination)
	return Result{Source: from, Destination: to, Elapsed: time.Since(n.began), Err: copyErrorOf(from, to, err)}
}

// insist repeats a call while its error is temporary.
func (t *copyTree) insist(op retry.Op, call func() error) error {
	s := retry.Tries{Limits: retry.Limits{Attempts: 1}, Handles: &t.handles}
	return s.Insist(t.ctx, op, call)
}

// enter opens both directories of a node, makes the destination if it does not exist, and reads the
// source.
func (t *copyTree) enter(n *copyNode) {
	if t.stopped() {
		n.cut.Store(true)
		t.done(n)
		return
	}
	from, err := t.openSource(n)
	if err == nil {
		if err = t.openDestination(n); err != nil {
			t.handles.Rest(from)
			t.leave(n, atSource)
		}
	}
	if err != nil {
		n.cut.Store(true)
		t.report.dir(t.failed(n, err))
		t.done(n)
		return
	}
	r, _ := t.spare.Get().(*dirReader)
	if r == nil {
		r = &dirReader{buf: make([]byte, namesBuffer)}
	}
	r.node, r.from = n, from
	t.read(r)
}

func (t *copyTree) openSource(n *copyNode) (*handles.Handle, error) {
	fd, err := t.openAgain(n, atSource)
	if err != nil {
		return nil, copyFailure(retry.OpOpen, err)
	}
	if err := t.look(n, fd); err != nil {
		t.closeDir(fd)
		return nil, err
	}
	return t.keep(&n.sides[atSource], fd), nil
}

// look reads the attributes of an open source, and refuses a source whose copy would not end.
func (t *copyTree) look(n *copyNode, fd int) error {
	is, err := t.disk.StatDir(fd)
	if err != nil {
		return copyFailure(retry.OpStat, err)
	}
	n.is, n.accessed, n.modified = is.Stat, is.Accessed, is.Modified
	n.perm = n.is.Mode & allowed
	if !t.o.Archive && n.perm&0o077 != 0 {
		// The group's permission bits are the mask of its access control list.
		j := copyJob{copier: t.copier}
		list, err := j.attribute(fd, permission.AccessList)
		n.perm = permission.WithoutList(n.perm, list)
		if err := j.noList(err); err != nil {
			return err
		}
	}
	id := idOf(n.is)
	n.sides[atSource].is = id
	if n.root.above[id] && id != (fileID{}) {
		return copyFailure(opRefuse, errIntoItself)
	}
	// The directory that holds the copy may be mounted in the source too: then all copied names
	// would be met again.
	for above := n.above; above != nil; above = above.above {
		if id.is(above.sides[atDestination].is) {
			return copyFailure(opRefuse, errIntoItself)
		}
	}
	for above := n.above; above != nil && !above.lender; above = above.above {
		if id.is(above.sides[atSource].is) {
			return copyFailure(opRefuse, errInItself)
		}
	}
	return t.overlap.enter(n, atSource, is.Mounted)
}

func (t *copyTree) openDestination(n *copyNode) error {
	above, err := t.use(n.above, atDestination)
	if err != nil {
		return copyFailure(retry.OpOpen, err)
	}
	defer t.handles.Rest(above)
	name := n.names[atDestination]
	err = t.copier.give(n.above.given, above.Fd, name, func() error {
		err := t.insist(retry.OpMkdir, func() error { return t.disk.MkdirIn(above.Fd, name, dirUse) })
		if n.made = err == nil; !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	})
	if err != nil {
		return copyFailure(givenBy(retry.OpMkdir, err), err)
	}
	fd, err := t.openIn(above, name)
	if err != nil {
		if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
			if is, failed := t.disk.Stat(above.Fd, name); failed == nil {
				err = copyFailure(opRefuse, fmt.Errorf("%s is where the directory must be; remove it, or name another destination", kindName(is.Mode)))
			}
		}
		return copyFailure(retry.OpOpen, err)
	}
	if err := t.lookAtDestination(n, fd); err != nil {
		t.closeDir(fd)
		return err
	}
	t.handles.Rest(t.keep(&n.sides[atDestination], fd))
	n.filled = true
	// A directory that is there may be of a copy that was killed, and its name on no disk. A mount has none of the copy's.
	switch {
	case !n.made && n.above.sides[atDestination].is.device != n.sides[atDestination].is.device:
	case t.batch.each:
		t.batch.step.SyncDir(&n.above.place) // the place keeps the error
	case t.batch.inSteps:
		t.batch.step.Named(&n.above.place)
	}
	return nil
}

func (t *copyTree) lookAtDestination(n *copyNode, fd int) error {
	is, err := t.disk.StatDir(fd)
	if err != nil {
		return copyFailure(retry.OpStat, err)
	}
	id := idOf(is.Stat)
	t.batch.opened(n, id)
	n.has, n.group = is.Mode&vfs.PermMask, is.GID
	if n.made && n.above.sides[atDestination].is.device == id.device {
		if n.above.given != nil { // a new directory folds names as the one above does
			n.given = new(folding.Names)
		}
	} else if vfs.FoldsNames(t.disk, fd) {
		n.given = new(folding.Names)
	}
	if id.is(idOf(n.is)) {
		return copyFailure(opRefuse, errSameDir)
	}
	if err := t.overlap.enter(n, atDestination, is.Mounted); err != nil || n.made {
		return err
	}
	// The owner of an existing destination gets write permission until it has the source's
	// permissions. Only the owner can change that; otherwise the errors of the files say what is
	// missing.
	if n.has&dirUse != dirUse && t.insist(retry.OpChmod, func() error { return t.disk.Chmod(fd, n.has|dirUse) }) == nil {
		n.has |= dirUse
	}
	return nil
}

// givenBy returns the call that an error of giving a name is of.
func givenBy(op retry.Op, err error) retry.Op {
	if taken := (*folding.TakenError)(nil); err != nil && errors.As(err, &taken) {
		return opRefuse
	}
	return op
}

var errSameDir = errors.New("source and destination are one directory; name another destination")

// kindName returns a file's kind in words.
func kindName(mode uint32) string {
	switch mode & vfs.KindMask {
	case vfs.KindRegular:
		return "a file"
	case kindDir:
		return "a directory"
	case vfs.KindLink:
		return "a symbolic link"
	case 0o010000:
		return "a named pipe"
	case 0o140000:
		return "a socket"
	case 0o020000, 0o060000:
		return "a device"
	}
	return "something that is no file"
}

// done counts down a node's open work. After the last of it the directory gets its permissions and
// times.
func (t *copyTree) done(n *copyNode) {
	for n != nil && n.left.Add(-1) == 0 {
		t.overlap.leave(n)
		if n.filled {
			t.finishDir(n)
		}
		t.openAbove(n, atSource)
		t.leave(n, atSource)
		t.openAbove(n, atDestination)
		if !t.batch.step.Waits(&n.place) {
			t.leave(n, atDestination)
		}
		n = n.above
	}
}

func (t *copyTree) finishDir(n *copyNode) {
	r := Result{Source: n.path(atSource), Destination: n.path(atDestination)}
	err := t.likeSource(n, &r)
	if err == nil && n.cut.Load() {
		return // the failure was reported, or the call has stopped
	}
	if err != nil {
		t.report.dir(t.failed(n, err))
		return
	}
	r.Elapsed, r.Outcome = time.Since(n.began), holdfast.OutcomeWritten
	t.batch.add(copyPending{kind: dirCopy, node: n.above, self: n, result: r})
}

// likeSource gives the destination the permissions and times of its source, and with Archive its
// owner and extended attributes.
func (t *copyTree) likeSource(n *copyNode, r *Result) error {
	h, err := t.use(n, atDestination)
	if err != nil {
		return copyFailure(retry.OpOpen, err)
	}
	defer t.handles.Rest(h)
	perm := n.perm
	if n.group != n.is.GID {
		perm = permission.WithoutGroup(perm)
	}
	if !n.made { // an existing directory permits no other users than before: its files may rely on that
		perm &= 0o700 | n.has
	}
	perm |= n.has & (permission.SetGroup | sticky)
	if t.o.Archive {
		perm = n.is.Mode & vfs.PermMask
		owned, err := t.archiveDir(n, h, r)
		if err != nil {
			return err
		}
		if !owned {
			perm &^= permission.SetUser | permission.SetGroup
		}
	}
	if perm != n.has || t.o.Archive {
		err := t.insist(retry.OpChmod, func() error { return t.disk.Chmod(h.Fd, perm) })
		if err == nil {
			err = whetherHas(t.disk, h.Fd, perm)
		}
		if err = t.o.keep(r, "permissions", err); err != nil {
			return copyFailure(retry.OpChmod, err)
		}
	}
	if t.o.FreshTimes {
		return nil
	}
	err = t.insist(opTimes, func() error {
		return t.disk.SetTimesIn(h.Fd, sys.Name(".\x00"), n.accessed, n.modified)
	})
	return copyFailure(opTimes, t.o.keep(r, "times", err))
}

// archiveDir gives a directory the owner and the extended attributes of its source.
func (t *copyTree) archiveDir(n *copyNode, to *handles.Handle, r *Result) (owned bool, err error) {
	from, err := t.use(n, atSource)
	if err != nil {
		return false, copyFailure(retry.OpOpen, err)
	}
	defer t.handles.Rest(from)
	j := copyJob{copier: t.copier, in: from.Fd, out: to.Fd}
	j.was.Stat = n.is
	if j.has.Stat, err = t.disk.StatFD(to.Fd); err != nil {
		return false, copyFailure(retry.OpStat, err)
	}
	err = j.keepOwner()
	r.NotKept = j.r.NotKept
	return !j.withoutOwner, err
}
