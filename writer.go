package holdfast

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/holdfast-go/holdfast/internal/age"
	"github.com/holdfast-go/holdfast/internal/deadline"
	"github.com/holdfast-go/holdfast/internal/distinct"
	"github.com/holdfast-go/holdfast/internal/entry"
	"github.com/holdfast-go/holdfast/internal/notify"
	"github.com/holdfast-go/holdfast/internal/reuse"
	"github.com/holdfast-go/holdfast/internal/spin"
)

// A Writer writes to a [File] under a [Policy]. Any number of goroutines may use
// it at once. The bytes of one Write stand together in the file, and the Writes
// of one goroutine keep their order.
//
// Memory is bounded by twice the policy's Buffer; when the file is slower than
// the callers, Write waits. Otherwise no Write waits for another's flush or sync.
// Two exceptions: the policy waits (group, each), or a large Write is under way. A Write
// is large if it is larger than the buffer, or has 64 KiB or more: it bypasses memory.
// A policy that syncs by bytes lets the kernel have twice as many, and then flushes wait.
//
// An idle Writer takes up to 2 KiB beside its file: when all is flushed, the garbage collector
// may take its memory. That of Lanes stays until the last is closed.
//
// Errors: a [WriteError] is not final: every call tries to go on at the exact byte,
// and returns an error while it can't. A [SyncError] is final. The next call returns
// what failed in the background, whichever call it is, in any goroutine.
//
// A panic of the File passes through the call that met it and ends the Writer: every
// later call returns an error that names it. In a flush or sync by time, or below a
// WaitDurable whose context can end, it ends the program, as in any goroutine.
//
// A Writer must be closed. It starts goroutines and timers only while bytes
// wait, and none is left after Close.
type Writer struct {
	// These and mu are one cache line, and all that a Write of a few bytes touches.
	// The lock mu guards them, and everything below except what New sets.
	//
	// The next byte goes to buf[pos]. Write may copy up to limit without a look at
	// anything else; -1 makes every Write look. At need buf grows up to a strip and
	// its spill. When that is not enough it becomes a ring of two blocks (ring.go).
	pos, limit int
	buf        []byte
	writes     int64
	mu         spin.Mutex

	// Set by New and never changed.
	policy Policy
	block  int // policy.Buffer
	strip  int // the number of waiting bytes that starts a flush: policy.FlushBytes, or the block, or less (see New)
	large  int // a Write of more than this bypasses memory
	target target
	began  time.Time // when the first byte came into memory; filled counts from it

	// laneLimit bounds a Lane's lock-free fast path; 0 disables it. The same for
	// owners that rely on the other side's fence is fencedLimit, which stays 0 without
	// one. Both are read without mu.
	laneLimit, fencedLimit atomic.Int32
	trouble                bool // a call must return an error before it may accept bytes

	lap              int64 // the offset of buf[0]: the next byte's is lap+pos; in a ring what is flushed may lie before it
	flushed, durable int64 // offsets; flushed ≤ lap+pos, durable ≤ flushed
	memory           reuse.Memory
	room             int // how many bytes memory may hold, less the lanes' share
	lanes            []*Lane

	// flushing is set while one goroutine writes to the file. While a Write bypasses
	// memory, exclusive is set and no call accepts bytes. When either ends, idle wakes
	// the waiters. Calls that need room wait for space: see makeRoomLocked.
	flushing, exclusive bool
	stuck               bool // the last flush failed, and memory still holds its bytes
	growing             bool // a goroutine takes memory
	nameless            bool // the file's directory entry is not durable yet
	leading             bool // a goroutine leads group commit
	idle, space         spin.Cond
	bypass              handoff
	heldUp              int           // how many calls wait for exclusive to end
	merging             int           // how many calls merge all lanes; no other call takes room meanwhile
	firstFlush, filled  time.Duration // how long the first flush took; when the last strip was full
	slow, wasSlow       bool          // the last strip, and the one before it, took longer than fastFill
	full                int64         // the end of the last
	relay               spin.Relay    // decides who flushes it
	looking             bool          // a goroutine that needs room does not park: see lookForRoomLocked

	unreported error                // what failed in the background and no call has returned
	failing    error                // the last write's, until one works
	final      error                // a failed sync
	failures   *notify.Queue[error] // see OnError

	// Close has begun, lets nothing touch the file any more, and is done.
	isClosing, sealed, closed bool
	closeErr                  error

	flushTimer, syncTimer deadline.Timer
	flusher, syncer       worker
	background            sync.WaitGroup
	registered            bool        // RegisterBarrier was called
	barrier               atomic.Bool // lanes may rely on membarrier; set without the lock

	commit               *commit // see commitsLocked
	age                  age.Clock
	counts               *counts // see countsLocked; these two and firstFlush are counted without it
	flushes, systemCalls int64
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
	return newWriter(f, p, entry.Entry{})
}

