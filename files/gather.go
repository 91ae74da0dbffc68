package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/errjoin"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// A Batch gathers files that a program writes one by one, and makes them durable together. Any
// number of goroutines may call its methods.
//
// Its files take their names, and Rename, Link and Remove are done, in the order in which they
// were given, when the bytes of all that were given before are durable. That is at Commit,
// and whenever [Options].Batch of them or 256 MiB have come together: so a Batch of a million files
// needs no more memory. Until then it holds descriptors of the last files, beside Options.Handles half as
// many as these. It is no transaction, since a crash or a failure may leave a part
// of it done, and which of its names a crash in the middle leaves is open. A manifest or a
// reference, which may only be there when all else is, is written after Commit. Relative paths are
// resolved at each call.
//
// Under sync=each each file is durable by itself, and under sync=never nothing is.
type Batch struct {
	set  *Set
	part part
	open atomic.Int64 // Pendings that are not handed over

	step sync.RWMutex // held for reading while a file is put into part; with it held for writing none is
	over bool         // guarded by step

	mu      sync.Mutex
	records []*record // since the last step
	bytes   int64     // of these
	totals  Totals
	failed  errjoin.Many

	spoilt map[*record]error // why the sync of a file failed

	keeping sync.Mutex // held while kept grows
	kept    *keptGroup // not synced yet, or nil
	last    *keptGroup // that is synced, or was; nil: none yet
}

// Begin begins a Batch, which [Batch.Commit] or [Batch.Discard] must end.
func (f *Set) Begin() *Batch {
	b := &Batch{set: f, spoilt: map[*record]error{}}
	p := &b.part
	p.keep, p.release, p.awaitSync = b.keep, b.release, b.awaitSync
	p.step.SyncAll, p.step.Most = p.syncAll, durable.Waiters
	p.step.Ended = func() error { return context.Cause(p.ctx) }
	p.init(context.Background(), f)
	p.places = map[string]*place{}
	f.mu.Lock()
	defer f.mu.Unlock()
	b.over = f.closing
	f.unfinished[b] = struct{}{}
	return b
}

// Create begins a file of the batch that comes as a stream: see [Set.Pending]. Its Commit hands
// it over.
func (b *Batch) Create(path string) (*Pending, error) {
	b.step.RLock()
	defer b.step.RUnlock()
	if b.over {
		return nil, batchError(path, errBatchOver)
	}
	p, err := b.set.pending(b.set.fixed(path), b)
	if err == nil {
		b.open.Add(1)
	}
	return p, err
}

// Write writes a file as [Set.WriteFile] does with [Replace]. data is the caller's again when
// it returns. A failure is returned, and is in Commit's error too.
func (b *Batch) Write(path string, data []byte) error {
	path = b.set.fixed(path)
	return b.give(path, func(s *fileWriter) {
		switch w := s.job; {
		case !w.prepare(Write{Path: path, Data: data, Mode: Replace}, new(strings.Builder), 0):
		case b.leavesRename(w):
			s.write(w)
		default:
			s.writeAlone(w)
		}
	})
}

// Add takes a file that the program has written itself, and makes it durable with the name
// that it was opened by. The very descriptor that wrote it is asked, so that no error of the kernel is
// missed; the file need not be readable. It may be closed as soon as Add returns, and may not be written
// to again. If the name leads to another file by now, or to none, that is an error.
func (b *Batch) Add(file *os.File) error {
	path := b.set.byPath.of(file)
	return b.inPlace(path, retry.OpSync, func(s *fileWriter, at *place) error {
		is, err := file.Stat()
		if err != nil {
			return err
		}
		if named, err := b.set.byPath.stat(path); err != nil {
			return err
		} else if !os.SameFile(is, named) {
			return fmt.Errorf("the name is another file's by now: %w", holdfast.ErrUnlinked)
		}
		if at != nil {
			x := keptFile{result: s.result, dir: s.dir.Key(), added: true}
			if s.dir.Is.Device == deviceOf(is) {
				x.Errseq = s.errseq
			}
			b.keepAdded(file, x)
			s.part.wrote(s.result, s.dir, s.syncMode)
		}
		s.result.bytes, s.result.outcome = is.Size(), holdfast.OutcomeWritten
		return nil
	})
}

