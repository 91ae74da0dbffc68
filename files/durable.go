package files

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/handles"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A part is the files of a batch since its last durable step.
type part struct {
	inSteps bool // there are such steps
	files   int
	bytes   int64
	renames []*replacement // in the order in which they were given
	// replaced is the paths of the first looked renames. Only files of other modes ask for it.
	replaced map[string]bool
	looked   int
	waits    atomic.Bool // a file was synced by itself
	step     durable.Step

	mu      sync.Mutex
	written []pending
	places  map[string]*place
}

// A pending file is written, and waits to be durable.
type pending struct {
	durable.File
	result *record
}

// A place is a directory with names that are not durable yet. It may have been closed
// meanwhile: any descriptor of it syncs them.
type place struct {
	durable.Place
	path string
}

func (p *part) init(s holdfast.Sync) {
	p.inSteps = s.Mode != holdfast.SyncNever && s.Mode != holdfast.SyncEach
	if p.inSteps && p.places == nil {
		p.places = map[string]*place{}
	}
}

// replaces reports whether a file of this path waits to be renamed.
func (p *part) replaces(path string) bool {
	if p.looked < len(p.renames) && p.replaced == nil {
		p.replaced = map[string]bool{}
	}
	for ; p.looked < len(p.renames); p.looked++ {
		p.replaced[p.renames[p.looked].result.path] = true
	}
	return p.replaced[path]
}

// syncModeIn returns how a file of this directory is made durable; b is nil for a Write. It is
// called before the file's first byte is written.
func (f *Set) syncModeIn(b *batch, d *handles.Dir) syncMode {
	switch sync := f.options.Policy.Sync; {
	case sync.Mode == holdfast.SyncNever:
		return unsynced
	case sync.Mode == holdfast.SyncEach, b == nil:
		return alone
	}
	p := &b.part
	p.mu.Lock()
	defer p.mu.Unlock()
	x := b.placeLocked(d).Device
	if p.step.Takes(x, func() int { return f.openErrseq(d.Path, x.ID) }) {
		return together
	}
	p.waits.Store(true)
	return file
}

// placeLocked returns the place for a directory, before it is given a name.
func (b *batch) placeLocked(d *handles.Dir) *place {
	p := &b.part
	at := p.places[d.Path]
	if at == nil || at.Key != d.Key() {
		at = &place{path: d.Path}
		at.Key, at.Device, at.Since = d.Key(), p.step.Device(d.Is.Device), b.files.names.Losses(d.Key())
		at.Sync = func() error {
			return b.inPlace(at, func(d *handles.Dir, _ *retry.Tries) error { return b.files.syncDir(d) })
		}
		at.Device.Allowed, at.Device.NoJournal = d.SyncsAll && !d.LacksJournal, d.LacksJournal
		p.places[d.Path] = at
	}
	return at
}

// written takes a file that is written and closed.
func (b *batch) written(r *record, d *handles.Dir, m syncMode) {
	p := &b.part
	p.mu.Lock()
	defer p.mu.Unlock()
	at := b.placeLocked(d)
	p.written = append(p.written, pending{at.file(m), r})
	p.step.Named(&at.Place)
}

// file returns a file in a place that is synced in this way.
func (at *place) file(m syncMode) (f durable.File) {
	f.Place = &at.Place
	if m == together {
		f.Whole = at.Device
	}
	return f
}

// makeDurable makes all files durable that were given so far.
func (b *batch) makeDurable() {
	b.drain()
	p := &b.part
	if b.ctx.Err() != nil {
		b.abandon(context.Cause(b.ctx))
		return
	}
	began := time.Now()
	p.step.Run(p.pending, func() {
		for _, r := range p.renames {
			if r.temporary != "" {
				b.rename(r)
			}
		}
	})
	for i := range p.written {
		p.written[i].settle()
	}
	for _, r := range p.renames {
		if r.temporary != "" {
			r.settle()
		}
	}
	if log := b.files.options.Logger; log != nil && p.inSteps && p.files > 0 {
		log.Debug("batch", "files", p.files, "bytes", p.bytes, "elapsed", time.Since(began))
	}
	p.reset()
}