func newWriter(f File, p Policy, name entry.Entry) (*Writer, error) {
	// The kernel copies a Write of direct bytes from the caller's slice in less time than two
	// copies take. No more than hot gathers for an os.File: so much the cache of a CPU holds.
	const direct, hot = 64 * KiB, 256 * KiB
	t, err := newTarget(f, p, name)
	if err != nil {
		return nil, err
	}
	w := &Writer{
		policy: p,
		target: t,
		block:  int(p.Buffer),
		strip:  int(cmp.Or(p.FlushBytes, p.Buffer)),
		large:  int(min(p.Buffer, direct-1)),
		room:   int(2 * p.Buffer),
		slow:   true,
	}
	if t.datasync { // an *os.File
		w.strip = min(w.strip, int(hot))
	}
	w.idle.L, w.space.L, w.bypass.free.L = &w.mu, &w.mu, &w.mu
	w.flusher.run, w.syncer.run = (*Writer).runFlusher, (*Writer).runSyncer
	// A byte that is due for a sync must not wait in memory for an earlier sync.
	if every := deadline.Shortest(p.FlushEvery, p.Sync.Every); every > 0 {
		w.flushTimer.Init(every, func() { w.due(&w.flusher) })
		w.syncTimer.Init(p.Sync.Every, func() { w.due(&w.syncer) })
	}
	w.limit = -1 // the first byte starts the clocks
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
	if debug.SetPanicOnFault(false) {
		// A copy from p may panic, which must not happen here, with the lock: a defer
		// would cost every Write some ns.
		debug.SetPanicOnFault(true)
		return w.accept(p)
	}
	w.mu.Lock()
	if at := w.pos; len(p) <= w.limit-at {
		copy(w.buf[at:], p)
		w.pos = at + len(p)
		w.writes++
		w.mu.Unlock()
		return len(p), nil
	}
	n, _, err = w.enqueueLocked(p)
	return n, err
}

// WriteString is Write for a string.
func (w *Writer) WriteString(s string) (n int, err error) {
	return w.Write(unsafe.Slice(unsafe.StringData(s), len(s)))
}

