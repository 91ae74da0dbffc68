package holdfast

import (
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"time"
	"unsafe"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// A Writer writes to a [File] under a [Policy]. Any number of goroutines may use
// it at once: the bytes of one Write stand together in the file, and the Writes
// of one goroutine keep their order.
//
// Memory is bounded by twice the policy's Buffer; when the file is slower than
// the callers, Write waits. Otherwise no Write waits for another's flush or
// sync, unless the policy says so (group, each) or a Write larger than the
// buffer is on its way.
//
// Errors: a [WriteError] is not final, every call tries to go on at the exact
// byte and says so while it can't; a [SyncError] is final. What failed in the
// background is returned by the next call, whichever it is and whoever makes it.
//
// A Writer must be closed. It starts goroutines and timers only while bytes
// wait, and none is left after Close.
type Writer struct {
	// These and the first two words of mu are one cache line, and all that a
	// Write of a few bytes touches; guarded by mu, as everything below but what
	// New sets.
	//
	// pos is where the next byte goes in buf, limit how far Write may copy
	// without looking at anything else; -1 makes every Write look. buf starts as
	// one block and some more, and becomes a ring of two blocks when that is not
	// enough (memory.go): the byte at offset o is at o modulo the ring's size.
	pos, limit int
	buf        []byte
	writes     int64
	mu         biasedLock

	// Set by New and never changed.
	policy Policy
	block  int // policy.Buffer
	target target
	began  time.Time // what filled counts from
	// closing is closed when Close begins.
	closing chan struct{}

	// laneLimit is to lanes what limit is to Write: how far the owner of a lane may
	// fill it without looking at anything else, with 0 for not at all. It is read
	// without the lock.
	laneLimit int32
	trouble   bool // a call has something to say before it may accept bytes

	lap              int64 // the offset of buf[0]: the next byte's is lap+pos
	flushed, durable int64 // offsets; flushed ≤ lap+pos, durable ≤ flushed
	growing          bool  // somebody makes the ring
	nameless         bool  // the file's directory entry is not durable yet
	room             int   // how many bytes memory may hold, less the lanes' share
	lanes            []*Lane

	// flushing is held by the one goroutine that is writing to the file, and
	// exclusive by the one whose Write goes past the memory: nobody accepts
	// bytes then. idle is told when either ends.
	flushing, exclusive bool
	idle                sync.Cond
	straight            turn
	heldUp              int           // how many wait for exclusive to end
	filled              time.Duration // when the last block was full, or the first byte came
	full                int64         // the end of that block
	tryout              int64         // the offset where the tryout ends; 0 before the first byte

	stuck      bool  // the last flush failed and its bytes are still here
	unreported error // what failed in the background and no call has returned
	final      error // a failed sync

	// Close begins, lets nothing touch the file any more, and is done.
	isClosing, sealed, closed bool
	closeErr                  error

	flushTimer, syncTimer deadline
	flusher, syncer       worker
	background            sync.WaitGroup
	registered            bool // RegisterBarrier was called

	commit commit
	stats  Stats
}

// New returns a Writer that writes to f under p, beginning at the file's own
// position. The Writer closes f in Close. It does not sync the directory that f
// is in; [Create] and [Append] do.
func New(f File, p Policy) (*Writer, error) {
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("holdfast: %w", err)
	}
	t, err := newTarget(f, p)
	if err != nil {
		return nil, err
	}
	w := &Writer{
		policy:  p,
		target:  t,
		block:   int(p.Buffer),
		buf:     make([]byte, p.Buffer+p.Buffer/spillShare),
		room:    int(2 * p.Buffer),
		began:   time.Now(),
		closing: make(chan struct{}),
	}
	w.mu.patience = 1
	w.idle.L, w.straight.free.L = &w.mu, &w.mu
	w.commit.init(&w.mu)
	w.flusher.run, w.syncer.run = w.runFlusher, w.runSyncer
	// A byte that is due for a sync must not wait in memory for the sync before.
	w.flushTimer.init(max(0, shortest(p.FlushEvery, p.syncPeriod())), func() { w.due(&w.flusher) })
	w.syncTimer.init(p.syncPeriod(), func() { w.due(&w.syncer) })
	w.openLocked()
	return w, nil
}

// Write accepts p as the policy says.
//
// Where the policy waits for no sync: (len(p), nil) means that p is accepted and
// kept until it is written; (0, err) that it is not in the file. A Write larger
// than the buffer goes straight to the kernel, and with an error n tells how
// many of its bytes did.
//
// Where the policy waits (sync=group, sync=each), nil means that p is durable.
// An error with n > 0 means that n bytes are accepted but not known to be
// durable; do not send them to this Writer again: Sync or WaitDurable tell what
// became of them.
//
// Write does not keep p.
func (w *Writer) Write(p []byte) (n int, err error) {
	if w.policy.acknowledgesDurable() {
		return w.writeDurable(p)
	}
	alone := w.mu.enter()
	if alone == nil {
		w.mu.Lock()
	}
	if end := w.pos + len(p); end <= w.limit {
		copy(w.buf[w.pos:], p)
		w.pos = end
		w.writes++
		if alone != nil {
			alone.leave()
		} else {
			w.mu.Unlock()
		}
		return len(p), nil
	}
	if alone != nil {
		w.mu.lockFrom(alone)
	}
	n, _, err = w.enqueueLocked(p, stackRegion())
	return n, err
}

