package holdfast

import (
	"context"
	"errors"
	"sync"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// A copyBatch makes copies durable: each by itself, or many together in steps. While a
// step waits for the disk the workers go on, with what the next one is for.
type copyBatch struct {
	t       *copyTree
	each    bool // by itself
	inSteps bool // many together; with Verify also where nothing else asks for it

	stepping sync.Mutex // one step at a time

	mu      sync.Mutex
	part    copyPart
	devices devices
	syncs   map[uint64]bool // devices where SyncAll can be relied on
	lost    bool            // some folder has lost names
}

// A copyPart is what was copied since the last step began.
type copyPart struct {
	files   int
	bytes   int64
	pending []copyPending
	places  []*copyNode // whose destinations have new names
}

// A copyPending is a copy that waits to be durable.
type copyPending struct {
	kind     copyKind
	result   CopyResult
	node     *copyNode // that it is in
	self     *copyNode // if it is a folder
	together bool      // its bytes are synced with all of the device

	name    sys.Name  // of a file, in the destination
	from    sys.Name  // and in the source
	made    *madeCopy // that is to be renamed
	renames bool
	link    *hardLink // that waits until the copy has its name
	whole   *device   // that its bytes are synced with
	err     error
	failed  fileOp
}

func (b *copyBatch) init(t *copyTree) {
	b.t = t
	s := t.o.Policy.Sync
	b.each = s == SyncEach
	b.inSteps = !b.each && (s != SyncNever || t.o.Atomic || t.o.Verify)
	b.syncs = map[uint64]bool{}
}

// durable reports whether copies are to be, and their names.
func (b *copyBatch) durable() bool { return b.each || b.inSteps }

// only is told that there is but one file: to sync it by itself is cheaper.
func (b *copyBatch) only() {
	b.each, b.inSteps = b.each || b.inSteps, false
}

// takes reports whether a file in a node's destination is to be synced by who writes
// it. It is told before the file's first byte is written.
func (b *copyBatch) takes(n *copyNode, to *handle) (sync bool) {
	if !b.inSteps {
		return b.each
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	id := n.sides[atDestination].is.device
	syncs, known := b.syncs[id]
	if !known {
		syncs = b.t.disk.SyncsAll(to.fd)
		b.syncs[id] = syncs
	}
	return !b.devices.of(id).takes(b.t.disk, syncs, func() int { return b.openWitness(to) })
}

func (b *copyBatch) openWitness(folder *handle) int {
	fd, err := b.t.disk.OpenFolderIn(folder.fd, sys.Name(".\x00"))
	if err != nil {
		return -1
	}
	return fd
}

// named is told that a node's destination has got a new name.
func (b *copyBatch) named(n *copyNode) {
	switch {
	case b.each:
		b.syncPlace(n) // what it says is kept with the place
	case b.inSteps:
		b.mu.Lock()
		b.namedLocked(n)
		b.mu.Unlock()
	}
}

func (b *copyBatch) namedLocked(n *copyNode) {
	if !n.listed {
		n.listed = true
		b.part.places = append(b.part.places, n)
	}
}

// waitsFor reports whether a node's destination is to be synced.
func (b *copyBatch) waitsFor(n *copyNode) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return n.listed
}

// add is told of a file or a link that was copied.
func (b *copyBatch) add(p copyPending) {
	if !b.inSteps {
		b.alone(p)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.part.files++
	b.part.bytes += p.result.Size
	if p.renames {
		p.node.left.Add(1) // its times are set when all names are there
	}
	b.part.pending = append(b.part.pending, p)
	b.namedLocked(p.node)
}

// folder is told of a folder that has all that it is to have.
func (b *copyBatch) folder(n *copyNode, r CopyResult) {
	p := copyPending{kind: folderCopy, result: r, node: n.above, self: n}
	if !b.inSteps {
		b.alone(p)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.part.pending = append(b.part.pending, p)
	b.namedLocked(n)
}

// alone settles a copy that waits for no others.
func (b *copyBatch) alone(p copyPending) {
	if b.each {
		err := b.syncPlace(p.node)
		if err == nil && p.self != nil {
			err = b.syncPlace(p.self)
		}
		p.durable(opSync, errors.Join(err, b.lossOf(&p)))
	}
	b.t.tell(p)
}

// durable is told of the last sync of a copy.
func (p *copyPending) durable(op fileOp, err error) {
	if err == nil {
		p.result.Durable, p.result.Outcome = true, OutcomeDurable
		return
	}
	p.fail(op, err, OutcomeUncertain)
}

func (p *copyPending) fail(op fileOp, err error, outcome Outcome) {
	r := &p.result
	r.Durable, r.Outcome = false, outcome
	r.Err = copyErrorOf(r.Source, r.Destination, copyFailure(op, err))
}

// full reports whether a step is due.
func (b *copyBatch) full() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.part.files >= mostPerStep || b.part.bytes >= mostBytesPerStep
}

// end closes what the steps needed.
func (b *copyBatch) end() {
	for _, x := range b.devices {
		if x.witness >= 0 {
			b.t.disk.Close(x.witness)
		}
	}
}

// step makes all durable that was copied before it began. It reports whether there was
// anything.
func (b *copyBatch) step() bool {
	if !b.inSteps {
		return false
	}
	b.stepping.Lock()
	defer b.stepping.Unlock()
	part := b.take()
	if len(part.pending)+len(part.places) == 0 {
		return false
	}
	if b.t.ctx.Err() != nil {
		b.abandon(part, context.Cause(b.t.ctx))
		return true
	}
	whole := b.syncDevices(part)
	b.verifyUnnamed(part)
	if b.rename(part) {
		b.takeFolders(&part)
		whole = nil // the names are newer than that
	}
	b.syncNames(part, whole)
	b.settle(part)
	return true
}

// take begins the next part.
func (b *copyBatch) take() copyPart {
	b.mu.Lock()
	defer b.mu.Unlock()
	part := b.part
	b.part = copyPart{}
	for _, n := range part.places {
		n.listed = false
	}
	for i := range part.pending {
		if p := &part.pending[i]; p.together {
			p.whole = b.devices.of(p.node.sides[atDestination].is.device)
		}
	}
	b.devices.settle()
	return part
}

// takeFolders takes what had waited for the renames of the part alone: folders, and
// other links to its files.
func (b *copyBatch) takeFolders(part *copyPart) {
	b.mu.Lock()
	defer b.mu.Unlock()
	rest := b.part.pending[:0]
	for _, p := range b.part.pending {
		if !p.renames {
			part.pending = append(part.pending, p)
		} else {
			rest = append(rest, p)
		}
	}
	b.part.pending = rest
	part.places = append(part.places, b.part.places...)
	for _, n := range b.part.places {
		n.listed = false
	}
	b.part.places = nil
	for _, p := range rest { // these are synced again
		b.namedLocked(p.node)
	}
}

// syncDevices syncs the devices as a whole that are to be, and returns them with what
// the sync said.
func (b *copyBatch) syncDevices(part copyPart) map[uint64]error {
	whole := map[uint64]error{}
	for i := range part.pending {
		p := &part.pending[i]
		if p.whole == nil {
			continue
		}
		err, done := whole[p.whole.id]
		if !done {
			err = b.syncDevice(p.whole)
			whole[p.whole.id] = err
		}
		p.err, p.failed = err, opSync
	}
	return whole
}

func (b *copyBatch) syncDevice(x *device) error {
	err := b.t.disk.SyncAll(x.witness)
	b.mu.Lock()
	x.synced(err)
	b.mu.Unlock()
	return err
}

// rename gives the copies of a part their names, and reports whether there were any
// that waited for one.
func (b *copyBatch) rename(part copyPart) (any bool) {
	for i := range part.pending {
		p := &part.pending[i]
		if !p.renames {
			continue
		}
		any = true
		if p.err == nil {
			p.failed, p.err = opRename, b.t.publish(p)
		} else {
			p.err = stillThere(p.err, b.t.discard(p))
		}
		b.t.linked(p.link, p.err == nil)
		b.t.done(p.node)
	}
	return any
}

// syncNames syncs the places of a part, but on devices that were synced as a whole
// since they got their names: many of a device by another sync of all.
func (b *copyBatch) syncNames(part copyPart, whole map[uint64]error) {
	on := map[uint64]int{}
	for _, n := range part.places {
		on[n.sides[atDestination].is.device]++
	}
	var rest []*copyNode
	for _, n := range part.places {
		id := n.sides[atDestination].is.device
		err, done := whole[id]
		if x := b.ofMany(id, on[id]); !done && x != nil {
			err, done = b.syncDevice(x), true
			if whole == nil {
				whole = map[uint64]error{}
			}
			whole[id] = err
		}
		if done {
			b.told(n, err)
		} else {
			rest = append(rest, n)
		}
	}
	abreast(min(waiters, b.t.most), len(rest), func(i int) { b.told(rest[i], b.syncPlace(rest[i])) })
}

// ofMany returns the device of so many places, if it is better synced as a whole.
func (b *copyBatch) ofMany(id uint64, places int) *device {
	b.mu.Lock()
	defer b.mu.Unlock()
	x := b.devices.of(id)
	if places <= fewFolders || x.witness < 0 || x.failed {
		return nil
	}
	return x
}

// told is told how a place was synced. Names that a sync has lost no later one brings back.
func (b *copyBatch) told(n *copyNode, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		n.lost, b.lost = err, true
	}
}

// syncPlace syncs a node's destination.
func (b *copyBatch) syncPlace(n *copyNode) error {
	h, err := b.t.use(n, atDestination)
	if err != nil {
		return err
	}
	defer b.t.handles.rest(h)
	err = b.t.disk.Sync(h.fd)
	if err != nil {
		b.told(n, err)
	}
	return err
}

// lossAbove returns why nothing in a folder can be durable, if that is so.
func (b *copyBatch) lossAbove(n *copyNode) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.lost {
		return nil
	}
	for ; n != nil; n = n.above {
		if n.lost != nil {
			return n.lost
		}
	}
	return nil
}