// Mkdir makes a directory, before umask with perm, at once; its name is durable with the batch.
func (b *Batch) Mkdir(path string, perm os.FileMode) error {
	path = b.set.fixed(path)
	return b.inPlace(path, retry.OpMkdir, func(s *fileWriter, at *place) error {
		if err := b.set.byPath.mkdir(path, perm); err != nil {
			return errors.Unwrap(err) // without its path
		}
		s.result.outcome = holdfast.OutcomeWritten
		if at != nil {
			s.part.wrote(s.result, s.dir, s.syncMode)
		}
		return nil
	})
}

// Rename gives the file of a name another one, also in another directory, in place of the file
// that has it.
func (b *Batch) Rename(from, to string) error {
	from, to = b.set.fixed(from), b.set.fixed(to)
	return b.change(to, from, retry.OpRename, func() error { return b.set.byPath.rename(from, to) })
}

// Link gives a file a second name, which must be none.
func (b *Batch) Link(from, to string) error {
	from, to = b.set.fixed(from), b.set.fixed(to)
	return b.change(to, "", opLink, func() error { return b.set.byPath.link(from, to) })
}

// Remove removes a name, of a file or an empty directory.
func (b *Batch) Remove(path string) error {
	path = b.set.fixed(path)
	return b.change(path, "", opRemove, func() error { return b.set.byPath.remove(path) })
}

const opLink retry.Op = "link"

// change does something with the name path, and with also unless that is "", when all before is
// durable.
func (b *Batch) change(path, also string, op retry.Op, do func() error) error {
	return b.inPlace(path, op, func(s *fileWriter, at *place) error {
		s.result.outcome = holdfast.OutcomeWritten
		if at == nil {
			return do()
		}
		r := &replacement{pending: pending{result: s.result}, place: at, change: do, op: op}
		r.File, r.Renames = at.file(s.syncMode), true
		if op != opRemove {
			r.base = s.name.base
		}
		if also != "" {
			name, err := newName(also)
			if err != nil {
				return err
			}
			s.leaveDir()
			if _, err := s.enterDir(name.dir); err != nil {
				return err
			}
			r.also = b.place(s)
		}
		b.part.mu.Lock()
		b.part.renames = append(b.part.renames, r)
		b.part.mu.Unlock()
		return nil
	})
}

func (b *Batch) place(s *fileWriter) *place {
	b.part.mu.Lock()
	defer b.part.mu.Unlock()
	return b.part.placeLocked(s.dir)
}

// inPlace calls do with the directory of a path open, and with its place if names are made
// durable.
func (b *Batch) inPlace(path string, op retry.Op, do func(s *fileWriter, at *place) error) error {
	return b.give(path, func(s *fileWriter) {
		name, err := newName(path)
		if err == nil {
			err = b.set.handles.Begin(s.ctx)
		}
		if err != nil {
			s.refuse(op, err)
			return
		}
		defer b.set.handles.End()
		defer s.leaveDir()
		s.name = name
		s.tries, s.narrow, s.syncMode = b.set.tries(path), true, file
		s.result.attempts = 1
		if op, err := s.enterDir(name.dir); err != nil {
			s.refuse(op, err)
			return
		}
		var at *place
		if b.set.options.Policy.Sync.Mode != holdfast.SyncNever {
			at = b.place(s)
			s.setSyncMode()
		}
		if err := do(s, at); err != nil {
			s.refuse(op, err)
		}
	})
}

// leavesRename has a file leave its rename to the batch, unless each is durable by itself.
func (b *Batch) leavesRename(w *job) bool {
	if !b.part.inSteps {
		return false
	}
	w.later = &replacement{pending: pending{result: w.result}}
	b.part.mu.Lock()
	b.part.renames = append(b.part.renames, w.later)
	b.part.mu.Unlock()
	return true
}

// give puts a file into the part, and makes the part durable if it is full.
func (b *Batch) give(path string, put func(s *fileWriter)) error {
	s := fileWriters.Get().(*fileWriter)
	defer giveFileWriter(s)
	r := &record{path: path}
	s.job, s.own.result = &s.own, r
	s.files, s.ctx, s.part = b.set, context.Background(), &b.part
	return b.took(path, func() *record {
		s.era = b.set.era.Add(1)
		put(s)
		return r
	})
}

