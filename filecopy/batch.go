package filecopy

import (
	"cmp"
	"context"
	"sync"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/handles"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A copyBatch makes copies durable: each by itself, or many together in steps. While a step waits
// for the disk, the workers copy files for the next step.
type copyBatch struct {
	t        *copyTree
	each     bool // each file by itself
	inSteps  bool // many files together; also for Verify alone
	step     durable.Step
	stepping sync.Mutex // one step at a time

	mu   sync.Mutex
	part copyPart
}

// A copyPart holds the copies since the last step began.
type copyPart struct {
	files   int
	bytes   int64
	pending []copyPending
}

// A copyPending is a copy that is not durable yet.
type copyPending struct {
	durable.File
	kind   copyKind
	result Result
	node   *copyNode // the directory of the copy
	self   *copyNode // the copy itself, if it is a directory

	name   sys.Name  // a file's name in the destination
	from   sys.Name  // a file's name in the source
	made   *madeCopy // the file to be renamed
	link   *hardLink // waits until the copy has its name
	failed retry.Op  // the call that failed before it got its name
}

func (b *copyBatch) init(t *copyTree) {
	b.t = t
	s := t.o.Policy.Sync
	b.each = s.Mode == holdfast.SyncEach
	b.inSteps = !b.each && (s.Mode != holdfast.SyncNever || t.o.Atomic || t.o.Verify)
	b.step.Disk, b.step.Names, b.step.Most = t.disk, t.copier.names, min(durable.Waiters, t.most)
	b.step.SyncAll = func(errseq int) error { return vfs.SyncAll(t.disk, errseq) }
}

// takes reports whether the writer of a file in a node's destination must sync it. If not, it
// returns the device that is synced with it, or nil. It is called before the file's first byte is
// written.
func (b *copyBatch) takes(n *copyNode, to *handles.Handle) (sync bool, whole *durable.Device) {
	if !b.inSteps {
		return b.each, nil
	}
	x := b.look(n, to)
	if b.step.Takes(x, func() int {
		fd, err := b.t.disk.OpenDirIn(to.Fd, sys.Name(".\x00"))
		if err != nil {
			return -1
		}
		return fd
	}) {
		return false, x
	}
	return true, nil
}

// look returns the device of a node's open destination. It asks the system once per device.
func (b *copyBatch) look(n *copyNode, to *handles.Handle) *durable.Device {
	x := n.place.Device
	b.mu.Lock()
	defer b.mu.Unlock()
	if !x.Known {
		x.NoJournal = vfs.LacksJournal(b.t.disk, to.Fd)
		x.Known, x.Allowed = true, !x.NoJournal && vfs.SyncsAll(b.t.disk, to.Fd)
	}
	return x
}

// opened records the identity of a node's destination.
func (b *copyBatch) opened(n *copyNode, is fileID) {
	n.sides[atDestination].is = is
	n.place.Device = b.step.Device(is.device)
	n.place.Key, n.place.Since = keyed.Key{Device: is.device, Inode: is.inode}, b.t.copier.since
	n.place.Sync = func() error {
		h, err := b.t.use(n, atDestination)
		if err != nil {
			return err
		}
		defer b.t.handles.Rest(h)
		b.look(n, h) // names in it may become durable by this sync only
		return b.step.Names.Directory(n.place.Key, func() error { return b.t.disk.Sync(h.Fd) })
	}
	n.place.Rest = func() {
		if n.left.Load() == 0 && !b.step.Waits(&n.place) {
			b.t.leave(n, atDestination)
		}
	}
}

// add adds a copied file or link, or a complete directory.
func (b *copyBatch) add(p copyPending) {
	if !b.inSteps {
		if b.each {
			err := b.step.SyncDir(&p.node.place)
			if err == nil && p.self != nil {
				err = b.step.SyncDir(&p.self.place)
			}
			b.synced(&p, err)
		}
		b.t.reportResult(p)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.self == nil {
		b.part.files++
		b.part.bytes += p.result.Size
	}
	switch p.Place = &p.node.place; {
	case p.Renames:
		p.node.left.Add(1) // the directory's times are set after the last name
	case p.self != nil:
		b.step.Named(&p.self.place)
	default:
		b.step.Named(p.Place)
	}
	b.part.pending = append(b.part.pending, p)
}

// synced records the result of the last sync of a copy. If the name of a directory above it was
// lost, the copy is not durable.
func (b *copyBatch) synced(p *copyPending, err error) {
	n := p.node
	if p.self != nil {
		n = p.self
	}
	for ; n != nil && err == nil; n = n.above {
		err = b.step.Loss(&n.place)
	}
	if err != nil {
		if !b.t.o.goesOn(&p.result, err) {
			p.fail(retry.OpSync, err, holdfast.OutcomeUncertain)
		}
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	p.result.Durable, p.result.Outcome, p.result.NoJournal = true, holdfast.OutcomeDurable, p.node.place.Device.NoJournal
}

func (p *copyPending) fail(op retry.Op, err error, outcome holdfast.Outcome) {
	r := &p.result
	r.Durable, r.Outcome = false, outcome
	r.Err = copyErrorOf(r.Source, r.Destination, copyFailure(op, err))
}

// full reports whether a step is due.
func (b *copyBatch) full() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.part.files >= durable.MostPerStep || b.part.bytes >= durable.MostBytesPerStep
}

// makeDurable makes the copies that were added before it durable. It reports whether there was
// anything to do.
func (b *copyBatch) makeDurable() bool {
	if !b.inSteps {
		return false
	}
	b.stepping.Lock()
	defer b.stepping.Unlock()
	b.mu.Lock()
	part := b.part
	b.part = copyPart{}
	b.mu.Unlock()
	switch {
	case len(part.pending) == 0 && b.step.Idle():
		return false
	case b.t.ctx.Err() != nil:
		b.abandon(part, context.Cause(b.t.ctx))
	default:
		files := func(yield func(*durable.File) bool) {
			for i := range part.pending {
				if !yield(&part.pending[i].File) {
					return
				}
			}
		}
		b.step.Run(files, func() {
			// A synced copy without its name gets none if it differs from its source.
			b.verifyAll(part, func(p *copyPending) {
				if !p.Renames || p.Err != nil {
					return
				}
				if p.Err = b.verify(p, p.made.temporary); p.Err != nil {
					p.failed = opVerify
				}
			})
			b.rename(&part)
		})
		b.settle(part)
	}
	return true
}

// rename gives the copies of a part their names. If any copy waited for one, the part also takes
// the entries that waited for these renames: directories, and other links to its files.
func (b *copyBatch) rename(part *copyPart) {
	any := false
	for i := range part.pending {
		p := &part.pending[i]
		if !p.Renames {
			continue
		}
		any = true
		if p.Err != nil {
			p.failed, p.Err = cmp.Or(p.failed, retry.OpSync), stillThere(p.Err, b.t.discard(p))
		} else if p.Err = b.t.publish(p); p.Err != nil {
			p.failed = givenBy(retry.OpRename, p.Err)
		} else {
			b.step.Named(p.Place)
		}
		b.t.linked(p.link, p.Err == nil)
		b.t.done(p.node)
	}
	if !any {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	rest := b.part.pending[:0]
	for _, p := range b.part.pending {
		if !p.Renames {
			part.pending = append(part.pending, p)
		} else {
			rest = append(rest, p)
		}
	}
	b.part.pending = rest
}

// publish gives a copy its name. It may have to open the directory again.
func (t *copyTree) publish(p *copyPending) error {
	h, err := t.use(p.node, atDestination)
	if err != nil {
		return err
	}
	defer t.handles.Rest(h)
	p.made.dir = h.Fd
	if err := t.publishHere(p.made); err != nil {
		return err
	}
	p.result.Outcome = holdfast.OutcomeWritten
	return nil
}

// discard removes a copy that gets no name.
func (t *copyTree) discard(p *copyPending) error {
	h, err := t.use(p.node, atDestination)
	if err != nil {
		return err
	}
	defer t.handles.Rest(h)
	p.made.dir = h.Fd
	return t.copier.discard(p.made)
}

// settle reports the results of a part's copies, in the order in which they were made.
func (b *copyBatch) settle(part copyPart) {
	for i := range part.pending {
		p := &part.pending[i]
		if p.failed != "" {
			p.fail(p.failed, p.Err, holdfast.OutcomeUntouched)
		} else {
			b.synced(p, p.Err)
		}
	}
	b.verifyAll(part, func(p *copyPending) {
		if p.result.Err == nil {
			p.result.Err = b.verify(p, p.name)
		}
	})
	for _, p := range part.pending {
		b.t.reportResult(p)
	}
}

func (b *copyBatch) verifyAll(part copyPart, verify func(*copyPending)) {
	if b.t.o.Verify {
		durable.Abreast(min(b.t.o.workers(), b.t.most), len(part.pending), func(i int) { verify(&part.pending[i]) })
	}
}

// verify compares the file of the given name with its source, past the page cache.
func (b *copyBatch) verify(p *copyPending, name sys.Name) error {
	r := &p.result
	if p.kind != fileCopy || r.Verified {
		return nil
	}
	from, err := b.t.use(p.node, atSource)
	if err != nil {
		return copyErrorOf(r.Source, r.Destination, copyFailure(retry.OpOpen, err))
	}
	defer b.t.handles.Rest(from)
	to, err := b.t.use(p.node, atDestination)
	if err != nil {
		return copyErrorOf(r.Source, r.Destination, copyFailure(retry.OpOpen, err))
	}
	defer b.t.handles.Rest(to)
	return b.t.copier.verifyLater(b.t.ctx, copySpot{dir: to.Fd, name: name, path: r.Destination}, copySpot{dir: from.Fd, name: p.from, path: r.Source}, r)
}

// verifyLater is verify for a copy that was closed and made durable.
func (c *copier) verifyLater(ctx context.Context, to, from copySpot, r *Result) error {
	j := &copyJob{copier: c, ctx: ctx, to: to, from: from, sync: true, r: *r, done: r.Size}
	if err := j.openSource(); err != nil {
		return err
	}
	defer j.disk.Close(j.in) // it was only read
	err := sys.Uninterrupted(func() (err error) {
		j.out, err = j.disk.OpenSource(to.dir, to.name)
		return err
	})
	if err != nil {
		return j.failed("read back", -1, err)
	}
	defer j.disk.Close(j.out) // it was only read
	err = j.verify()
	r.Verified = j.r.Verified
	return err
}

// abandon reports the copies of a part as not durable, and removes copies without a name.
func (b *copyBatch) abandon(part copyPart, cause error) {
	b.step.Abandon()
	for i := range part.pending {
		p := &part.pending[i]
		if p.Renames {
			left := b.t.discard(p)
			b.t.linked(p.link, false)
			b.t.done(p.node)
			p.fail(retry.OpRename, stillThere(cause, left), holdfast.OutcomeUntouched)
		} else {
			p.fail(retry.OpSync, cause, holdfast.OutcomeWritten)
		}
		b.t.reportResult(*p)
	}
}