// Enqueue accepts p and waits for no sync, whatever the policy, but for the bound of one that syncs
// by bytes (see [Writer]). It returns end, the offset behind p, for [Writer.WaitDurable]. On an error p is not accepted; only if p
// is large (see [Writer]), a first part may be in the file, up to end.
func (w *Writer) Enqueue(p []byte) (end int64, err error) {
	faults := debug.SetPanicOnFault(false)
	if faults {
		debug.SetPanicOnFault(true) // see Write
	}
	w.mu.Lock()
	if at := w.pos; len(p) <= w.limit-at && !faults {
		copy(w.buf[at:], p)
		w.pos = at + len(p)
		end = w.writtenLocked()
		w.writes++
		w.mu.Unlock()
		return end, nil
	}
	_, end, err = w.enqueueLocked(p)
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
	if _, err := w.writeEach(nil); err != nil { // it only returns what a call must return
		return 0, err
	}
	chunk := make([]byte, max(readChunk, min(w.policy.Buffer, 8*readChunk)))
	for empty := 1; ; empty++ {
		k, readErr := r.Read(chunk)
		if k > 0 {
			empty = 0
			accepted, err := w.accept(chunk[:k])
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

// accept is Enqueue, but returns how much of p was accepted.
func (w *Writer) accept(p []byte) (n int, err error) {
	w.mu.Lock()
	n, _, err = w.enqueueLocked(p)
	return n, err
}

// enqueueLocked accepts p when that needs more than a copy, and unlocks.
func (w *Writer) enqueueLocked(p []byte) (n int, end int64, err error) {
	defer w.mu.Unlock()
	if len(p) > w.large {
		n, err = w.bypassLocked(p)
		return n, w.writtenLocked(), err
	}
	err = w.takeLocked(p)
	end = w.writtenLocked()
	if err == nil {
		n = len(p)
		w.flushFullLocked()
	}
	return n, end, err
}

// takeLocked waits until memory has room for p, and copies it whole.
func (w *Writer) takeLocked(p []byte) error {
	for waits := int64(1); ; waits = 0 {
		if err := w.refusalLocked(); err != nil {
			return err
		}
		if w.merging > 0 {
			w.idle.Wait()
			continue
		}
		if w.readyLocked(len(p)) {
			if w.isRingLocked() || len(p) <= len(w.buf)-w.pos {
				break
			}
			w.growLocked(w.pos + len(p))
			continue
		}
		w.countsLocked().Waits += waits
		if err := w.makeRoomLocked(len(p)); err != nil {
			return err
		}
	}
	w.putCallersLocked(p)
	w.writes++
	return nil
}

// refusalLocked returns why no call may go on, and reports a failure of the
// background for the first and only time.
func (w *Writer) refusalLocked() error {
	if w.isClosing {
		return ErrClosed
	}
	if err := w.unreported; err != nil {
		w.unreported = nil
		w.openLocked()
		if w.final != nil {
			err = errors.Join(err, w.final)
		}
		return err
	}
	return w.final
}

// putLocked copies p into memory, which has room for it, and starts the clocks of
// the policy's time bounds. The caller calls openLocked.
func (w *Writer) putLocked(p []byte) {
	if len(p) > 0 {
		w.armLocked()
		if w.began.IsZero() {
			w.began = w.age.Oldest()
		}
	}
	for len(p) > 0 {
		n := copy(w.buf[w.pos:], p)
		w.pos += n
		p = p[n:]
		w.wrapLocked()
	}
}

func (w *Writer) armLocked() {
	w.age.Begin()
	w.flushTimer.Arm()
	w.syncTimer.Arm()
}

// openLocked computes how far Write may copy without a look at anything else. That is to
// the end of the strip or of the room, and never so far that a large Write fits. While a call
// must return an error or start a clock, it may not copy at all.
func (w *Writer) openLocked() {
	trouble := w.isClosing || w.stuck || w.unreported != nil || w.final != nil
	open := !trouble && !w.exclusive && w.block > 0 && w.flushTimer.Running() && w.syncTimer.Running() && w.age.Running()
	w.openLanesLocked(open && len(w.lanes) > 0, trouble)
	if !open || w.merging > 0 {
		w.limit = -1
		return
	}
	w.wrapLocked()
	rest := w.strip - int(w.writtenLocked()%int64(w.strip))
	if w.strip < w.block {
		rest-- // the Write that fills the strip starts its flush; a full buffer waits for the next
	}
	w.limit = w.pos + min(max(0, w.freeLocked()), rest, len(w.buf)-w.pos, w.large)
}

// freeLocked returns how many more bytes memory may hold. It is negative when a
// new Lane has taken its share from a full ring.
func (w *Writer) freeLocked() int {
	return w.room - int(w.writtenLocked()-w.flushed)
}

// readyLocked reports whether n bytes may be put now.
func (w *Writer) readyLocked(n int) bool {
	return !w.stuck && !w.exclusive && n <= w.freeLocked()
}

func (w *Writer) writtenLocked() int64 { return w.lap + int64(w.pos) }

// Flush hands all bytes to the kernel that were accepted before the call, those of Lanes
// included, and waits for it. On nil, Flushed is at least what Written was then.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.refusalLocked(); err != nil {
		return err
	}
	return w.flushAllLocked()
}

// Written returns how many bytes were accepted. A Lane's bytes count when they
// are merged. It may be called at any time and waits for nothing.
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
	return w.flushed
}

// Durable returns how many bytes a sync that succeeded has covered: they survive
// the death of the machine. It may be called at any time and waits for nothing.
func (w *Writer) Durable() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.durable
}

// fullLocked returns the offset of the end of the last full strip.
func (w *Writer) fullLocked() int64 {
	if w.block == 0 {
		return math.MinInt64
	}
	written := w.writtenLocked()
	return written - written%int64(w.strip)
}

// noteLocked keeps what failed in the background for the next call. If a failure repeats
// the one before, a call has returned it, or it is kept already. Every call returns a
// failed sync.
func (w *Writer) noteLocked(err error) {
	if failed, ok := err.(*WriteError); ok && !failed.again && w.unreported == nil {
		w.unreported = err
		w.openLocked()
	}
}

// due runs a worker because its deadline has passed: in the timer's goroutine, which has nothing
// else to do.
func (w *Writer) due(k *worker) {
	w.mu.Lock()
	k.due, k.late = true, k.running
	w.relay.Stop()
	starts := w.startsLocked(k)
	w.mu.Unlock()
	if starts {
		k.run(w)
	}
}

// A worker is a goroutine that runs while there is work and ends when there is
// none, so that an idle Writer has no goroutine.
type worker struct {
	run     func(*Writer)
	running bool
	due     bool // a deadline has passed
	late    bool // it passed while the worker was at work
}

// startLocked starts a worker, unless it runs. It releases the lock meanwhile: a go statement may
// wake a thread, which takes some µs and now and then some ms.
func (w *Writer) startLocked(k *worker) {
	if w.startsLocked(k) {
		w.mu.Unlock()
		go k.run(w)
		w.mu.Lock()
	}
}

