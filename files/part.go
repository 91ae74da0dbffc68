package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/folding"
	"github.com/holdfast-go/holdfast/internal/handles"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/temporary"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A part is the files of a batch since its last durable step. It knows what is to be synced and renamed, and does it.
// Before makeDurable no worker may be at work.
type part struct {
	files   *Set
	ctx     context.Context
	era     int64
	inSteps bool // there are such steps
	count   int  // of files
	bytes   int64
	renames []*replacement // in the order in which they were given
	// replaced is the paths of the first looked renames. Only files of other modes ask for it.
	replaced map[string]bool
	looked   int
	waits    atomic.Bool // a file was synced by itself
	failed   error       // of a Batch, the first
	step     durable.Step

	// Of a Batch, whose files stay open for a while:
	keep      func(keptFile) *keptGroup
	release   func()
	awaitSync func(*replacement)

	mu      sync.Mutex
	written []pending
	places  map[string]*place
	given   map[keyed.Key]*folding.Names // in each directory that may take two names for one; nil in others
}

// A pending file is written, and waits to be durable.
type pending struct {
	durable.File
	result *record
}

// A replacement is a rename that a job leaves to its batch. The temporary
// file is renamed when it is durable, in its turn in the queue of its path.
type replacement struct {
	pending
	ticket    keyed.Ticket
	place     *place          // where it is: if the result's path is a symbolic link, where that leads
	base      sys.Name        // its name
	temporary sys.Name        // how it is named; "" if it could not be written, or is gone
	mark      *temporary.Mark // below which it has that name, or nil
	old       sys.Stat        // the file that it replaces, if there is one
	group     *keptGroup      // of a Batch: it is synced with

	// A change is not of a temporary file: what a Batch was asked to do with names, in r.place
	// and also, if that is not nil.
	change func() error
	op     retry.Op // of change
	also   *place
}

// waits reports whether the step has to do it.
func (r *replacement) waits() bool { return r.temporary != "" || r.change != nil }

// A place is a directory with names that are not durable yet. It may have been closed
// meanwhile: any descriptor of it syncs them.
type place struct {
	durable.Place
	path string
}