// pending gives the files that wait for the step.
func (p *part) pending(yield func(*durable.File) bool) {
	for i := range p.written {
		if !yield(&p.written[i].File) {
			return
		}
	}
	for _, r := range p.renames {
		if r.temporary != "" && !yield(&r.File) {
			return
		}
	}
}

// syncAll syncs a whole file system for the step.
func (b *batch) syncAll(errseq int) error {
	b.files.whole.syncs.Add(1)
	return vfs.SyncAll(b.files.disk, errseq)
}

// rename gives a temporary file its name, if its bytes are durable, or removes it.
func (b *batch) rename(r *replacement) {
	b.files.turns.Join(keyed.Key{Path: r.result.path}, &r.ticket)
	defer b.files.turns.Leave(&r.ticket)
	defer b.files.marks.GiveBack(r.mark)
	op, err := retry.OpSync, r.Err
	if err == nil {
		op, err = retry.OpRename, b.files.turns.Await(b.ctx, &r.ticket)
	}
	if err == nil {
		err = b.inPlace(r.place, func(d *handles.Dir, t *retry.Tries) error {
			return b.files.rename(b.ctx, t, d, r.temporary, r.base, r.old)
		})
	}
	if err != nil {
		b.takeBack(r, op, err)
		return
	}
	r.result.outcome = holdfast.OutcomeWritten
	b.part.step.Named(r.Place)
}

// inPlace calls do with a directory of the batch open. It goes on when ctx has ended:
// do asks for that.
func (b *batch) inPlace(at *place, do func(d *handles.Dir, t *retry.Tries) error) error {
	f, ctx := b.files, context.WithoutCancel(b.ctx)
	if err := f.handles.Begin(ctx); err != nil {
		return err
	}
	defer f.handles.End()
	for t := f.tries(at.path); ; {
		d, err := f.handles.UseDir(at.path, b.era)
		if err == nil {
			defer f.handles.Rest(&d.Handle)
			t.Progress()
			if d.Key() != at.Key {
				return errDirMoved
			}
			return do(d, &t)
		}
		if !t.Again(b.ctx, retry.OpOpen, &err) {
			return err
		}
	}
}

// takeBack removes a temporary file that is not to be renamed, and reports why. It adds to that
// if the file stays: where its directory can't be opened any more, is another by now, or does
// not let us.
func (b *batch) takeBack(r *replacement, op retry.Op, why error) {
	err := b.inPlace(r.place, func(d *handles.Dir, _ *retry.Tries) error {
		return b.files.discard(d.Fd, r.temporary)
	})
	why = stillThere(why, err, r.temporary)
	r.temporary = ""
	r.result.bytes = 0
	r.result.fail(op, why, holdfast.OutcomeUntouched)
}

// settle sets the result of a file after the step.
func (x *pending) settle() {
	switch {
	case x.Err == nil:
		x.result.outcome, x.result.noJournal = holdfast.OutcomeDurable, x.Place.Device.NoJournal
	case x.Ended:
		x.result.fail(retry.OpSync, x.Err, holdfast.OutcomeWritten)
	default:
		x.result.fail(retry.OpSync, x.Err, holdfast.OutcomeUncertain)
	}
}

// abandon leaves the files as they are, and removes the temporary ones.
func (b *batch) abandon(cause error) {
	p := &b.part
	for _, r := range p.renames {
		if r.temporary != "" {
			b.takeBack(r, retry.OpRename, cause)
			b.files.marks.GiveBack(r.mark)
		}
	}
	for _, x := range p.written {
		x.result.fail(retry.OpSync, cause, holdfast.OutcomeWritten)
	}
	p.step.Abandon()
	p.reset()
}

// reset begins the next part.
func (p *part) reset() {
	p.files, p.bytes = 0, 0
	clear(p.renames)
	clear(p.written)
	clear(p.places)
	clear(p.replaced)
	p.looked = 0
	p.renames, p.written = p.renames[:0], p.written[:0]
	p.waits.Store(false)
}
