package filecopy

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/handles"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/temporary"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A copyName is a name to copy, with its source and destination directories open.
type copyName struct {
	n        *copyNode
	from, to *handles.Handle
	e        sys.DirEntry
	as       sys.Name // its name in the destination
}

// result returns the start of a Result for a name that is not a file.
func (c *copyName) result() Result {
	return Result{Source: c.n.pathOf(atSource, c.e.Name), Destination: c.n.pathOf(atDestination, c.as)}
}

// copyNames copies files and links of a directory. It hands some of the names to idle workers.
func (t *copyTree) copyNames(n *copyNode, names []sys.DirEntry, as sys.Name) {
	if len(names) == 0 {
		return
	}
	from, err := t.use(n, atSource)
	if err != nil {
		t.fail(n, copyFailure(retry.OpOpen, err))
		return
	}
	defer t.handles.Rest(from)
	to, err := t.use(n, atDestination)
	if err != nil {
		t.fail(n, copyFailure(retry.OpOpen, err))
		return
	}
	defer t.handles.Rest(to)
	for i, e := range names {
		if t.stopped() {
			n.cut.Store(true)
			return
		}
		if t.idleWorkers.Load() > 0 && len(names)-i > namesPerHandoff {
			names = t.handOff(n, names, i)
		}
		if i >= len(names) {
			return
		}
		name := as
		if name == "" {
			name = e.Name
		}
		c := copyName{n, from, to, e, name}
		switch e.Kind {
		case vfs.KindRegular, 0:
			t.copyFile(c)
		case vfs.KindLink:
			t.copyLink(c)
		default:
			t.copySpecial(c)
		}
		if t.batch.full() {
			t.batch.makeDurable()
		}
	}
}

// handOff hands the last names to idle workers, namesPerHandoff to each, and returns the others.
func (t *copyTree) handOff(n *copyNode, names []sys.DirEntry, i int) []sys.DirEntry {
	var jobs []treeJob
	for range t.idleWorkers.Load() {
		rest := len(names) - namesPerHandoff
		if rest <= i {
			break
		}
		n.left.Add(1)
		jobs = append(jobs, treeJob{node: n, names: slices.Clone(names[rest:])})
		names = names[:rest]
	}
	t.push(jobs...)
	return names
}

// copyFile copies a file, or makes a hard link if another name of it was copied before. When the
// copy has its name, the waiting links are made.
func (t *copyTree) copyFile(c copyName) {
	var link *hardLink
	if t.o.Archive {
		is, err := t.disk.Stat(c.from.Fd, c.e.Name)
		if err == nil && is.Links > 1 && is.Mode&vfs.KindMask == vfs.KindRegular {
			var first bool
			if link, first = t.links.meet(is, c); !first {
				if link != nil {
					t.linkTo(link, c)
				}
				return
			}
		}
	}
	t.copyBytes(c, link, nil)
}

// copyBytes copies a file, which lacks what notKept says.
func (t *copyTree) copyBytes(c copyName, link *hardLink, notKept error) {
	t.report.begins(c.n, c.e.Name)
	to := copySpot{c.to.Fd, c.as, c.n.pathOf(atDestination, c.as), c.n.mark(), c.n.given}
	from := copySpot{dir: c.from.Fd, name: c.e.Name, path: c.n.pathOf(atSource, c.e.Name)}
	sync, whole := t.batch.takes(c.n, c.to)
	if sync {
		t.moreWorkers(durable.Waiters)
	}
	made, r := t.copier.write(t.ctx, to, from, sync)
	r.NotKept = errors.Join(notKept, r.NotKept)
	p := copyPending{kind: fileCopy, result: r, node: c.n, name: c.as, from: c.e.Name, link: link}
	p.Whole = whole
	if r.Err != nil {
		t.linked(link, false)
		t.reportResult(p)
		return
	}
	if t.batch.inSteps && t.o.Atomic {
		p.made, p.Renames = &made, true
		t.batch.add(p)
		return
	}
	if err := t.publishHere(&made); err != nil {
		p.fail(givenBy(retry.OpRename, err), err, holdfast.OutcomeUntouched)
		t.linked(link, false)
		t.reportResult(p)
		return
	}
	p.result.Outcome = holdfast.OutcomeWritten
	t.linked(link, true)
	t.batch.add(p)
}

// mark returns the copyMark for the temporary files of a node's copies, or nil.
func (n *copyNode) mark() *copyMark {
	if n.root != nil {
		return n.root.mark
	}
	return n.own
}