// took counts what put gives to the part.
func (b *Batch) took(path string, put func() *record) error {
	if err := b.set.enter(); err != nil {
		return batchError(path, err)
	}
	defer b.set.leave()
	b.step.RLock()
	if b.over {
		b.step.RUnlock()
		return batchError(path, errBatchOver)
	}
	r := put()
	_, err := r.returned()
	if r.err != nil && r.err.Op == string(retry.OpMkdir) && errors.Is(err, fs.ErrExist) {
		b.step.RUnlock()
		return err
	}
	b.mu.Lock()
	b.records = append(b.records, r)
	b.bytes += r.bytes
	full := b.fullLocked()
	b.mu.Unlock()
	b.step.RUnlock()
	if full {
		b.step.Lock()
		defer b.step.Unlock()
		if b.fullLocked() { // another call may have made it durable
			b.run()
		}
	}
	return err
}

func (b *Batch) fullLocked() bool {
	return len(b.records) >= b.set.options.Batch || b.bytes >= durable.MostBytesPerStep
}

// run makes durable what was given, and counts it. Nothing is given meanwhile.
func (b *Batch) run() {
	switch {
	case b.part.ctx.Err() != nil:
		b.dropKept()
	case len(b.part.written) > 0:
		b.release()
	default: // the first files get their names while the last are synced
		b.keeping.Lock()
		b.syncBehind()
		b.keeping.Unlock()
	}
	b.part.failed = nil
	if b.failed.N > 0 {
		b.part.failed = b.failed.Errs[0]
	}
	for i := range b.part.written {
		x := &b.part.written[i]
		x.Err = b.spoilt[x.result]
	}
	b.part.makeDurable()
	b.awaitKept()
	b.countAll()
}

// countAll counts what was given since the last time. It keeps few errors.
func (b *Batch) countAll() {
	for _, r := range b.records {
		b.totals.add(r.result())
		if r.err != nil {
			if b.failed.N++; len(b.failed.Errs) < errjoin.MostLines {
				b.failed.Errs = append(b.failed.Errs, r.err)
			}
		}
	}
	clear(b.records)
	clear(b.spoilt)
	b.records, b.bytes = b.records[:0], 0
}

// Commit makes all that was given durable, and ends the Batch. The Totals count each call of Write,
// Add, Link, Rename, Remove and Mkdir, and each Pending. If the error is nil all is done and, unless
// the policy's Sync is never, durable with its name; else its text is the totals and the
// first failures, in ten lines at most. A Pending that was not handed over makes it fail, and stays
// the caller's to discard. If ctx ends before, what is left is undone or reported as written.
func (b *Batch) Commit(ctx context.Context) (Totals, error) {
	if err := b.set.enter(); err != nil {
		return Totals{}, batchError("", err)
	}
	defer b.set.leave()
	b.step.Lock()
	defer b.step.Unlock()
	if b.over {
		return Totals{}, batchError("", errBatchOver)
	}
	b.part.ctx = ctx
	b.run()
	b.endLocked()
	b.failed.Head = b.totals.String()
	if n := b.open.Load(); n > 0 {
		return b.totals, errors.Join(fmt.Errorf("holdfast: commit: %d pending files of the batch were not committed; call Commit of each before", n), b.failed.Err())
	}
	return b.totals, b.failed.Err()
}

// Discard ends the Batch without more ado: what has no name yet is removed, and nothing more is made
// durable. After Commit it does nothing, so it may be deferred.
func (b *Batch) Discard() error {
	if err := b.set.enter(); err != nil {
		return nil // the Set's Close does it
	}
	defer b.set.leave()
	return b.abandon()
}

func (b *Batch) abandon() error {
	b.step.Lock()
	defer b.step.Unlock()
	if b.over {
		return nil
	}
	b.dropKept()
	b.part.abandon(errBatchOver)
	b.endLocked()
	return nil
}

func (b *Batch) endLocked() {
	b.over = true
	b.part.step.Close(b.set.closeErrseq)
	b.set.forget(b)
}

const errBatchOver = sys.Closed("holdfast: the batch was committed or discarded")

func batchError(path string, err error) error {
	return &Error{Path: path, Op: string(retry.OpOpen), Outcome: holdfast.OutcomeUntouched, Err: err}
}
