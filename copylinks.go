package holdfast

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// A copyName is a name of a folder that is to be copied, with both folders open.
type copyName struct {
	n        *copyNode
	from, to *handle
	e        sys.FolderEntry
	as       sys.Name // in the destination
}

func (c *copyName) spots() (to, from copySpot) {
	return copySpot{c.to.fd, c.as, c.n.pathOf(atDestination, c.as), c.n.mark()},
		copySpot{c.from.fd, c.e.Name, c.n.pathOf(atSource, c.e.Name), nil}
}

// result begins the result of a name that is no file.
func (c *copyName) result() CopyResult {
	return CopyResult{Source: c.n.pathOf(atSource, c.e.Name), Destination: c.n.pathOf(atDestination, c.as)}
}

// copyName copies what a name is.
func (t *copyTree) copyName(c copyName) {
	switch c.e.Kind {
	case kindRegular, 0:
		t.copyFile(c)
	case kindLink:
		t.copyLink(c)
	default:
		r := c.result()
		r.Err = copyErrorOf(r.Source, r.Destination, copyFailure(opRefuse,
			errors.New(kindName(c.e.Kind)+" holds nothing that could be copied; only files, folders and symbolic links are")))
		t.report.told(refusedCopy, r)
	}
}

// copyFile copies a file, or links its copy if another name of it was copied before.
func (t *copyTree) copyFile(c copyName) {
	var link *hardLink
	if t.o.Archive {
		is, err := t.disk.Stat(c.from.fd, c.e.Name)
		if err == nil && is.Links > 1 && is.Mode&kindMask == kindRegular {
			var first bool
			if link, first = t.links.meet(is, c); !first {
				if link != nil {
					t.linkTo(link, c)
				}
				return
			}
		}
	}
	t.copyBytes(c, link)
}

// copyBytes copies a file. The links that wait for it are told when it has its name.
func (t *copyTree) copyBytes(c copyName, link *hardLink) {
	t.report.begins(c.n, c.e.Name)
	to, from := c.spots()
	sync := t.batch.takes(c.n, c.to)
	if sync {
		t.moreWorkers(waiters)
	}
	made, r := t.copier.write(t.ctx, to, from, sync)
	p := copyPending{kind: fileCopy, result: r, node: c.n, together: t.batch.inSteps && !sync, name: c.as, from: c.e.Name, link: link}
	if r.Err != nil {
		t.linked(link, false)
		t.tell(p)
		return
	}
	if t.batch.inSteps && t.o.Atomic {
		p.made, p.renames = &made, true
		t.batch.add(p)
		return
	}
	if err := t.publishHere(&made); err != nil {
		p.fail(opRename, err, OutcomeUntouched)
		t.linked(link, false)
		t.tell(p)
		return
	}
	p.result.Outcome = OutcomeWritten
	t.linked(link, true)
	t.batch.add(p)
}

// publish gives a copy its name, for which its folder may have to be opened again.
func (t *copyTree) publish(p *copyPending) error {
	h, err := t.use(p.node, atDestination)
	if err != nil {
		return err
	}
	defer t.handles.rest(h)
	p.made.folder = h.fd
	if err := t.publishHere(p.made); err != nil {
		return err
	}
	p.result.Outcome = OutcomeWritten
	return nil
}

// publishHere gives a copy its name, or removes it. A file that has come to be there
// since, of an overlapping tree for one, is replaced like one that was there before.
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

// discard removes a copy that is not to get its name.
func (t *copyTree) discard(p *copyPending) error {
	h, err := t.use(p.node, atDestination)
	if err != nil {
		return err
	}
	defer t.handles.rest(h)
	p.made.folder = h.fd
	return t.copier.discard(p.made)
}

// copyLink copies a symbolic link.
func (t *copyTree) copyLink(c copyName) {
	began := time.Now()
	r := c.result()
	err := t.makeSymlink(c)
	r.Elapsed = time.Since(began)
	if err != nil {
		r.Err = copyErrorOf(r.Source, r.Destination, err)
		t.tell(copyPending{kind: linkCopy, result: r})
		return
	}
	r.Outcome = OutcomeWritten
	t.batch.add(copyPending{kind: linkCopy, result: r, node: c.n})
}

func (t *copyTree) makeSymlink(c copyName) error {
	// First its times: to read a link is what sets the first of them.
	accessed, modified, err := t.disk.TimesIn(c.from.fd, c.e.Name)
	if err != nil {
		return copyFailure(opStat, err)
	}
	text, err := t.disk.ReadLinkIn(c.from.fd, c.e.Name)
	if err != nil {
		return copyFailure(opReadLink, err)
	}
	target, err := sys.NewName(text)
	if err != nil {
		return copyFailure(opReadLink, err)
	}
	return t.nameNew(c, opSymlink, func(name sys.Name) error {
		if err := t.disk.SymlinkIn(target, c.to.fd, name); err != nil {
			return copyFailure(opSymlink, err)
		}
		err := t.archiveLink(c, name)
		if err == nil {
			err = copyFailure(opTimes, t.disk.SetTimesIn(c.to.fd, name, accessed, modified))
		}
		if err != nil {
			return stillThere(err, t.disk.Remove(c.to.fd, name))
		}
		return nil
	})
}

