package holdfast

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"unsafe"

	"github.com/holdfast-go/holdfast/internal/deadline"
	"github.com/holdfast-go/holdfast/internal/dirent"
	"github.com/holdfast-go/holdfast/internal/errjoin"
	"github.com/holdfast-go/holdfast/internal/spin"
)

// A Writer writes to a [File] under a [Policy]. Any number of goroutines may use
// it at once. The bytes of one Write stand together in the file, and the Writes
// of one goroutine keep their order. A flush ends at the end of a Write, unless the
// Write is large.
//
// Memory is bounded by twice the policy's Buffer; when the file is slower than
// the callers, Write waits. Otherwise no Write waits for another's flush or sync, with two
// exceptions: the policy waits (group, each), or a large Write is under way. A Write is
// large if it is larger than the buffer, if it has 64 KiB or more, or under sync=each: it
// bypasses memory. Under a policy that syncs by Sync.Bytes and has no FlushEvery, flushes
// wait for a sync while the kernel holds twice Sync.Bytes unsynced.
//
// Flushes and syncs by time take turns: over all Writers, at most 64 flushes and 64 syncs
// on one file system run at once. No flush waits for a turn behind a sync, unless its policy
// makes it wait for syncs.
//
// Errors: a [WriteError] is not final: every call tries to continue at the exact byte,
// and returns an error while it can't. A [SyncError] is final. A failure in the background
// is returned by the next call, by any method and in any goroutine.
//
// A panic of the File passes through the call in which it occurred and ends the Writer:
// every later call returns an error that wraps [ErrPanicked]. In a flush or sync by time,
// or in a WaitDurable whose context can end, it ends the program, as in any goroutine. The
// memory given to Write must be readable: a caller that turns a fault into a panic
// ([runtime/debug.SetPanicOnFault]) must not recover and use the Writer.
//
// [New], [Create], [Append] and [OpenFile] make a Writer; the zero Writer refuses every call. A Writer must be
// closed. It runs goroutines and timers only while bytes wait, and none after Close. An idle Writer
// takes up to 2 KiB in addition to its file: when all bytes are flushed, it frees its blocks.
type Writer struct {
	// block      memory of up to Buffer bytes: Writes fill one while another is flushed
	// strip      the number of bytes in a block that starts a flush
	// bypass     a large Write, from the caller's slice to the file and not through a block
	// exclusive  a bypass is under way, and no other call accepts bytes
	// handoff    the mutex by which large Writes take turns
	// stuck      a flush failed: the bytes it left are written before newer ones
	// dirty      too many unsynced bytes in the kernel: a flush waits for a sync
	// batch      the calls that share one sync
	// lead       to flush and sync for a batch: one of its calls does
	// final      a failed sync or a panic: every later call returns it
	// sealed     no call of the file may begin any more

	// The lock guards fill and all fields after the lock. It is held for a few dozen instructions, and never during a
	// call of the file or a wait. docs/design/writer.md shows the states of a Writer and their waits.
	fill fill // in one cache line with the lock: a Write of a few bytes touches nothing else
	mu   spin.Mutex

	// Set by New and never changed.
	policy Policy
	due    Due
	strip  int
	large  int // a longer Write bypasses memory
	target target

	flush   flusher
	sync    syncer
	reports reports

	isClosing  bool // Close has begun
	sealed     bool
	closed     bool // Close has ended
	closeErr   error
	background sync.WaitGroup // flushes and syncs in goroutines of the Writer
}

// New returns a Writer that writes to f under p, starting at the file's current position.
// Close closes f; if New fails, f stays open. The Writer does not sync the directory of f;
// with [Create] and [Append] it does.
func New(f File, p Policy) (*Writer, error) {
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("holdfast: %w", err)
	}
	if osFile, ok := f.(*os.File); f == nil || ok && osFile == nil {
		return nil, errors.New("holdfast: the file is nil; open one first, or use Create or Append")
	}
	return newWriter(f, p, dirent.Entry{})
}