// publishHere gives a copy its name, or removes it. It replaces a file that has appeared there
// meanwhile, from an overlapping tree for example.
func (t *copyTree) publishHere(m *madeCopy) error {
	err := t.copier.publish(m)
	if errors.Is(err, fs.ErrExist) && !m.replaces {
		m.replaces = true
		err = t.copier.publish(m)
	}
	if err != nil {
		err = stillThere(err, t.copier.discard(m))
	}
	return err
}

// copyLink copies a symbolic link.
func (t *copyTree) copyLink(c copyName) {
	t.link(c, func(r *Result) error { return t.makeSymlink(c, r) })
}

// link makes a link, and reports a failure at once. A link that was made is reported when its batch is
// durable.
func (t *copyTree) link(c copyName, makeLink func(r *Result) error) {
	began := time.Now()
	r := c.result()
	err := makeLink(&r)
	r.Elapsed = time.Since(began)
	if err != nil {
		r.Err = copyErrorOf(r.Source, r.Destination, err)
		t.reportResult(copyPending{kind: linkCopy, result: r})
		return
	}
	r.Outcome = holdfast.OutcomeWritten
	t.batch.add(copyPending{kind: linkCopy, result: r, node: c.n})
}

func (t *copyTree) makeSymlink(c copyName, r *Result) error {
	// The times come first: reading a link changes its time of access.
	accessed, modified, err := t.disk.TimesIn(c.from.Fd, c.e.Name)
	if err != nil {
		return copyFailure(retry.OpStat, err)
	}
	text, err := t.disk.ReadLinkIn(c.from.Fd, c.e.Name)
	if err != nil {
		return copyFailure(opReadLink, err)
	}
	target, err := sys.NewName(text)
	if err != nil {
		return copyFailure(opReadLink, err)
	}
	return t.nameNew(c, opSymlink, func(name sys.Name) error {
		if err := t.disk.SymlinkIn(target, c.to.Fd, name); err != nil {
			return copyFailure(opSymlink, err)
		}
		r.NotKept = nil
		err := t.archiveLink(c, name, r)
		if err == nil {
			err = t.setTimesIn(c, name, r, accessed, modified)
		}
		if err != nil {
			return stillThere(err, t.disk.Remove(c.to.Fd, name))
		}
		return nil
	})
}

func (t *copyTree) setTimesIn(c copyName, name sys.Name, r *Result, accessed, modified time.Time) error {
	if t.o.FreshTimes {
		return nil
	}
	return copyFailure(opTimes, t.o.keep(r, "times", ofLink(t.disk.SetTimesIn(c.to.Fd, name, accessed, modified))))
}

// nameNew makes a link under its name. If a file or link has that name, it makes the new one under
// another name and renames it.
func (t *copyTree) nameNew(c copyName, op retry.Op, make func(sys.Name) error) error {
	err := t.copier.give(c.n.given, c.to.Fd, c.as, func() error { return make(c.as) })
	if !errors.Is(err, fs.ErrExist) {
		return taken(err)
	}
	var name sys.Name
	for range 100 {
		name = temporary.Name()
		if err = make(name); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		return err
	}
	err = t.copier.give(c.n.given, c.to.Fd, c.as, func() error {
		return t.insist(retry.OpRename, func() error { return t.disk.Rename(c.to.Fd, name, c.as) })
	})
	if err == nil {
		return nil
	}
	left := t.disk.Remove(c.to.Fd, name)
	if errors.Is(err, syscall.EISDIR) {
		return copyFailure(opRefuse, stillThere(errDirThere, left))
	}
	return copyFailure(givenBy(retry.OpRename, err), stillThere(err, left))
}

// taken names the refusal, if an error is one of a taken name.
func taken(err error) error {
	if op := givenBy("", err); op != "" {
		return copyFailure(op, err)
	}
	return err
}

var errDirThere = errors.New("a directory is where the file must be; remove it, or name another destination")

// ofLink returns the error of a call on a link that was just made. The server of an sshfs follows it, and
// finds nothing: it has no such call.
func ofLink(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the file system follows the link: %w", errors.ErrUnsupported)
	}
	return err
}

