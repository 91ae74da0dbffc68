package holdfast

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/internal/sys"
)

const (
	folderUse = 0o700  // what a folder may be used for while it is filled
	allowed   = 0o777  // the permissions that are always kept
	setGroup  = 0o2000 // new names get the folder's group
	sticky    = 0o1000 // only who owns a file, or the folder, may remove it
)

// What a [CopyError] calls the calls of folders.
const (
	opReadFolder fileOp = "readdir"
	opReadLink   fileOp = "readlink"
	opSymlink    fileOp = "symlink"
	opLink       fileOp = "link"
	opTimes      fileOp = "utimens"
	opRefuse     fileOp = "refuse"
	opVerify     fileOp = "verify"

	opListAttributes fileOp = "list attributes"
	opSetAttribute   fileOp = "set attribute"
)

// An opError is what failed, before it is told of which files.
type opError struct {
	op  fileOp
	err error
}

func (e *opError) Error() string { return string(e.op) + ": " + e.err.Error() }
func (e *opError) Unwrap() error { return e.err }

// copyFailure says which call failed.
func copyFailure(op fileOp, err error) error {
	if err == nil {
		return nil
	}
	return &opError{op, err}
}

// copyErrorOf puts the names of the two files to what failed.
func copyErrorOf(from, to string, err error) *CopyError {
	e := &CopyError{Op: string(opOpen), Source: from, Destination: to, Offset: -1, Err: err}
	var failed *opError
	var told *CopyError
	if errors.As(err, &told) {
		e.Op, e.Offset, e.Err = told.Op, told.Offset, told.Err
	} else if errors.As(err, &failed) {
		e.Op, e.Err = string(failed.op), failed.err
	}
	return e
}

// failed is the result of a folder that could not be copied.
func (t *copyTree) failed(n *copyNode, err error) CopyResult {
	from, to := n.path(atSource), n.path(atDestination)
	return CopyResult{Source: from, Destination: to, Elapsed: time.Since(n.began), Err: copyErrorOf(from, to, err)}
}

// insist makes a call as often as it takes.
func (t *copyTree) insist(op fileOp, call func() error) error {
	s := tries{retry: Retry{Attempts: 1}, handles: &t.handles}
	return s.insist(t.ctx, op, call)
}

// open opens both folders of a node, and makes the destination if it is not there. It
// returns the atSource, in use.
func (t *copyTree) open(n *copyNode) (*handle, error) {
	from, err := t.openSource(n)
	if err != nil {
		return nil, err
	}
	if err := t.openDestination(n); err != nil {
		t.handles.rest(from)
		t.leave(n, atSource)
		return nil, err
	}
	return from, nil
}

func (t *copyTree) openSource(n *copyNode) (*handle, error) {
	fd, err := t.openAgain(n, atSource)
	if err != nil {
		return nil, copyFailure(opOpen, err)
	}
	if err := t.look(n, fd); err != nil {
		t.closeFolder(fd)
		return nil, err
	}
	return t.keep(&n.sides[atSource], fd), nil
}

func (t *copyTree) look(n *copyNode, fd int) (err error) {
	is, err := t.disk.StatFolder(fd)
	if err != nil {
		return copyFailure(opStat, err)
	}
	n.is, n.accessed, n.modified = is.Stat, is.Accessed, is.Modified
	id := idOf(n.is)
	n.sides[atSource].is = id
	switch {
	case n.root.above[id] && id != (fileID{}) || n.isInto(id):
		return copyFailure(opRefuse, errIntoItself)
	case n.isInItself(id):
		return copyFailure(opRefuse, errInItself)
	}
	return t.crossings.enter(n, atSource, is.Mounted)
}

func (t *copyTree) openDestination(n *copyNode) error {
	above, err := t.use(n.above, atDestination)
	if err != nil {
		return copyFailure(opOpen, err)
	}
	defer t.handles.rest(above)
	name := n.names[atDestination]
	err = t.insist(opMkdir, func() error { return t.disk.MkdirIn(above.fd, name, folderUse) })
	n.made = err == nil
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return copyFailure(opMkdir, err)
	}
	fd, err := t.openIn(above, name)
	if err != nil {
		return copyFailure(opOpen, t.whyNoFolder(above, name, err))
	}
	if err := t.lookAtDestination(n, fd); err != nil {
		t.closeFolder(fd)
		return err
	}
	t.handles.rest(t.keep(&n.sides[atDestination], fd))
	n.filled = true
	if n.made {
		t.batch.named(n.above)
	}
	return nil
}