func newWriter(f File, p Policy, name dirent.Entry) (*Writer, error) {
	// The kernel copies a Write of direct bytes from the caller's slice in less time than two
	// copies take. A flush to an os.File starts at hot bytes: they fit into a CPU's cache.
	const direct, hot = 64 * KiB, 256 * KiB
	t, err := newTarget(f, p, name)
	if err != nil {
		return nil, err
	}
	w := &Writer{
		policy: p,
		due:    p.Due(),
		target: t,
		large:  int(min(p.Buffer, direct-1)),
	}
	w.strip = int(w.due.FlushBytes)
	if t.datasync { // an *os.File
		w.strip = min(w.strip, int(hot))
	}
	w.flush.idle.L, w.flush.space.L, w.flush.turn.free.L = &w.mu, &w.mu, &w.mu
	if w.due.Flush > 0 {
		flush := deadline.ForWrite
		if w.due.Dirty > 0 {
			flush = deadline.ForSync
		}
		w.flush.timer.Init(w.due.Flush, &w.target.device, flush, w.flushDue)
		w.sync.timer.Init(w.due.Sync, &w.target.device, deadline.ForSync, w.syncDue)
	}
	return w, nil
}

// Write accepts p under the policy.
//
// If the policy waits for no sync, (len(p), nil) means that p is accepted and
// kept until it is written. With (0, err), p is not in the file. A large Write
// bypasses memory: with an error, n is the number of its bytes that the kernel has.
//
// If the policy waits (sync=group, sync=each), nil means that p is durable. An error
// with n > 0 means that n bytes are accepted but not known to be durable. Do not write
// them again: Sync or WaitDurable report their fate.
//
// Write does not retain p.
func (w *Writer) Write(p []byte) (n int, err error) {
	if w.policy.Sync.Waits() {
		return w.writeDurable(p)
	}
	w.mu.Lock()
	if at := w.fill.pos; len(p) < w.fill.limit-at {
		copy(w.fill.buf[at:], p)
		w.fill.pos = at + len(p)
		w.fill.writes++
		w.mu.Unlock()
		return len(p), nil
	}
	n, _, err = w.accept(p)
	return n, err
}

// WriteString is Write for a string.
func (w *Writer) WriteString(s string) (n int, err error) {
	return w.Write(unsafe.Slice(unsafe.StringData(s), len(s)))
}

// Enqueue accepts p and returns end, the offset after p, for [Writer.WaitDurable]. It waits for no sync, under any
// policy, except one that syncs by bytes (see [Writer]). On an error end is 0 and p is not accepted; of a large p a first
// part may be in the file, up to the Flushed of the [WriteError].
func (w *Writer) Enqueue(p []byte) (end int64, err error) {
	w.mu.Lock()
	if at := w.fill.pos; len(p) < w.fill.limit-at {
		copy(w.fill.buf[at:], p)
		w.fill.pos = at + len(p)
		end = w.writtenLocked()
		w.fill.writes++
		w.mu.Unlock()
		return end, nil
	}
	_, end, err = w.accept(p)
	return end, err
}

// readChunk is the least size of ReadFrom's reads. mostEmpty is the number of empty reads in a row
// at which it gives up, as in bufio.
const readChunk, mostEmpty = 32 * KiB, 100

// ReadFrom accepts all bytes of r up to EOF, as Writes of 32 KiB or more; Writes of
// other goroutines may come between them. Under sync=group and sync=each it waits
// once, at the end. It reads nothing if the Writer has an error to return, and returns
// [io.ErrNoProgress] after 100 empty reads.
func (w *Writer) ReadFrom(r io.Reader) (n int64, err error) {
	if err := w.refusal(); err != nil {
		return 0, err
	}
	chunk := make([]byte, max(readChunk, min(w.policy.Buffer, 8*readChunk)))
	for empty := 1; ; empty++ {
		k, readErr := r.Read(chunk)
		if k > 0 {
			empty = 0
			w.mu.Lock()
			accepted, _, err := w.accept(chunk[:k])
			if n += int64(accepted); err != nil {
				return n, err
			}
		}
		switch {
		case readErr == io.EOF && n > 0 && w.policy.Sync.Waits():
			return n, w.Sync()
		case readErr == io.EOF:
			return n, nil
		case readErr != nil:
			return n, readErr
		case empty == mostEmpty:
			return n, io.ErrNoProgress
		}
	}
}

func (w *Writer) acceptAmongOthers(p []byte) (n int, end int64, err error) {
	defer w.mu.Unlock()
	if len(p) > w.large {
		if n, end, err = w.bypassLocked(p); err != nil {
			return n, 0, err
		}
		return n, end, nil
	}
	if err := w.takeLocked(p); err != nil {
		return 0, 0, err
	}
	end = w.writtenLocked()
	w.flushStripLocked()
	return len(p), end, nil
}