// nameNew makes something under its name, or if there is a file or a link of that name
// under another and renames it.
func (t *copyTree) nameNew(c copyName, op fileOp, make func(sys.Name) error) error {
	err := make(c.as)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	var name sys.Name
	for range 100 {
		name = temporaryName()
		if err = make(name); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		return err
	}
	if err = t.insist(opRename, func() error { return t.disk.Rename(c.to.fd, name, c.as) }); err == nil {
		return nil
	}
	left := t.disk.Remove(c.to.fd, name)
	if errors.Is(err, syscall.EISDIR) {
		return copyFailure(opRefuse, stillThere(errFolderThere, left))
	}
	return copyFailure(opRename, stillThere(err, left))
}

var errFolderThere = errors.New("a folder is where the file must be; remove it, or name another destination")

// archiveLink gives a symbolic link the owner and the extended attributes of its source,
// with Archive. (Linux lets links have no permissions, and none of the attributes of users.)
func (t *copyTree) archiveLink(c copyName, name sys.Name) error {
	if !t.o.Archive {
		return nil
	}
	is, err := t.disk.Stat(c.from.fd, c.e.Name)
	if err == nil {
		err = t.disk.ChownIn(c.to.fd, name, is.UID, is.GID)
	}
	if err != nil {
		return copyFailure(opChown, err)
	}
	attributes, err := t.disk.AttributesIn(c.from.fd, c.e.Name)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return copyFailure(opListAttributes, err)
	}
	for _, attribute := range attributes {
		value, err := t.disk.AttributeIn(c.from.fd, c.e.Name, attribute)
		if err == nil {
			err = t.disk.SetAttributeIn(c.to.fd, name, attribute, value)
		}
		if err != nil {
			return copyFailure(opSetAttribute, fmt.Errorf("%s can't be kept: %w", attribute, err))
		}
	}
	return nil
}

// hardLinks is the files with several names of which not all were met yet.
type hardLinks struct {
	mu    sync.Mutex
	files map[fileID]*hardLink
}

// A hardLink is such a file.
type hardLink struct {
	id      fileID
	left    uint64 // names that were not met
	node    *copyNode
	name    sys.Name // of its copy
	named   bool
	waiting []waitingLink // until it is
}

type waitingLink struct {
	n  *copyNode
	e  sys.FolderEntry
	as sys.Name
}

// meet returns the file that a name is of, and whether it is the first one. Where the
// copy has no name yet the link is made when it has: it returns no file then.
func (l *hardLinks) meet(is sys.Stat, c copyName) (link *hardLink, first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := idOf(is)
	link = l.files[id]
	if link == nil {
		if l.files == nil {
			l.files = map[fileID]*hardLink{}
		}
		// Its name outlives what was read with it.
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

// linked is told that the copy of a file with several names has its own, or that there
// is none: then the next name is copied as the first.
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
		if ok {
			t.makeWaiting(link, w)
			t.done(w.n)
		} else {
			t.push(treeJob{node: w.n, names: []sys.FolderEntry{w.e}, as: w.as})
		}
	}
}

func (t *copyTree) makeWaiting(link *hardLink, w waitingLink) {
	c := copyName{n: w.n, e: w.e, as: w.as}
	var err error
	if c.to, err = t.use(w.n, atDestination); err != nil {
		r := c.result()
		r.Err = copyErrorOf(r.Source, r.Destination, copyFailure(opOpen, err))
		t.tell(copyPending{kind: linkCopy, result: r})
		return
	}
	defer t.handles.rest(c.to)
	t.linkTo(link, c)
}

// linkTo gives a copy another name.
func (t *copyTree) linkTo(link *hardLink, c copyName) {
	began := time.Now()
	r := c.result()
	err := t.makeHardLink(link, c)
	r.Elapsed = time.Since(began)
	if err != nil {
		r.Err = copyErrorOf(r.Source, r.Destination, err)
		t.tell(copyPending{kind: linkCopy, result: r})
		return
	}
	r.Outcome = OutcomeWritten
	t.batch.add(copyPending{kind: linkCopy, result: r, node: c.n})
}

func (t *copyTree) makeHardLink(link *hardLink, c copyName) error {
	first, err := t.use(link.node, atDestination)
	if err != nil {
		return copyFailure(opOpen, err)
	}
	defer t.handles.rest(first)
	if is, err := t.disk.Stat(c.to.fd, c.as); err == nil {
		copied, err := t.disk.Stat(first.fd, link.name)
		if err == nil && idOf(copied) == idOf(is) {
			return nil // a rename of one link to the other would leave both
		}
	}
	return t.nameNew(c, opLink, func(name sys.Name) error {
		return copyFailure(opLink, t.disk.LinkIn(first.fd, link.name, c.to.fd, name))
	})
}
