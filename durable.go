package holdfast

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// A durable step of a batch is made when so many files, or bytes, have come together.
const (
	mostPerStep      = 4096
	mostBytesPerStep = 256 << 20
)

// Whether to sync a file system as a whole. That takes along what other programs
// have left to be written there; a file that is synced by itself costs more. It is
// known what waits to be written, and how many files of the batch there were. It is
// guessed that there will be as many again.
const (
	freeDirty    = 4 << 20  // so many bytes are written while few files are synced
	dirtyPerFile = 48 << 10 // what 1 GB/s writes in the time by which one file is cheaper: 48 µs
	decideEvery  = 32       // files, as long as they are synced by themselves
	fewFolders   = 4        // are synced one by one after renames, at one commit each
)

// worthSyncAll reports whether to sync the file system as a whole from here on.
func worthSyncAll(files int, dirty int64) bool {
	return dirty <= freeDirty+int64(files)*dirtyPerFile
}

// A part is the files of a batch since its last durable step.
type part struct {
	inSteps bool // there are such steps
	files   int
	bytes   int64
	renames []*replacement // in the order in which they were given
	waits   atomic.Bool    // a file was synced by itself

	mu      sync.Mutex
	written []pending
	places  map[string]*place
	devices devices
}

// A pending file is written, and waits to be durable.
type pending struct {
	result   *record
	place    *place
	together bool
}

// A place is a folder with names that are not durable yet. It may have been closed
// meanwhile: any descriptor of it syncs them.
type place struct {
	path    string
	is      sys.Stat
	device  *device
	listed  bool  // among those that are to be synced
	losses  int   // syncs of it that had failed before
	givenUp bool  // before the sync
	err     error // of the sync
}

// A device is a file system.
type device struct {
	id       uint64
	files    int // of this batch
	decideAt int // when there are so many of them it is decided again whether to sync all
	together bool
	failed   bool  // as a whole it is not synced any more
	witness  int   // a folder there, open before the first byte that it is to sync; -1: none
	err      error // of the sync of all
}

// devices is the file systems of a batch.
type devices []*device

// of returns the device with this number.
func (d *devices) of(id uint64) *device {
	for _, x := range *d {
		if x.id == id {
			return x
		}
	}
	x := &device{id: id, witness: -1}
	*d = append(*d, x)
	return x
}

// settle begins the next part.
func (d devices) settle() {
	for _, x := range d {
		x.together, x.decideAt, x.err = false, 0, nil
	}
}

// takes counts one more file, and reports whether it is to be synced with all of the
// device. That is told before the file's first byte is written: open is asked for a
// witness then, to which the kernel reports what failed since it was opened.
func (x *device) takes(disk disk, syncsAll bool, open func() (fd int)) bool {
	if !x.together && x.files >= x.decideAt {
		x.decideAt = x.files + decideEvery
		x.together = syncsAll && !x.failed && x.decide(disk, open)
	}
	x.files++
	return x.together
}

func (x *device) decide(disk disk, open func() (fd int)) bool {
	dirty, ok := disk.Dirty()
	if !ok || !worthSyncAll(x.files, dirty) {
		return false
	}
	if x.witness < 0 {
		x.witness = open()
	}
	return x.witness >= 0
}

// synced is told what the sync of the whole device said.
func (x *device) synced(err error) {
	x.err = err
	x.failed = x.failed || err != nil
}

func (p *part) init(s Sync) {
	p.inSteps = s != SyncNever && s != SyncEach
	if p.inSteps && p.places == nil {
		p.places = map[string]*place{}
	}
}

func (p *part) full() bool {
	return p.inSteps && (p.files >= mostPerStep || p.bytes >= mostBytesPerStep)
}

func (p *part) add(bytes int) {
	p.files++
	p.bytes += int64(bytes)
}

// mannerIn says how a file of this folder is made durable. It is told before its
// first byte is written.
func (b *batch) mannerIn(d *folder) manner {
	p := &b.part
	p.mu.Lock()
	defer p.mu.Unlock()
	x := b.placeLocked(d).device
	if x.takes(b.files.disk, d.syncsAll, func() int { return b.files.openWitness(d.path, x.id) }) {
		return together
	}
	p.waits.Store(true)
	return file
}

