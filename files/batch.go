package files

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/retry"
)

// lookAhead bounds the files that a WriteAll has taken from its iterator and not
// finished, for each possible worker. Their bytes are bounded by lookAheadBytes,
// unless one file holds more.
const (
	lookAhead      = 32
	mostAhead      = 128
	lookAheadBytes = 8 << 20
)

// nameBlock is the memory that the names of some files of a batch share.
const nameBlock = 512

// Slots, one for each file that is ahead, are made in blocks: as many as there are,
// but within these.
const (
	fewestSlots = 4
	mostSlots   = 32
)

// mostKept bounds the files, and the directories, for which a batch leaves memory to the next.
const mostKept = 1024

// WriteAll writes the files that an iterator gives, each as [Set.WriteFile] does, by
// several goroutines. The iterator runs in the caller's goroutine. It pauses while 32
// files for each worker, or 128 files, or files with 8 MiB, wait. The results are in its order; the error joins theirs, and the cause if ctx ended.
// If it is nil every file is written and, if the policy's Sync is not never, durable
// with its name.
//
// Files are finished in any order, but files of one path in the order in which they
// were given. Under sync=close, sync=group and a period all files are made durable
// together: at the end, and whenever [Options].Batch files or 256 MiB have come together. That
// is many times faster than one by one. Replace renames its files then. Until
// then other calls write to the file that has the name, and the rename replaces that too. So the
// iterator, or a goroutine that it waits for, may write a path that it has given. An only
// file is synced by itself, which is cheaper for one. So the first file waits until
// there is a second, or the iterator has ended. If the sync of a file system
// fails all files of that part on it are uncertain. Replace then keeps the old files.
//
// If ctx ends, WriteAll asks for no more files and returns after the system calls
// under way. A file that was not begun is untouched; a file written and not yet durable is reported
// as written, with an error. If the iterator panics, the files that it gave before are finished or
// left as if ctx had ended. Any number of goroutines may call WriteAll.
func (f *Set) WriteAll(ctx context.Context, files iter.Seq[Write]) (*Results, error) {
	if err := f.enter(); err != nil {
		return &Results{}, err
	}
	defer f.leave()
	b := newBatch(ctx, f)
	defer b.end()
	for file := range files {
		if !b.give(file) {
			break
		}
	}
	if b.first != nil {
		b.writeOnly(b.first)
	} else {
		b.drain()
		b.part.makeDurable()
	}
	if b.stopped != nil {
		return b.results, errors.Join(b.stopped, b.results.Err())
	}
	return b.results, b.results.Err()
}

// WriteEach writes the same data to each path as [Set.WriteAll] does, and has a result for
// every one of them. A file that was not begun, because ctx ended or the Set is closed, is
// untouched, with the cause and no attempt. The error is as WriteAll's.
func (f *Set) WriteEach(ctx context.Context, paths []string, data []byte, mode Mode) (*Results, error) {
	results, err := f.WriteAll(ctx, func(yield func(Write) bool) {
		for _, path := range paths {
			if !yield(Write{Path: path, Data: data, Mode: mode}) {
				return
			}
		}
	})
	cause := context.Cause(ctx)
	if cause == nil {
		cause = err // the Set is closed, or all were begun
	}
	for _, path := range paths[results.Len():] {
		r := results.add()
		r.path = path
		r.fail(retry.OpOpen, cause, holdfast.OutcomeUntouched)
	}
	return results, err
}

// A batch is a WriteAll under way. The caller's goroutine gives files to workers, and
// writes with them when it has none to give for a while. It makes what they wrote
// durable in steps, while they rest.
type batch struct {
	files   *Set
	ctx     context.Context
	results *Results
	stopped error           // the cause why ctx ended, if that left anything undone
	first   *job            // until there is another or no other
	made    int             // how many slots there are
	names   strings.Builder // see sys.NameIn
	part    part            // since the last step
	workers sync.WaitGroup

	mu      sync.Mutex
	work    sync.Cond // workers wait for files
	room    sync.Cond // the giver waits for room, or for all to be finished
	free    *job      // slots that hold no file
	oldest  *job      // the queue of the files that no worker has
	newest  *job
	queued  int  // how many these are
	given   int  // files given and not finished
	bytes   int  // of these
	started int  // workers
	idle    int  // workers that wait and were not woken
	coming  int  // workers that were started or woken and have not yet looked for a file
	enough  int  // the giver waits until at most this number are given; -1 if it does not wait
	ended   bool // no more will come
}