// WriteString is Write for a string.
func (w *Writer) WriteString(s string) (n int, err error) {
	return w.Write(unsafe.Slice(unsafe.StringData(s), len(s)))
}

// Enqueue accepts p and returns without waiting for more, whatever the policy;
// end, the offset behind p, is what to give to [Writer.WaitDurable]. On an error
// p is not accepted, except that of a p larger than the buffer a first part may
// be in the file, up to end.
func (w *Writer) Enqueue(p []byte) (end int64, err error) {
	w.mu.Lock()
	if next := w.pos + len(p); next <= w.limit {
		copy(w.buf[w.pos:], p)
		w.pos = next
		end = w.lap + int64(next)
		w.writes++
		w.mu.Unlock()
		return end, nil
	}
	_, end, err = w.enqueueLocked(p, 0)
	return end, err
}

// readChunk is how much ReadFrom reads at once at least.
const readChunk = 32 * KiB

// ReadFrom accepts what r holds until its end, as Writes of some KiB: Writes of
// other goroutines may come between them. Under sync=group and sync=each it
// waits once, at the end.
func (w *Writer) ReadFrom(r io.Reader) (n int64, err error) {
	chunk := make([]byte, max(readChunk, min(w.policy.Buffer, 8*readChunk)))
	for {
		k, readErr := r.Read(chunk)
		if k > 0 {
			accepted, err := w.accept(chunk[:k])
			n += int64(accepted)
			if err != nil {
				return n, err
			}
		}
		if readErr == io.EOF {
			break
		}
		if readErr != nil {
			return n, readErr
		}
	}
	if n > 0 && w.policy.acknowledgesDurable() {
		return n, w.Sync()
	}
	return n, nil
}

// accept is Enqueue for those who want to know how much of p was accepted.
func (w *Writer) accept(p []byte) (n int, err error) {
	w.mu.Lock()
	n, _, err = w.enqueueLocked(p, 0)
	return n, err
}

// enqueueLocked accepts p when that needs more than a copy, and unlocks. If region
// is the caller's and not 0, the caller may be lent the lock.
func (w *Writer) enqueueLocked(p []byte, region uintptr) (n int, end int64, err error) {
	defer w.mu.Unlock()
	full := false
	if len(p) > w.block {
		n, err = w.writeStraightLocked(p)
		end = w.writtenLocked()
	} else {
		err = w.takeLocked(p)
		end = w.writtenLocked()
		if err == nil {
			n = len(p)
			tried := w.tryLocked()
			full = w.flushFullLocked() || tried
		}
	}
	if w.mu.lendLocked(region, full) {
		w.wantBarrierLocked(w.filled > registerAfter && w.mu.calm >= firstPatience)
		w.mu.lendLocked(region, w.mu.barrier.Load())
	}
	return n, end, err
}

const (
	// tryoutSize is how many bytes tell whether they come fast from one goroutine:
	// few against what short-lived Writers take, and so many that the loan which
	// may follow is worth taking it back.
	tryoutSize = 4096
	// registerAfter keeps Writers that live less long from the first registration
	// of the process, as firstPatience does those of many goroutines: it takes about
	// 12 ms, and their Close would have to wait.
	registerAfter = time.Millisecond
	// triedOut is behind every byte.
	triedOut = math.MaxInt64
)

// tryLocked reports, once, that the tryout is over and was as fast as full blocks
// must be (see fastFill).
func (w *Writer) tryLocked() (fast bool) {
	written := w.writtenLocked()
	if w.tryout == triedOut || written < w.tryout || written == 0 {
		return false
	}
	now := time.Since(w.began)
	if w.tryout == 0 {
		w.tryout, w.filled = written+tryoutSize, now
	} else {
		w.tryout, fast = triedOut, now-w.filled <= fastFill
	}
	w.openLocked()
	return fast
}

// wantBarrierLocked looks whether the barrier that loans of the lock take can be
// used, and if register says so asks for it, once.
func (w *Writer) wantBarrierLocked(register bool) {
	if w.registered || w.isClosing {
		return
	}
	if sys.Barrier() == nil { // another Writer has asked
		w.registered = true
		w.mu.barrier.Store(true)
		return
	}
	if !register {
		return
	}
	w.registered = true
	w.background.Go(func() {
		// Without the lock: who is alone with it takes it too often for others to
		// get in soon.
		w.mu.barrier.Store(sys.RegisterBarrier() == nil)
	})
}