// openWitness opens a folder of a device. It returns -1 if that can't be, or if as
// many are open as are set aside.
func (f *Files) openWitness(path string, device uint64) int {
	select {
	case f.watches <- struct{}{}:
	default:
		return -1
	}
	f.handles.reserve()
	fd := -1
	if name, err := sys.NewName(path); err == nil {
		if fd, err = f.disk.OpenFolder(name); err != nil {
			fd = -1
		}
	}
	if fd >= 0 {
		if is, err := f.disk.StatFD(fd); err == nil && is.Device == device {
			return fd
		}
	}
	f.closeWitness(fd)
	return -1
}

func (f *Files) closeWitness(fd int) {
	if fd >= 0 {
		f.disk.Close(fd) // nothing was written to it
	}
	f.handles.release()
	<-f.watches
}

func (b *batch) closeWitnesses() {
	for _, x := range b.part.devices {
		if x.witness >= 0 {
			b.files.closeWitness(x.witness)
			x.witness = -1
		}
	}
}

// placeLocked returns the place for a folder, before it is given a name.
func (b *batch) placeLocked(d *folder) *place {
	p := &b.part
	at := p.places[d.path]
	if at == nil || at.is.Inode != d.is.Inode || at.is.Device != d.is.Device {
		at = &place{path: d.path, is: d.is, losses: b.files.handles.losses(d)}
		at.device = p.devices.of(d.is.Device)
		p.places[d.path] = at
	}
	return at
}

// written is told that a file is written and closed.
func (b *batch) written(r *record, d *folder, m manner) {
	p := &b.part
	p.mu.Lock()
	p.written = append(p.written, pending{r, b.placeLocked(d), m == together})
	p.mu.Unlock()
}

// renameLater is told that a temporary file is written and closed.
func (b *batch) renameLater(r *replacement, d *folder, m manner) {
	b.part.mu.Lock()
	r.place, r.together = b.placeLocked(d), m == together
	b.part.mu.Unlock()
}

// step makes all files durable that were given so far.
func (b *batch) step() {
	b.drain()
	p := &b.part
	if b.ctx.Err() != nil && len(p.written)+len(p.renames) > 0 {
		b.abandon(context.Cause(b.ctx))
	}
	b.syncDevices()
	for _, r := range p.renames {
		b.rename(r)
	}
	b.syncNames()
	for _, x := range p.written {
		x.settle()
	}
	p.reset()
}

// syncDevices syncs the file systems that are to be synced as a whole.
func (b *batch) syncDevices() {
	for _, x := range b.part.devices {
		if x.together && len(b.part.written)+len(b.part.renames) > 0 {
			b.syncDevice(x)
		}
	}
}

func (b *batch) syncDevice(x *device) {
	b.files.whole.syncs.Add(1)
	x.synced(b.files.disk.SyncAll(x.witness))
}

// rename does what a replaced file has left to be done.
func (b *batch) rename(r *replacement) {
	if r.temporary == "" {
		return
	}
	defer b.files.turns.leave(&r.ticket)
	op, err := opSync, error(nil)
	if r.together {
		err = r.place.device.err
	}
	if err == nil {
		op, err = opRename, b.files.turns.await(b.ctx, &r.ticket)
	}
	if err == nil {
		err = b.inPlace(r.place, func(d *folder, t *tries) error {
			return b.files.rename(b.ctx, t, d, r.temporary, r.base, r.old)
		})
	}
	if err != nil {
		b.removeTemporary(r)
		r.result.bytes = 0
		r.result.fail(op, err, OutcomeUntouched)
		return
	}
	r.result.outcome = OutcomeWritten
	b.part.written = append(b.part.written, pending{result: r.result, place: r.place})
}

// inPlace calls do with a folder of the batch open. It goes on when ctx has ended:
// do asks for that.
func (b *batch) inPlace(at *place, do func(d *folder, t *tries) error) error {
	f, ctx := b.files, context.WithoutCancel(b.ctx)
	if err := f.handles.begin(ctx); err != nil {
		return err
	}
	defer f.handles.end()
	for t := f.tries(); ; {
		d, err := f.handles.useFolder(at.path, b.era)
		if err == nil {
			defer f.handles.rest(&d.handle)
			t.progress()
			return do(d, &t)
		}
		if !t.again(b.ctx, opOpen, &err) {
			return err
		}
	}
}