// settle tells what became of the copies of a part.
func (b *copyBatch) settle(part copyPart) {
	for i := range part.pending {
		p := &part.pending[i]
		if p.err != nil && p.renames {
			p.fail(p.failed, p.err, OutcomeUntouched)
		} else { // what a sync of all has said is what its place was told
			p.durable(opSync, b.lossOf(p))
		}
	}
	b.verifyAll(part, func(p *copyPending) {
		if p.result.Err == nil {
			p.result.Err = b.verify(p, p.name)
		}
	})
	b.release(part)
}

// verifyUnnamed verifies what is synced and has no name yet: it gets none if it differs.
func (b *copyBatch) verifyUnnamed(part copyPart) {
	b.verifyAll(part, func(p *copyPending) {
		if p.renames && p.err == nil {
			p.failed, p.err = opVerify, b.verify(p, p.made.temporary)
		}
	})
}

func (b *copyBatch) verifyAll(part copyPart, verify func(*copyPending)) {
	if b.t.o.Verify {
		abreast(min(b.t.o.workers(), b.t.most), len(part.pending), func(i int) { verify(&part.pending[i]) })
	}
}

// verify compares a file, which has this name, with its source, past the page cache.
func (b *copyBatch) verify(p *copyPending, name sys.Name) error {
	r := &p.result
	if p.kind != fileCopy || r.Verified {
		return nil
	}
	from, err := b.t.use(p.node, atSource)
	if err != nil {
		return copyErrorOf(r.Source, r.Destination, copyFailure(opOpen, err))
	}
	defer b.t.handles.rest(from)
	to, err := b.t.use(p.node, atDestination)
	if err != nil {
		return copyErrorOf(r.Source, r.Destination, copyFailure(opOpen, err))
	}
	defer b.t.handles.rest(to)
	return b.t.copier.verifyLater(b.t.ctx, copySpot{to.fd, name, r.Destination, nil}, copySpot{from.fd, p.from, r.Source, nil}, r)
}

func (b *copyBatch) lossOf(p *copyPending) error {
	if p.self != nil {
		return b.lossAbove(p.self)
	}
	return b.lossAbove(p.node)
}

// release tells the results of a part, in the order in which the copies were made.
func (b *copyBatch) release(part copyPart) {
	for _, p := range part.pending {
		b.t.tell(p)
	}
	for _, n := range part.places {
		if n.left.Load() == 0 && !b.waitsFor(n) {
			b.t.leave(n, atDestination)
		}
	}
}

// abandon leaves the copies of a part as they are, and removes what has no name yet.
func (b *copyBatch) abandon(part copyPart, cause error) {
	for i := range part.pending {
		p := &part.pending[i]
		if p.renames {
			left := b.t.discard(p)
			b.t.linked(p.link, false)
			b.t.done(p.node)
			p.fail(opRename, stillThere(cause, left), OutcomeUntouched)
		} else {
			p.fail(opSync, cause, OutcomeWritten)
		}
	}
	b.release(part)
}
