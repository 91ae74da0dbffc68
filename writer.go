package holdfast

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"unsafe"

	"github.com/holdfast-go/holdfast/internal/errjoin"
	"github.com/holdfast-go/holdfast/internal/dirent"
	"github.com/holdfast-go/holdfast/internal/spin"
)

// A Writer writes to a [File] under a [Policy]. Any number of goroutines may use
// it at once. The bytes of one Write stand together in the file, and the Writes
// of one goroutine keep their order. A flush ends at the end of a Write, unless the Write is large.
//
// Memory is bounded by twice the policy's Buffer; when the file is slower than
// the callers, Write waits. Otherwise no Write waits for another's flush or sync.
// Two exceptions: the policy waits (group, each), or a large Write is under way. A Write
// is large if it is larger than the buffer, or has 64 KiB or more, and each one is under sync=each: it bypasses memory.
// A policy that syncs by bytes lets the kernel have twice as many, and then flushes wait.
//
// Flushes and syncs by time of many Writers that come due together take turns: at most 64 on
// one file system are under way at once.
//
// Errors: a [WriteError] is not final: every call tries to go on at the exact byte,
// and returns an error while it can't. A [SyncError] is final. The next call returns
// what failed in the background, whichever call it is, in any goroutine.
//
// A panic of the File passes through the call that met it and ends the Writer: every
// later call returns an error that names it and is [ErrPanicked]. In a flush or sync by time, or below a
// WaitDurable whose context can end, it ends the program, as in any goroutine. The memory that Write is
// given must be there: who turns a fault into a panic ([debug.SetPanicOnFault]) must not recover and use the Writer.
//
// [New], [Create], [Append] and [OpenFile] make a Writer; the zero Writer refuses every call. A Writer must be
// closed. It starts goroutines and timers only while bytes wait, and none is left after Close. An idle one
// takes up to 2 KiB beside its file: when all is flushed, it lets go of its memory.
type Writer struct {
	// The lock guards all that follows it and fill. It is held for a few dozen instructions, and never over a call of
	// the file or a wait. docs/design/writer.md shows the states of a Writer, and who waits for whom.
	fill fill // with the lock one cache line, which is all that a Write of a few bytes touches
	mu   spin.Mutex

	// Set by New and never changed.
	policy Policy
	due    Due
	strip  int // so many bytes in memory start a flush
	large  int // a Write of more than this bypasses memory
	target target

	flush   flusher
	sync    syncer
	reports reports

	// Close has begun, lets nothing touch the file any more, and is done.
	isClosing, sealed, closed bool
	closeErr                  error
	background                sync.WaitGroup // flushes and syncs that no call makes
}

// New returns a Writer that writes to f under p, from the file's current position on. The
// Writer closes f in Close; if New fails, f stays open. It does not sync the directory of f;
// [Create] and [Append] do.
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
	// copies take. No more than hot gathers for an os.File: so much the cache of a CPU holds.
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
		device := sync.OnceValue(w.target.device)
		w.flush.timer.Init(w.due.Flush, device, w.flushDue)
		w.sync.timer.Init(w.due.Sync, device, w.syncDue)
	}
	return w, nil
}

// Write accepts p as the policy says.
//
// Where the policy waits for no sync, (len(p), nil) means that p is accepted and
// kept until it is written. With (0, err), p is not in the file. A large Write
// bypasses memory. With an error, n is how many of its bytes the kernel has taken.
//
// Where the policy waits (sync=group, sync=each), nil means that p is durable.
// An error with n > 0 means that n bytes are accepted but not known to be durable.
// Do not write them again: Sync or WaitDurable report what became of them.
//
// Write does not keep p.
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

// Enqueue accepts p and waits for no sync, whatever the policy, but for the bound of one that syncs
// by bytes (see [Writer]). It returns end, the offset behind p, for [Writer.WaitDurable]. On an error end is 0, and p is
// not accepted; only of a large p (see [Writer]) a first part may be in the file, as the Flushed of a [WriteError] says.
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

// readChunk is the least that ReadFrom reads at once, and mostEmpty how often in a row it reads
// nothing, as a bufio.Writer does.
const readChunk, mostEmpty = 32 * KiB, 100

// ReadFrom accepts all bytes of r until its end, as Writes of some KiB; Writes of
// other goroutines may come between them. Under sync=group and sync=each it waits
// once, at the end. It reads nothing if a call must return an error, and returns
// [io.ErrNoProgress] if r returns nothing again and again.
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