// archiveLink gives a symbolic link, or a device and its like, the owner and the extended attributes of its source, with
// Archive. (On Linux a link has no permissions and no user attributes.)
func (t *copyTree) archiveLink(c copyName, name sys.Name, r *Result) error {
	if !t.o.Archive {
		return nil
	}
	is, err := t.disk.Stat(c.from.Fd, c.e.Name)
	if err == nil {
		err = t.o.keep(r, "owner", ofLink(t.disk.ChownIn(c.to.Fd, name, is.UID, is.GID)))
	}
	if err != nil {
		return copyFailure(retry.OpChown, err)
	}
	attributes, err := t.copier.attributes.AttributesIn(c.from.Fd, c.e.Name)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) && t.o.keep(r, "attributes", err) != nil {
		return copyFailure(retry.OpListAttributes, err)
	}
	for _, attribute := range attributes {
		value, err := t.copier.attributes.AttributeIn(c.from.Fd, c.e.Name, attribute)
		if to, ok := t.disk.(vfs.LinkAttributes); !ok {
			err = errors.ErrUnsupported
		} else if err == nil {
			err = to.SetAttributeIn(c.to.Fd, name, attribute, value)
		}
		if err = t.o.keep(r, attribute, err); err != nil {
			return copyFailure(retry.OpSetAttribute, fmt.Errorf("%s can't be kept: %w", attribute, err))
		}
	}
	return nil
}

// hardLinks holds each file with several names until all names were met.
type hardLinks struct {
	mu    sync.Mutex
	files map[fileID]*hardLink
}

// A hardLink is a file with several names.
type hardLink struct {
	id      fileID
	left    uint64 // names not met yet
	node    *copyNode
	name    sys.Name // the copy's name
	named   bool
	waiting []waitingLink // links that wait until the copy has its name
}

type waitingLink struct {
	n  *copyNode
	e  sys.DirEntry
	as sys.Name
}

// meet returns the file of a name, and whether the name is the first one met. If the copy has no
// name yet, meet returns nil, and the link is made when the copy has one.
func (l *hardLinks) meet(is sys.Stat, c copyName) (link *hardLink, first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := idOf(is)
	link = l.files[id]
	if link == nil {
		if l.files == nil {
			l.files = map[fileID]*hardLink{}
		}
		// Clone: the name outlives the buffer of names.
		link = &hardLink{id: id, left: is.Links - 1, node: c.n, name: sys.Name(strings.Clone(string(c.as)))}
		l.files[id] = link
		return link, true
	}
	if link.left--; link.left == 0 && link.named {
		delete(l.files, id)
	}
	if !link.named {
		c.n.left.Add(1)
		link.waiting = append(link.waiting, waitingLink{c.n, c.e, c.as})
		return nil, false
	}
	return link, false
}

// linked makes the links that waited for a copy, which now has its name. If ok is false there is no
// copy: then the next name is copied as the first.
func (t *copyTree) linked(link *hardLink, ok bool) {
	if link == nil {
		return
	}
	t.links.mu.Lock()
	waiting := link.waiting
	link.waiting = nil
	link.named = ok
	if !ok || link.left == 0 {
		delete(t.links.files, link.id)
	}
	t.links.mu.Unlock()
	for _, w := range waiting {
		if !ok {
			t.push(treeJob{node: w.n, names: []sys.DirEntry{w.e}, as: w.as})
			continue
		}
		c := copyName{n: w.n, e: w.e, as: w.as}
		var err error
		if c.to, err = t.use(w.n, atDestination); err == nil {
			t.linkTo(link, c)
			t.handles.Rest(c.to)
		} else {
			r := c.result()
			r.Err = copyErrorOf(r.Source, r.Destination, copyFailure(retry.OpOpen, err))
			t.reportResult(copyPending{kind: linkCopy, result: r})
		}
		t.done(w.n)
	}
}

// linkTo gives a copy one more name. Where the file system has one for each file, that is a copy too.
func (t *copyTree) linkTo(link *hardLink, c copyName) {
	err := t.makeHardLink(link, c)
	var r Result
	if err == nil || t.o.keep(&r, "hard link", err) != nil {
		t.link(c, func(*Result) error { return err })
		return
	}
	from, err := t.use(c.n, atSource)
	if err != nil {
		t.link(c, func(*Result) error { return copyFailure(retry.OpOpen, err) })
		return
	}
	defer t.handles.Rest(from)
	c.from = from
	t.copyBytes(c, nil, r.NotKept)
}

func (t *copyTree) makeHardLink(link *hardLink, c copyName) error {
	first, err := t.use(link.node, atDestination)
	if err != nil {
		return copyFailure(retry.OpOpen, err)
	}
	defer t.handles.Rest(first)
	if is, err := t.disk.Stat(c.to.Fd, c.as); err == nil {
		copied, err := t.disk.Stat(first.Fd, link.name)
		if err == nil && idOf(copied) == idOf(is) {
			return nil // they are links to one file already, and a rename would leave both
		}
	}
	return t.nameNew(c, opLink, func(name sys.Name) error {
		return copyFailure(opLink, t.disk.LinkIn(first.Fd, link.name, c.to.Fd, name))
	})
}