func (t *copyTree) lookAtDestination(n *copyNode, fd int) error {
	is, err := t.disk.StatFolder(fd)
	if err != nil {
		return copyFailure(opStat, err)
	}
	id := idOf(is.Stat)
	n.sides[atDestination].is, n.has = id, is.Mode&permMask
	if id.is(idOf(n.is)) {
		return copyFailure(opRefuse, errSameFolder)
	}
	return t.crossings.enter(n, atDestination, is.Mounted)
}

var errSameFolder = errors.New("source and destination are one folder; name another destination")

// whyNoFolder says what is where a folder must be.
func (t *copyTree) whyNoFolder(above *handle, name sys.Name, err error) error {
	if !errors.Is(err, syscall.ENOTDIR) && !errors.Is(err, syscall.ELOOP) {
		return err
	}
	is, e := t.disk.Stat(above.fd, name)
	if e != nil {
		return err
	}
	return copyFailure(opRefuse, fmt.Errorf("%s is where the folder must be; remove it, or name another destination", kindName(is.Mode)))
}

// kindName says what a file is.
func kindName(mode uint32) string {
	switch mode & kindMask {
	case kindRegular:
		return "a file"
	case kindFolder:
		return "a folder"
	case kindLink:
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

// done is told that something of what there was to do for a node is done. With the
// last of it the folder gets its permissions and times.
func (t *copyTree) done(n *copyNode) {
	for n != nil && n.left.Add(-1) == 0 {
		t.finish(n)
		n = n.above
	}
}

func (t *copyTree) finish(n *copyNode) {
	t.crossings.leave(n)
	if n.filled {
		t.finishFolder(n)
	}
	t.openAbove(n, atSource)
	t.leave(n, atSource)
	t.openAbove(n, atDestination)
	if !t.batch.waitsFor(n) {
		t.leave(n, atDestination)
	}
}

func (t *copyTree) finishFolder(n *copyNode) {
	err := t.likeSource(n)
	if err == nil && n.cut.Load() {
		return // what failed was told, or nothing more is begun
	}
	if err != nil {
		t.report.folder(t.failed(n, err))
		return
	}
	t.batch.folder(n, CopyResult{
		Source: n.path(atSource), Destination: n.path(atDestination),
		Elapsed: time.Since(n.began), Outcome: OutcomeWritten,
	})
}

// likeSource gives the destination what its source is like beside its names.
func (t *copyTree) likeSource(n *copyNode) error {
	h, err := t.use(n, atDestination)
	if err != nil {
		return copyFailure(opOpen, err)
	}
	defer t.handles.rest(h)
	perm := n.is.Mode&allowed | n.has&(setGroup|sticky)
	if t.o.Archive {
		perm = n.is.Mode & permMask
		if err := t.archiveFolder(n, h); err != nil {
			return err
		}
	}
	if perm != n.has || t.o.Archive {
		if err := t.insist(opChmod, func() error { return t.disk.Chmod(h.fd, perm) }); err != nil {
			return copyFailure(opChmod, err)
		}
	}
	return copyFailure(opTimes, t.insist(opTimes, func() error {
		return t.disk.SetTimesIn(h.fd, sys.Name(".\x00"), n.accessed, n.modified)
	}))
}

// archiveFolder gives a folder the owner and the extended attributes of its source.
func (t *copyTree) archiveFolder(n *copyNode, to *handle) error {
	from, err := t.use(n, atSource)
	if err != nil {
		return copyFailure(opOpen, err)
	}
	defer t.handles.rest(from)
	j := copyJob{copier: t.copier, in: from.fd, out: to.fd}
	j.was.Stat = n.is
	if j.has.Stat, err = t.disk.StatFD(to.fd); err != nil {
		return copyFailure(opStat, err)
	}
	return j.keepOwner()
}