// batches is memory that calls have left for those to come. It holds nothing of theirs: it is
// cleared before it is put there.
var batches = sync.Pool{New: func() any {
	b := new(batch)
	b.part.step.SyncAll, b.part.step.Most = b.part.syncAll, durable.Waiters
	b.part.step.Ended = func() error { return context.Cause(b.part.ctx) }
	return b
}}

func newBatch(ctx context.Context, f *Set) *batch {
	b := batches.Get().(*batch)
	b.files, b.ctx = f, ctx
	b.results = &Results{}
	b.work.L, b.room.L = &b.mu, &b.mu
	b.enough = -1
	b.part.init(ctx, f)
	return b
}

// end lets the workers end, with the iterator's unfinished job if it panicked, and
// leaves the batch's memory to the next one.
func (b *batch) end() {
	b.mu.Lock()
	b.ended = true
	b.work.Broadcast()
	b.mu.Unlock()
	b.workers.Wait()
	if b.first != nil { // it was never begun
		b.putBack(b.first)
	}
	b.part.abandon(errIteratorEnded)
	b.part.step.Close(b.files.closeErrseq)
	// It is like a new one now, but for its memory. All slots are free.
	b.files, b.ctx, b.results, b.stopped, b.first = nil, nil, nil, nil, nil
	b.names.Reset()
	b.started, b.idle, b.coming, b.ended = 0, 0, 0, false
	p := &b.part
	p.reset()
	clear(p.given)
	p.files, p.ctx, p.step.Disk, p.step.Names, p.failed = nil, nil, nil, nil, nil
	if max(cap(p.written), cap(p.renames)) > mostKept {
		p.written, p.renames, p.places, p.replaced = nil, nil, nil, nil
	}
	batches.Put(b)
}

var errIteratorEnded = errors.New("the iterator did not end as it should")

// give hands a file to the workers, or waits for room first. It reports whether
// more may be given.
func (b *batch) give(file Write) bool {
	if w := b.first; w != nil {
		b.first = nil
		b.submit(w)
	}
	w := b.slot(len(file.Data))
	w.result = b.results.add()
	switch {
	case !w.prepare(file, &b.names, nameBlock):
		b.putBack(w)
	case b.part.inSteps && b.results.Len() == 1:
		b.first = w
	default:
		b.submit(w)
	}
	if b.ctx.Err() != nil {
		b.stopped = context.Cause(b.ctx)
	}
	return b.stopped == nil
}

// submit takes a file into the present part, or the next one if that is full.
func (b *batch) submit(w *job) {
	p := &b.part
	if p.inSteps && (p.count >= b.files.options.Batch || p.bytes >= durable.MostBytesPerStep) {
		b.drain()
		b.part.makeDurable()
	}
	p.count++
	p.bytes += int64(len(w.data))
	b.queueUp(w)
	b.push(w)
}

// writeOnly writes the only file of a batch, which is made durable by itself.
func (b *batch) writeOnly(w *job) {
	s := fileWriters.Get().(*fileWriter)
	s.files, s.ctx, s.era = b.files, b.ctx, b.part.era
	s.writeAlone(w)
	giveFileWriter(s)
}

// queueUp takes the file's place in the queue of its path.
//
// A replacement takes none before its rename. The batch renames in a step, and between two steps it
// waits for its iterator, which may wait for another call for the path. A file of another mode
// comes after the replacements of its path, so these are renamed first.
func (b *batch) queueUp(w *job) {
	if w.mode == Replace && b.part.inSteps {
		w.later = &replacement{pending: pending{result: w.result}}
		b.part.renames = append(b.part.renames, w.later)
		return
	}
	if b.part.replaces(w.name.path) {
		b.drain()
		b.part.makeDurable()
	}
	b.files.turns.Join(keyed.Key{Path: w.name.path}, &w.ticket)
}