// removeTemporary removes a file that is not to be renamed. It stays if its folder
// can't be opened any more, or does not let us.
func (b *batch) removeTemporary(r *replacement) {
	b.inPlace(r.place, func(d *folder, _ *tries) error {
		return b.files.disk.Remove(d.fd, r.temporary)
	})
}

// settle says what became of a file of which all syncs were made.
func (x pending) settle() {
	err := x.place.err
	if x.together {
		err = x.place.device.err
	}
	switch {
	case err == nil:
		x.result.outcome = OutcomeDurable
	case x.place.givenUp && !x.together:
		x.result.fail(opSync, err, OutcomeWritten)
	default:
		x.result.fail(opSync, err, OutcomeUncertain)
	}
}

// abandon leaves the files as they are, and removes the temporary ones.
func (b *batch) abandon(cause error) {
	p := &b.part
	for _, r := range p.renames {
		if r.temporary != "" {
			b.removeTemporary(r)
			r.result.bytes = 0
			r.result.fail(opRename, cause, OutcomeUntouched)
			b.files.turns.leave(&r.ticket)
		}
	}
	for _, x := range p.written {
		x.result.fail(opSync, cause, OutcomeWritten)
	}
	p.reset()
}

// reset begins the next part.
func (p *part) reset() {
	p.files, p.bytes = 0, 0
	clear(p.renames)
	clear(p.written)
	clear(p.places)
	p.renames, p.written = p.renames[:0], p.written[:0]
	p.waits.Store(false)
	p.devices.settle()
}

// mostKept is how many files, or folders, a part has memory for that it leaves to
// the next batch.
const mostKept = 1024

// clear makes the part like a new one, but for its memory.
func (p *part) clear() {
	p.reset()
	p.devices = nil
	if max(cap(p.written), cap(p.renames)) > mostKept {
		p.written, p.renames, p.places = nil, nil, nil
	}
}

// syncNames syncs the folders that have names of files that were synced by
// themselves, or names that came later than the sync of all: many of one device by
// another sync of all.
func (b *batch) syncNames() {
	places := b.part.placesToSync()
	of := map[*device]int{}
	for _, at := range places {
		of[at.device]++
	}
	for x, folders := range of {
		if x.together && x.err == nil && folders > fewFolders && b.ctx.Err() == nil {
			b.syncDevice(x)
			places = settleAll(places, x)
		}
	}
	b.syncPlaces(places)
}

// settleAll tells the places of a device how its sync went, and returns the others.
func settleAll(places []*place, on *device) (others []*place) {
	for _, at := range places {
		if at.device == on {
			at.err = on.err
		} else {
			others = append(others, at)
		}
	}
	return others
}

// placesToSync returns the folders that are to be synced, each once.
func (p *part) placesToSync() (places []*place) {
	for _, x := range p.written {
		if !x.together && !x.place.listed {
			x.place.listed = true
			places = append(places, x.place)
		}
	}
	return places
}

// syncPlaces syncs the folders, some at once, for they wait for the disk.
func (b *batch) syncPlaces(places []*place) {
	if len(places) > 0 { // else it takes no memory
		abreast(waiters, len(places), func(i int) { places[i].err = b.syncPlace(places[i]) })
	}
}

// abreast calls do with each number below n, and with some of them at the same time.
func abreast(some, n int, do func(i int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(some, n) {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				do(int(i))
			}
		})
	}
	all.Wait()
}

var errFolderMoved = errors.New("the folder was moved away meanwhile; its names are not synced")

// syncPlace syncs a folder, which may have been closed meanwhile.
func (b *batch) syncPlace(at *place) error {
	if b.ctx.Err() != nil {
		at.givenUp = true
		return context.Cause(b.ctx)
	}
	return b.inPlace(at, func(d *folder, _ *tries) error {
		if d.is.Inode != at.is.Inode || d.is.Device != at.is.Device {
			return errFolderMoved
		}
		return b.files.syncNamesIn(d, at.losses)
	})
}