// accept accepts p when that may take more than a copy. It is called with the lock and returns without it.
func (w *Writer) accept(p []byte) (n int, end int64, err error) {
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

// settleLocked is called at each end of a flush, a bypass or a sync, however it ended. It keeps the Writer's promises of time
// and of bytes: the clocks run if bytes wait, and what is due by bytes is started. It may release the lock meanwhile.
func (w *Writer) settleLocked() {
	w.clocksLocked()
	w.openLocked()
	w.startLocked()
}

// clocksLocked has each clock run while bytes wait for it that it can still help, and stand still else.
func (w *Writer) clocksLocked() {
	w.flush.timer.Set((w.fill.pos > 0 || w.flush.stuck) && !w.sealed)
	switch {
	case w.sync.durable == w.writtenLocked() || w.reports.final != nil:
		w.sync.timer.Set(false)
	case !w.sync.leading || w.sync.age.Running(): // what came since the sync in flight began has a clock of its own
		w.sync.timer.Set(true)
	}
}

// openLocked computes how far Write may copy without a look at anything else. That is to the end of the strip, and never so
// far that a large Write fits. While a call must return an error or start a clock, it may not copy at all.
func (w *Writer) openLocked() {
	w.fill.limit = 0
	if w.isClosing || w.flush.stuck || w.flush.exclusive || w.reports.unreported != nil || w.reports.final != nil || w.fill.pos == 0 || !w.sync.age.Running() {
		return
	}
	w.fill.limit = 1 + min(w.fill.pos+w.large, w.strip-1, len(w.fill.buf)) // who fills the strip starts its flush
}

// startLocked starts, in the background, what is due by bytes: the flush of a strip that was filled during another one, and a
// sync. It releases the lock meanwhile: a go statement may wake a thread, which takes some µs and now and then some ms.
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

// Flush hands all bytes to the kernel that were accepted before the call, and waits for it. On nil,
// Flushed is at least what Written was then.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.refusalLocked(); err != nil {
		return err
	}
	return w.flushToLocked(w.writtenLocked())
}

// Written returns how many bytes were accepted. It may be called at any time and waits for nothing.
func (w *Writer) Written() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writtenLocked()
}

// Flushed returns how many bytes the kernel has taken: they survive the death of
// the process. It may be called at any time and waits for nothing.
func (w *Writer) Flushed() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flush.flushed
}

// Durable returns how many bytes a sync that succeeded has covered: they survive
// the death of the machine. It may be called at any time and waits for nothing.
func (w *Writer) Durable() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sync.durable
}

// CloseContext is Close that returns when ctx ends, with the cause of that. The Writer goes on closing, and
// accepts nothing more. What is durable then, Durable says; a Close waits for the rest. A panic of the File
// below a CloseContext whose context can end is one of a goroutine of the Writer's own.
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

// Close flushes all bytes that were accepted. It syncs unless
// the policy is sync=never, and closes the file. It tries each step even if an earlier
// one failed. It returns all their errors, and those of the background that no call has
// returned yet. What could not be flushed is lost with the Writer; the [WriteError] has
// the first lost byte.
//
// Calls that wait for memory return ErrClosed, and so does every later call; where the policy syncs by bytes, a call that
// waits for such a sync does so when that ends. A second
// Close waits for the first and returns the same. Close waits for calls that the kernel
// has not finished, however long that takes: [Writer.CloseContext] does not.
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
	w.reports.failing = nil // what fails now is lost: a failure of its own
	w.sync.hurry()
	w.settleLocked()
	w.wakeLocked()

	var flushErr, syncErr, closeErr error
	defer func() { // also if the file panics
		w.closeErr = errjoin.Join(w.reports.unreported, flushErr, syncErr, w.reports.final, closeErr)
		w.reportLocked(closeErr)
		w.closed = true
		w.flush.timer.Set(false)
		w.sync.timer.Set(false)
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

// lastSyncLocked makes what was flushed durable if the policy syncs. What failed to be flushed, another goroutine may be trying
// to flush again just now.
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

// sealLocked lets no other call of the file begin, and waits until those under way have ended.
func (w *Writer) sealLocked() {
	w.sealed = true
	for w.sync.leading || w.flush.flushing {
		w.flush.idle.Wait()
	}
}

// wakeLocked wakes all calls that wait for memory or for a flush: something has ended for good. Those that
// wait for a sync are woken by the leader of their batch.
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
		// What a panicked Write has taken is not known: no other Write may follow it.
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
// still flushes what was accepted, unless a Write has panicked, and closes the file.
func (w *Writer) poisonLocked(method string, cause any) {
	if w.reports.final == nil {
		w.reports.final = &panicError{method, w.target.path, w.sync.durable, cause}
		w.reportLocked(w.reports.final)
	}
	w.openLocked()
	w.wakeLocked()
}