// takeLocked waits until memory has room for p, and copies it whole.
func (w *Writer) takeLocked(p []byte) error {
	for waits := int64(1); ; {
		if err := w.refusalLocked(); err != nil {
			return err
		}
		need := w.fill.pos + len(p)
		switch {
		case w.flush.exclusive:
			w.awaitBypassLocked()
		case w.flush.stuck || need > int(w.policy.Buffer):
			w.reports.waits += waits
			waits = 0
			if err := w.makeRoomLocked(len(p)); err != nil {
				return err
			}
		case need > len(w.fill.buf):
			w.growLocked(need)
		default:
			w.fill.put(p)
			if len(p) > 0 {
				w.sync.age.Begin()
			}
			w.clocksLocked()
			w.openLocked()
			return nil
		}
	}
}

// settleLocked is called at each end of a flush, a bypass or a sync, also a failed one. It keeps the policy's limits:
// the clocks run while bytes wait, and work due by bytes is started. It may release the lock meanwhile.
func (w *Writer) settleLocked() {
	w.clocksLocked()
	w.openLocked()
	w.startLocked()
}

// clocksLocked starts the clocks of flushes and syncs, or stops one that has nothing to do.
func (w *Writer) clocksLocked() {
	w.flush.timer.Set((w.fill.pos > 0 || w.flush.stuck) && !w.sealed)
	switch {
	case w.sync.durable == w.writtenLocked() || w.reports.final != nil:
		w.sync.timer.Set(false)
	case !w.sync.leading || w.sync.age.Running(): // bytes newer than the sync in flight have an age of their own
		w.sync.timer.Set(true)
	}
}

// openLocked computes fill.limit: the end of the strip, and never room for a large Write. It is 0 while the next Write
// must return an error, wait, or start a clock.
func (w *Writer) openLocked() {
	w.fill.limit = 0
	if w.isClosing || w.flush.stuck || w.flush.exclusive || w.reports.unreported != nil || w.reports.final != nil || w.fill.pos == 0 || !w.sync.age.Running() {
		return
	}
	w.fill.limit = 1 + min(w.fill.pos+w.large, w.strip-1, len(w.fill.buf)) // the Write that fills the strip starts its flush
}

// startLocked starts, in the background, work due by bytes: the flush of a strip that was filled during another flush, and
// a sync. It releases the lock meanwhile: a go statement may wake a thread, which takes µs and rarely ms.
func (w *Writer) startLocked() {
	if w.isClosing || w.reports.final != nil {
		return
	}
	if w.stripLocked() && !w.flush.exclusive && !w.dirtyLocked() {
		w.flushInBackgroundLocked()
	}
	if w.due.SyncNow(w.flush.flushed-w.sync.durable) && !w.sync.leading && !w.sync.byBytes {
		w.sync.byBytes = true
		w.goLocked(w.syncBytes)
	}
}

// goLocked runs f in a goroutine that Close waits for.
func (w *Writer) goLocked(f func()) {
	w.background.Add(1)
	w.mu.Unlock()
	go func() {
		defer w.background.Done()
		f()
	}()
	w.mu.Lock()
}

func (w *Writer) writtenLocked() int64 { return w.fill.base + int64(w.fill.pos) }

// Flush writes all bytes accepted before the call to the file. On nil, Flushed is at least the value of
// Written at the call.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.refusalLocked(); err != nil {
		return err
	}
	return w.flushToLocked(w.writtenLocked())
}

// Written returns the number of accepted bytes. It may be called at any time and waits for nothing.
func (w *Writer) Written() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writtenLocked()
}

// Flushed returns the number of bytes that the kernel has: they survive the death of
// the process. It may be called at any time and waits for nothing.
func (w *Writer) Flushed() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flush.flushed
}

// Durable returns the number of bytes that a successful sync has covered: they survive
// the death of the machine. It may be called at any time and waits for nothing.
func (w *Writer) Durable() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sync.durable
}