func (p *part) init(ctx context.Context, f *Set) {
	p.files, p.ctx, p.era = f, ctx, f.era.Add(1)
	p.step.Disk, p.step.Names = f.disk, f.names
	s := f.options.Policy.Sync
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

// A syncMode says by which sync a file becomes durable.
type syncMode int8

const (
	unsynced syncMode = iota
	alone             // it is synced, and then its directory, before the next
	file              // it is synced, and its directory with the directories of the whole batch
	together          // it is synced with all that is on its disk, at the end of the batch
)

// setSyncMode sets how the file is made durable in its directory. It is called before the file's first byte
// is written.
func (s *fileWriter) setSyncMode() {
	p := s.part
	switch sync := s.files.options.Policy.Sync; {
	case sync.Mode == holdfast.SyncNever:
		s.syncMode = unsynced
		return
	case sync.Mode == holdfast.SyncEach, p == nil:
		s.syncMode = alone
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.placeLocked(s.dir)
	open := func() int { return s.files.openErrseq(at.path, at.Device.ID) }
	s.syncMode = file
	if p.keep != nil {
		s.errseq = p.step.Watch(at.Device, open)
	} else if p.step.Takes(at.Device, open) {
		s.syncMode = together
	} else {
		p.waits.Store(true)
	}
}

// placeLocked returns the place for a directory, before it is given a name.
func (p *part) placeLocked(d *handles.Dir) *place {
	at := p.places[d.Path]
	if at == nil || at.Key != d.Key() {
		at = &place{path: d.Path}
		at.Key, at.Device, at.Since = d.Key(), p.step.Device(d.Is.Device), p.files.names.Losses(d.Key())
		at.Sync = func() error {
			return p.inPlace(at, func(d *handles.Dir, _ *retry.Tries) error { return p.files.syncDir(d) })
		}
		at.Device.Allowed, at.Device.NoJournal = d.SyncsAll && !d.LacksJournal, d.LacksJournal
		p.places[d.Path] = at
	}
	return at
}

// wrote takes a file that is written and closed.
func (p *part) wrote(r *record, d *handles.Dir, m syncMode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.placeLocked(d)
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
func (p *part) makeDurable() {
	if p.ctx.Err() != nil {
		p.abandon(context.Cause(p.ctx))
		return
	}
	began := time.Now()
	p.step.Run(p.pending, func() {
		for _, x := range p.written {
			p.failed = cmp.Or(p.failed, x.Err)
		}
		for _, r := range p.renames {
			if p.awaitSync != nil {
				p.awaitSync(r)
			}
			switch {
			case r.change != nil:
				p.changeNames(r)
			case r.temporary != "":
				p.rename(r)
			}
			if r.result.err != nil {
				p.failed = cmp.Or[error](p.failed, r.result.err)
			}
		}
	})
	for i := range p.written {
		p.settle(&p.written[i])
	}
	for _, r := range p.renames {
		if r.waits() {
			if r.also != nil && r.Err == nil {
				r.Err = p.step.Loss(&r.also.Place)
			}
			p.settle(&r.pending)
		}
	}
	if log := p.files.options.Logger; log != nil && p.inSteps && p.count > 0 {
		log.Debug("batch", "files", p.count, "bytes", p.bytes, "elapsed", time.Since(began))
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
		if r.waits() && !yield(&r.File) {
			return
		}
	}
}

// syncAll syncs a whole file system for the step.
func (p *part) syncAll(errseq int) error {
	p.files.whole.syncs.Add(1)
	return p.files.syncAll(errseq)
}

// rename gives a temporary file its name, if its bytes are durable, or removes it.
func (p *part) rename(r *replacement) {
	p.files.turns.Join(keyed.Key{Path: r.result.path}, &r.ticket)
	defer p.files.turns.Leave(&r.ticket)
	defer p.files.marks.GiveBack(r.mark)
	op, err := retry.OpSync, r.Err
	if err == nil {
		op, err = retry.OpRename, p.files.turns.Await(p.ctx, &r.ticket)
	}
	if err == nil {
		err = p.inPlace(r.place, func(d *handles.Dir, t *retry.Tries) error {
			return p.give(d, r.base, func() error { return p.files.rename(p.ctx, t, d, r) })
		})
	}
	if torn := (tornError{}); errors.As(err, &torn) {
		r.temporary = ""
		r.result.fail(op, err, holdfast.OutcomeUncertain)
		return
	}
	if err != nil {
		p.takeBack(r, op, err)
		return
	}
	r.result.outcome = holdfast.OutcomeWritten
	p.step.Named(r.Place)
}

// give calls do, which gives a file its name in a directory, unless the name is another one's that
// the batch has given.
func (p *part) give(d *handles.Dir, base sys.Name, do func() error) error {
	p.mu.Lock()
	given, known := p.given[d.Key()]
	if !known {
		if vfs.FoldsNames(p.files.disk, d.Fd) {
			given = new(folding.Names)
		}
		if p.given == nil {
			p.given = map[keyed.Key]*folding.Names{}
		}
		p.given[d.Key()] = given
	}
	p.mu.Unlock()
	return given.Give(p.files.disk, d.Fd, base, do)
}

// changeNames does what a Batch was asked to do, unless something that was given before it failed.
func (p *part) changeNames(r *replacement) {
	err := p.failed
	if err != nil {
		err = fmt.Errorf("it was not done, because of a failure before it: %w", err)
	} else if r.base == "" {
		err = r.change()
	} else {
		err = p.inPlace(r.place, func(d *handles.Dir, _ *retry.Tries) error { return p.give(d, r.base, r.change) })
	}
	if err != nil {
		r.change = nil
		r.result.fail(r.op, err, holdfast.OutcomeUntouched)
		return
	}
	p.step.Named(&r.place.Place)
	if r.also != nil {
		p.step.Named(&r.also.Place)
	}
}

// inPlace calls do with a directory of the batch open. It goes on when ctx has ended:
// do asks for that.
func (p *part) inPlace(at *place, do func(d *handles.Dir, t *retry.Tries) error) error {
	f, ctx := p.files, context.WithoutCancel(p.ctx)
	if err := f.handles.Begin(ctx); err != nil {
		return err
	}
	defer f.handles.End()
	for t := f.tries(at.path); ; {
		d, err := f.handles.UseDir(at.path, p.era)
		if err == nil {
			defer f.handles.Rest(&d.Handle)
			t.Progress()
			if d.Key() != at.Key {
				return errDirMoved
			}
			return do(d, &t)
		}
		if !t.Again(p.ctx, retry.OpOpen, &err) {
			return err
		}
	}
}

// takeBack removes a temporary file that is not to be renamed, and reports why. It adds to that
// if the file stays: where its directory can't be opened any more, is another by now, or does
// not let us.
func (p *part) takeBack(r *replacement, op retry.Op, why error) {
	err := p.inPlace(r.place, func(d *handles.Dir, _ *retry.Tries) error {
		return p.files.discard(d.Fd, r.temporary)
	})
	why = stillThere(why, err, r.temporary)
	r.temporary = ""
	r.result.bytes = 0
	r.result.fail(op, why, holdfast.OutcomeUntouched)
}

// settle sets the result of a file after the step.
func (p *part) settle(x *pending) {
	switch {
	case x.Err == nil:
		p.files.named(x.result, x.Place.Key, x.Place.Device.NoJournal)
	case x.Ended:
		x.result.fail(retry.OpSync, x.Err, holdfast.OutcomeWritten)
	default:
		x.result.fail(retry.OpSync, x.Err, holdfast.OutcomeUncertain)
	}
}

// abandon leaves the files as they are, and removes the temporary ones.
func (p *part) abandon(cause error) {
	for _, r := range p.renames {
		if r.temporary != "" {
			p.takeBack(r, retry.OpRename, cause)
			p.files.marks.GiveBack(r.mark)
		} else if r.change != nil {
			r.result.fail(r.op, cause, holdfast.OutcomeUntouched)
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
	p.count, p.bytes = 0, 0
	clear(p.renames)
	clear(p.written)
	clear(p.places)
	clear(p.replaced)
	p.looked = 0
	p.renames, p.written = p.renames[:0], p.written[:0]
	p.waits.Store(false)
}

// renameLater takes a temporary file that is written and closed.
func (p *part) renameLater(r *replacement, d *handles.Dir, m syncMode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.place = p.placeLocked(d)
	r.File, r.Renames = r.place.file(m), true
}

// discard removes a temporary file, unless it is gone.
func (f *Set) discard(dir int, temporary sys.Name) error {
	err := f.disk.Remove(dir, temporary)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// stillThere adds to the error of a replacement that its temporary file stays, if it can't be
// removed.
func stillThere(err, failed error, temporary sys.Name) error {
	if failed == nil {
		return err
	}
	return fmt.Errorf("%w; %s is left in that directory", err, temporary)
}

// rename puts a temporary file in the place of the old one.
func (f *Set) rename(ctx context.Context, t *retry.Tries, in *handles.Dir, r *replacement) error {
	key := keyed.Key{Device: r.old.Device, Inode: r.old.Inode}
	for {
		f.open.renaming(key, 1)
		err := f.disk.Rename(in.Fd, r.temporary, r.base)
		if err == nil && r.old.Inode != 0 {
			f.open.stale(key)
		}
		f.open.renaming(key, -1)
		if err == nil {
			break
		}
		if errors.Is(err, syscall.EBUSY) && f.options.Effort == holdfast.Best && r.old.Inode != 0 {
			return f.overwrite(ctx, t, in, r)
		}
		if !t.Again(ctx, retry.OpRename, &err) {
			return err
		}
	}
	t.Progress()
	return nil
}