// slot returns room for a file of this number of bytes.
func (b *batch) slot(bytes int) *job {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.given == min(lookAhead*b.mostWorkersLocked(), mostAhead) ||
		b.given > 0 && b.bytes+bytes > lookAheadBytes {
		b.awaitLocked(b.given / 2)
	}
	if b.free == nil {
		block := make([]job, min(max(b.made, fewestSlots), mostSlots))
		for i := range block {
			b.putBackLocked(&block[i])
		}
		b.made += len(block)
	}
	w := b.free
	b.free, w.next = w.next, nil
	return w
}

// awaitLocked waits until at most enough files are given and not finished.
func (b *batch) awaitLocked(enough int) {
	for b.given > enough {
		b.enough = enough
		b.room.Wait()
	}
	b.enough = -1
}

// putBack gives a slot back that was not used.
func (b *batch) putBack(w *job) {
	b.mu.Lock()
	b.putBackLocked(w)
	b.mu.Unlock()
}

func (b *batch) putBackLocked(w *job) {
	*w = job{next: b.free, memory: w.memory}
	b.free = w
}

// fewFiles is the number of files that the giver writes itself before it starts a worker, unless
// they wait for the disk. Many batches are no longer, and to wake another thread takes as
// long as to write some files. With Workers of 1 it writes all of them.
const fewFiles = 4

// push queues a file for the workers, and sees that one will work on it. Starting
// one more for a single file is not worth it. A worker may finish its own file
// sooner, or the giver may write this one.
func (b *batch) push(w *job) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.newest == nil {
		b.oldest = w
	} else {
		b.newest.next = w
	}
	b.newest = w
	b.queued++
	b.given++
	b.bytes += len(w.data)
	switch {
	case (b.results.Len() <= fewFiles || b.files.options.Workers == 1) && b.started == 0 && !b.waitsLocked():
		b.workLocked()
	case b.idle > 0:
		b.idle--
		b.coming++
		b.work.Signal()
	case b.started == 0, b.queued-b.coming > 1 && b.started < b.mostWorkersLocked():
		b.started++
		b.coming++
		b.workers.Add(1)
		go b.run()
	}
}

// waitsLocked reports whether files are synced by themselves.
func (b *batch) waitsLocked() bool {
	return b.files.options.Policy.Sync.Mode == holdfast.SyncEach || b.part.waits.Load()
}

// mostWorkersLocked returns how many workers there may be. Workers that wait
// for the disk need no processor.
func (b *batch) mostWorkersLocked() int {
	if b.waitsLocked() {
		return max(durable.Waiters, b.files.options.Workers)
	}
	return b.files.options.Workers
}

// run is a worker.
func (b *batch) run() {
	defer b.workers.Done()
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		b.coming--
		b.workLocked()
		if b.ended {
			return
		}
		b.idle++
		b.work.Wait()
	}
}

// workLocked writes the files of the queue until there are no more.
func (b *batch) workLocked() {
	if b.oldest == nil {
		return
	}
	s := fileWriters.Get().(*fileWriter)
	s.files, s.ctx, s.era, s.part = b.files, b.ctx, b.part.era, &b.part
	for b.oldest != nil {
		w := b.oldest
		b.oldest, w.next = w.next, nil
		if b.oldest == nil {
			b.newest = nil
		}
		b.queued--
		b.mu.Unlock()
		s.write(w)
		b.mu.Lock()
		b.given--
		b.bytes -= len(w.data)
		b.putBackLocked(w)
		if b.given <= b.enough {
			b.room.Signal()
		}
	}
	giveFileWriter(s)
}

// drain waits until no worker has anything to do. It is one of them if there may be
// more than there are.
func (b *batch) drain() {
	b.mu.Lock()
	if b.started < b.mostWorkersLocked() {
		b.workLocked()
	}
	b.awaitLocked(0)
	b.mu.Unlock()
}