// CloseContext is Close that returns when ctx ends, with the context's cause. The Writer goes on closing and
// accepts nothing more; Durable returns the progress, and a later Close waits for the end. If the context can end,
// a panic of the File occurs in a goroutine of the Writer and ends the program.
func (w *Writer) CloseContext(ctx context.Context) error {
	if ctx.Done() == nil {
		return w.Close()
	}
	closed := make(chan error, 1)
	go func() {
		defer close(closed) // also if the file ends the goroutine
		closed <- w.Close()
	}()
	select {
	case err, ok := <-closed:
		if !ok {
			return w.Err()
		}
		return err
	case <-ctx.Done():
		return fmt.Errorf("holdfast: close %sgoes on in the background: %w", inPath(w.target.path), context.Cause(ctx))
	}
}

// Close flushes all accepted bytes, syncs unless the policy is sync=never, and closes the
// file. It tries each step even if an earlier one failed. It joins their errors and the
// background failures that no call has returned yet. Bytes that could not be flushed are
// lost with the Writer; the [WriteError] has the offset of the first.
//
// Calls that wait for memory return ErrClosed, and so does every later call. A call that
// waits for a sync by bytes returns ErrClosed when that sync ends. A second Close waits for
// the first and returns the same error. Close waits for system calls in flight without a
// limit of time: [Writer.CloseContext] does not.
func (w *Writer) Close() (err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.target.file == nil {
		return errNotMade
	}
	if w.isClosing {
		for !w.closed {
			w.flush.idle.Wait()
		}
		return w.closeErr
	}
	w.isClosing = true
	w.reports.failing = nil // a flush that fails from now on loses bytes: a new failure
	w.sync.hurry()
	w.settleLocked()
	w.wakeLocked()

	var flushErr, syncErr, closeErr error
	defer func() { // also if the file panics
		w.closeErr = errjoin.Join(w.reports.unreported, flushErr, syncErr, w.reports.final, closeErr)
		w.reportLocked(closeErr)
		w.closed = true
		w.flush.timer.Release()
		w.sync.timer.Release()
		w.flush.idle.Broadcast()
		err = w.closeErr
	}()
	defer func() {
		w.sealLocked()
		w.reports.systemCalls++
		w.callFileLocked("Close", func() {
			w.background.Wait()
			w.sync.await()
			closeErr = w.target.close()
		})
	}()
	for w.flush.turn.taken {
		w.flush.idle.Wait()
	}
	flushErr = w.flushToLocked(w.writtenLocked())
	syncErr = w.lastSyncLocked()
	return nil
}

// lastSyncLocked makes the flushed bytes durable if the policy syncs. After a failed flush another goroutine may be
// flushing again: it waits for that.
func (w *Writer) lastSyncLocked() (err error) {
	for w.policy.Sync.Mode != SyncNever && w.reports.final == nil && (w.flush.flushing || !w.sync.covers(w.flush.flushed)) {
		if w.flush.flushing {
			w.flush.idle.Wait()
		} else {
			err = w.syncToLocked(w.flush.flushed)
		}
	}
	return err
}

// sealLocked forbids new calls of the file and waits for the calls in flight.
func (w *Writer) sealLocked() {
	w.sealed = true
	for w.sync.leading || w.flush.flushing {
		w.flush.idle.Wait()
	}
}

// wakeLocked wakes all calls that wait for memory or for a flush, because the Writer closes or has failed for
// good. The leader of a batch wakes the calls that wait for a sync.
func (w *Writer) wakeLocked() {
	w.flush.idle.Broadcast()
	w.flush.space.Broadcast()
	w.flush.turn.free.Broadcast()
}

// callFileLocked releases the lock while call uses the file. If call panics, or ends its
// goroutine, the Writer is poisoned, and callFileLocked does the same, with the lock.
func (w *Writer) callFileLocked(method string, call func()) {
	w.mu.Unlock()
	returned := false
	defer func() {
		w.mu.Lock()
		if returned {
			return
		}
		// It is not known how many bytes a panicked Write wrote: no other Write may follow it.
		w.sealed = w.sealed || method == "Write"
		if cause := recover(); cause != nil {
			w.poisonLocked(method, cause)
			panic(cause)
		}
		w.poisonLocked(method, "it called runtime.Goexit")
	}()
	call()
	returned = true
}

// poisonLocked makes every later call return an error that names the panic. Close
// still flushes the accepted bytes, unless a Write has panicked, and closes the file.
func (w *Writer) poisonLocked(method string, cause any) {
	if w.reports.final == nil {
		w.reports.final = &panicError{method, w.target.path, w.sync.durable, cause}
		w.reportLocked(w.reports.final)
	}
	w.openLocked()
	w.wakeLocked()
}