// takeLocked waits until memory has room for p, and copies it whole.
func (w *Writer) takeLocked(p []byte) error {
	for waits := int64(1); ; waits = 0 {
		if err := w.refusalLocked(); err != nil {
			return err
		}
		if w.readyLocked(len(p)) {
			if w.holdsLocked(len(p)) {
				break
			}
			w.growLocked()
			continue
		}
		w.stats.Waits += waits
		if err := w.makeRoomLocked(len(p)); err != nil {
			return err
		}
	}
	w.writes++
	w.putLocked(p)
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
// the policy's time bounds.
func (w *Writer) putLocked(p []byte) {
	if len(p) > 0 {
		w.armLocked()
	}
	for len(p) > 0 {
		n := copy(w.buf[w.pos:], p)
		w.pos += n
		p = p[n:]
		w.wrapLocked()
	}
	w.openLocked()
}

func (w *Writer) armLocked() {
	w.flushTimer.arm()
	w.syncTimer.arm()
}

// openLocked works out anew how far Write may copy without looking: to the end
// of the block or of the room, and not at all while there is something to say
// or a clock to start.
func (w *Writer) openLocked() {
	trouble := w.isClosing || w.stuck || w.unreported != nil || w.final != nil
	open := !trouble && !w.exclusive && w.block > 0 && w.flushTimer.running() && w.syncTimer.running()
	w.openLanesLocked(open && len(w.lanes) > 0, trouble)
	if !open {
		w.limit = -1
		return
	}
	w.wrapLocked()
	w.limit = w.pos + min(max(0, w.freeLocked()), w.block-w.pos%w.block, len(w.buf)-w.pos, w.tryLeftLocked())
}

// tryLeftLocked returns how many bytes may come before tryLocked wants to look.
func (w *Writer) tryLeftLocked() int {
	return int(min(max(0, w.tryout-w.writtenLocked()), math.MaxInt32))
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

// Flush hands all that was accepted before the call, by Lanes too, to the
// kernel. On nil, Flushed is at least what Written was then.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.refusalLocked(); err != nil {
		return err
	}
	return w.withLanesLocked(w.flushToLocked)
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

// Stats counts what a Writer did since New.
type Stats struct {
	Writes      int64 // Writes and Enqueues that were accepted; a Lane's merge counts once
	Flushes     int64 // writes to the file
	Syncs       int64 // syncs of the file
	SystemCalls int64 // Flushes, Syncs, Close, and the calls that look after the file's name
	Waits       int64 // Writes that waited because memory was full

	// LongestSync is the time of the longest sync so far, that of the file's
	// directory included: what a bound by time leaves out, see [Bound].
	LongestSync time.Duration
}

// Stats returns the counts so far. It may be called at any time and waits for
// nothing.
func (w *Writer) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.stats
	s.Writes = w.writes
	return s
}

// roomFor says up to where the ring must be flushed before n more bytes fit.
// Whole blocks are preferred: their writes are aligned to the page cache.
func (w *Writer) roomForLocked(n int) int64 {
	written := w.writtenLocked()
	full := w.fullLocked()
	if full > w.flushed && full+int64(w.room) >= written+int64(n) {
		return full
	}
	return written
}

// fullLocked returns the offset of the end of the last full block.
func (w *Writer) fullLocked() int64 {
	if w.block == 0 {
		return math.MinInt64
	}
	return w.writtenLocked() - int64(w.pos%w.block)
}

// noteLocked keeps what failed in the background for the next call. A failure
// that repeats the one before has been told or is kept already; a failed sync is
// told by every call.
func (w *Writer) noteLocked(err error) {
	failed, ok := err.(*WriteError)
	if ok && !failed.again && w.unreported == nil {
		w.unreported = err
		w.openLocked()
	}
}

// due lets a worker do what a deadline asks for.
func (w *Writer) due(k *worker) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k.due, k.late = true, k.running
	w.startLocked(k)
}

// A worker is a goroutine that runs while there is work and ends when there is
// none, so that an idle Writer has no goroutine.
type worker struct {
	run     func()
	running bool
	due     bool // a deadline has passed
	late    bool // it passed while the worker was at work
}

func (w *Writer) startLocked(k *worker) {
	if k.running || w.isClosing {
		return
	}
	k.running = true
	w.background.Add(1)
	go k.run()
}

// A deadline is a timer that runs only while bytes wait. The zero period needs
// no timer and counts as running.
type deadline struct {
	period time.Duration
	timer  *time.Timer
	armed  bool
}

func (d *deadline) init(period time.Duration, fire func()) {
	if d.period = period; period > 0 {
		d.timer = time.AfterFunc(math.MaxInt64, fire)
		d.timer.Stop()
	}
}

func (d *deadline) running() bool { return d.period == 0 || d.armed }

func (d *deadline) arm() {
	if !d.running() {
		d.armed = true
		d.timer.Reset(d.period)
	}
}

func (d *deadline) disarm() {
	if d.armed {
		d.armed = false
		d.timer.Stop()
	}
}