// startsLocked reports whether the caller must run the worker now.
func (w *Writer) startsLocked(k *worker) bool {
	if k.running || w.isClosing {
		return false
	}
	k.running = true
	w.background.Add(1)
	return true
}

// Close flushes all bytes that were accepted, those of Lanes included. It syncs unless
// the policy is sync=never, and closes the file. It tries each step even if an earlier
// one failed. It returns all their errors, and those of the background that no call has
// returned yet. What could not be flushed is lost with the Writer; the [WriteError] has
// the first lost byte.
//
// Calls that wait for memory return ErrClosed, and so does every later call. A second
// Close waits for the first and returns the same. Close waits for calls that the kernel
// has not finished, however long that takes.
func (w *Writer) Close() (err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isClosing {
		for !w.closed {
			w.idle.Wait()
		}
		return w.closeErr
	}
	w.isClosing = true
	w.failing = nil // what fails now is lost: a failure of its own
	if w.commit != nil {
		w.commit.join.Enough()
	}
	w.openLocked()
	w.relay.Stop()
	w.idle.Broadcast()
	w.space.Broadcast()
	w.bypass.free.Broadcast()

	var flushErr, syncErr, closeErr error
	defer func() { // also if the file panics
		w.closeErr = distinct.Join(w.unreported, flushErr, syncErr, w.final, closeErr)
		w.reportLocked(closeErr)
		w.closed = true
		w.flushTimer.Disarm()
		w.syncTimer.Disarm()
		w.idle.Broadcast()
		err = w.closeErr
	}()
	defer func() {
		w.sealLocked()
		w.systemCalls++
		w.callFileLocked("Close", func() {
			w.background.Wait()
			closeErr = w.target.close()
		})
	}()
	flushErr = w.drainLocked()
	syncErr = w.lastSyncLocked()
	return nil
}

// drainLocked flushes what the ring holds. Then it has room for what lanes hold, and
// flushes that.
func (w *Writer) drainLocked() error {
	for w.bypass.taken {
		w.idle.Wait()
	}
	err := w.flushToLocked(w.writtenLocked())
	w.closeLanesLocked()
	return distinct.Join(err, w.flushToLocked(w.writtenLocked()))
}

// closeLanesLocked takes what lanes hold, unless the file is stuck.
func (w *Writer) closeLanesLocked() {
	for _, l := range w.lanes {
		w.mu.Unlock()
		l.mu.Lock()
		w.mu.Lock()
		if held := l.heldLocked(); len(held) > 0 && w.readyLocked(len(held)) {
			w.putLaneLocked(l)
		}
		l.closed = true
		l.mu.Unlock()
	}
}

// lastSyncLocked makes what was flushed durable if the policy syncs.
func (w *Writer) lastSyncLocked() error {
	if w.policy.Sync.Mode == SyncNever {
		return nil
	}
	if w.flushed == w.writtenLocked() {
		return w.syncToLocked(w.writtenLocked())
	}
	for w.leading {
		w.idle.Wait()
	}
	if w.final != nil || w.durable == w.flushed && !w.nameless {
		return nil
	}
	w.leading = true
	defer func() { w.leading = false }()
	return w.syncLocked()
}

// sealLocked waits until the calls of the file have ended, and lets no other begin.
func (w *Writer) sealLocked() {
	for w.leading || w.flushing {
		w.idle.Wait()
	}
	w.sealed = true
	w.commit.wakeAll()
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

// putCallersLocked is putLocked for the caller's memory. That may be a mapped file that
// was truncated, where the copy panics: see debug.SetPanicOnFault.
func (w *Writer) putCallersLocked(p []byte) {
	lap, pos, copied := w.lap, w.pos, false
	defer func() {
		if copied {
			return
		}
		cause := recover()
		w.lap, w.pos = lap, pos
		w.poisonLocked("copy", cause)
		panic(cause)
	}()
	w.putLocked(p)
	w.openLocked()
	copied = true
}

// poisonLocked makes every later call return an error that names the panic. Close
// still flushes what was accepted, unless a Write has panicked, and closes the file.
func (w *Writer) poisonLocked(where string, cause any) {
	name := ""
	if w.target.path != "" {
		name = " " + w.target.path
	}
	format := "holdfast: %s%s panicked, and this Writer accepts nothing more (%d bytes are durable): %v"
	if _, ok := cause.(error); ok {
		format = format[:len(format)-1] + "w"
	}
	if w.final == nil {
		w.final = fmt.Errorf(format, where, name, w.durable, cause)
		w.reportLocked(w.final)
	}
	w.openLocked()
	w.idle.Broadcast()
	w.space.Broadcast()
	w.commit.wakeAll()
}
