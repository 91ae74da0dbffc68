package holdfast

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/spin"
)

// flushToLocked flushes up to end at least, or waits for the goroutine that does. It
// takes along newer bytes: they may be due too.
func (w *Writer) flushToLocked(end int64) error {
	for w.flushed < end {
		if err := w.flushStepLocked(w.writtenLocked()); err != nil {
			return err
		}
	}
	w.releaseLocked()
	return nil
}

// flushAllLocked flushes all that is written, lanes included. It merges lanes first, so
// that their bytes wait for the write in flight and for no later one.
func (w *Writer) flushAllLocked() error {
	if !w.mergeReadyLanesLocked() {
		if err := w.mergeLanesLocked(); err != nil {
			return err
		}
	}
	return w.flushToLocked(w.writtenLocked())
}

// makeRoomLocked does one step towards room for n bytes.
//
// The end of a flush wakes one call that waits for room. Each call that is woken wakes the next, unless
// it waits again for the next flush. So while calls wait, a flush is in flight or one of them is woken. If all
// were woken, most of thousands would find no room. What ends the waiting otherwise wakes all.
func (w *Writer) makeRoomLocked(n int) error {
	if !w.exclusive {
		if w.lookForRoomLocked() {
			return nil
		}
		if !w.flushing {
			w.relay.Late()
			return w.flushStepLocked(w.roomForLocked(n))
		}
		w.space.Wait()
		if !w.flushing || w.readyLocked(n) {
			w.space.Signal()
		}
		return nil
	}
	w.heldUp++
	w.idle.Wait()
	w.heldUp--
	if w.heldUp == 0 {
		w.idle.Broadcast()
	}
	return nil
}

// lookForRoomLocked looks for a while whether the flush in flight has ended, and reports whether it
// has or a call must return an error. To park instead takes as long as most of a flush, and to be
// woken takes some 15 µs of the goroutine that flushes. One goroutine looks; the others park.
func (w *Writer) lookForRoomLocked() bool {
	const looks = 40 // some dozens of µs: what a strip takes
	if !w.flushing || w.slow || w.looking || w.trouble {
		return false
	}
	w.looking = true
	at := w.flushed
	for i := 0; i < looks && w.flushing && w.flushed == at && !w.trouble; i++ {
		w.mu.Unlock()
		spin.Pause()
		w.mu.Lock()
	}
	w.looking = false
	return !w.flushing || w.flushed != at || w.trouble
}

// flushStepLocked waits for the flush in flight. If there is none, it hands one stretch
// of the ring below end to the kernel, and releases the lock meanwhile.
func (w *Writer) flushStepLocked(end int64) error {
	if w.flushing {
		w.idle.Wait()
		return nil
	}
	if w.sealed {
		return w.sealedErrLocked()
	}
	again := w.stuck
	from := w.placeLocked(w.flushed)
	stretch := w.buf[from : from+min(int(end-w.flushed), len(w.buf)-from)]
	n, err := w.writeFileLocked(stretch)
	w.flushed += int64(n)
	if n < w.strip { // else the next strip is about to come
		w.releaseLocked()
	}
	w.restartLocked()
	w.stuck = err != nil && w.flushed < w.writtenLocked()
	if w.flushed == w.writtenLocked() && len(w.lanes) == 0 {
		w.flushTimer.Disarm()
	}
	w.openLocked()
	w.space.Signal()
	w.idle.Broadcast()
	if err != nil {
		err = w.writeErrorLocked(err, again && n == 0)
	}
	w.syncBytesLocked()
	if err == nil && w.fullLocked() > w.flushed {
		w.startLocked(&w.flusher) // filled meanwhile
	}
	return err
}

func (w *Writer) writeErrorLocked(err error, again bool) error {
	e := &WriteError{Path: w.target.path, Flushed: w.flushed, Durable: w.durable, AtRisk: w.writtenLocked() - w.flushed, Err: err, again: again}
	if w.failing == nil {
		w.reportLocked(e)
	}
	w.failing = e
	return e
}

// writeFileLocked hands p to the file, and releases the lock meanwhile. No other flush
// may be in flight.
func (w *Writer) writeFileLocked(p []byte) (n int, err error) {
	calls := 0
	w.flushing = true
	defer func() { w.flushing = false }()
	w.awaitSyncLocked()
	// To read the clock twice takes a tenth of a short write: of those one of 16 is timed.
	const short, each = 4 << 10, 16
	timed, start := len(p) >= short || w.flushes%each == 0, time.Time{}
	if timed {
		start = time.Now()
	}
	w.callFileLocked("Write", func() { n, calls, err = w.target.write(p) })
	switch {
	case timed && w.flushes == 0 && w.counts == nil:
		w.firstFlush = time.Since(start)
	case timed:
		w.countsLocked().Flush.Add(time.Since(start))
	}
	w.flushes += int64(calls)
	w.systemCalls += int64(calls)
	if err == nil {
		w.failing = nil
	}
	return n, err
}

// fastFill separates writers that the kernel limits from the others. When strips fill faster than
// this, the Write that filled one flushes it, unless that hides nothing (see spin.Relay). One slow
// strip behind a fast one only shows a lost CPU.
const fastFill = time.Millisecond

// flushFullLocked has full strips flushed: in the background, so that no Write waits
// for the kernel, or right here if they fill fast.
func (w *Writer) flushFullLocked() {
	full := w.fullLocked()
	if full <= w.flushed {
		return
	}
	hand := w.relay.Pending() // if it is another look at the same strip
	if full != w.full {
		last := w.filled
		w.full, w.filled = full, time.Since(w.began)
		w.wasSlow, w.slow = w.slow, w.filled-last > fastFill
		hand = w.strip == w.block && w.relay.Hand(last, w.filled)
	}
	before := w.wasSlow
	if w.flushing || w.slow && before {
		w.startLocked(&w.flusher)
		return
	}
	if hand {
		return // the flusher waits for it
	}
	// The next call returns what fails here: these bytes are accepted.
	written := w.writtenLocked()
	w.noteLocked(w.flushStepLocked(full))
	if w.relay.Kept(time.Since(w.began), written == w.writtenLocked()) {
		w.startLocked(&w.flusher)
	}
}

// runFlusher flushes full strips, and everything when the deadline has passed,
// until nothing is left to do.
func (w *Writer) runFlusher() {
	defer w.background.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.flushDueLocked()
	if err != nil && !w.sealed {
		w.flushTimer.Arm() // try again in a while
	}
	w.noteLocked(err)
	w.flusher.running = false
}

func (w *Writer) flushDueLocked() error {
	for !w.isClosing {
		var err error
		if w.flushing && !w.flusher.due {
			return nil // who flushes now looks for full strips at the end
		}
		if w.flushing && len(w.lanes) == 0 {
			w.idle.Wait() // what is due then is more than what is due now
			continue
		}
		if w.flusher.due {
			w.flusher.due = false
			w.flushTimer.Disarm()
			w.openLocked()
			err = w.flushAllLocked()
		} else if full := w.fullLocked(); full > w.flushed {
			err = w.flushStepLocked(full)
		} else if !w.relay.Wait(&w.mu) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bypassLocked hands p to the kernel from the caller's memory, behind all
// that was accepted before it. It is for large Writes.
func (w *Writer) bypassLocked(p []byte) (n int, err error) {
	if err := w.enterLocked(); err != nil {
		return 0, err
	}
	defer w.leaveLocked()
	return w.writeAloneLocked(p)
}

// writeAloneLocked is bypassLocked between enterLocked and leaveLocked.
func (w *Writer) writeAloneLocked(p []byte) (n int, err error) {
	defer w.giveWayLocked()
	if err := w.clearWayLocked(); err != nil {
		return 0, err
	}
	n, err = w.writeFileLocked(p)
	w.skipLocked(n)
	if n > 0 {
		w.writes++
		w.age.Begin()
		w.syncTimer.Arm()
	}
	if err != nil {
		err = w.writeErrorLocked(err, false)
	}
	w.syncBytesLocked()
	return n, err
}

// clearWayLocked stops other calls from accepting bytes and flushes what they accepted.
// First it lets the calls go on that the last bypass held up, and merges the lanes. So in
// a stream of bypasses no other call waits for more than one.
func (w *Writer) clearWayLocked() error {
	for w.heldUp > 0 && !w.isClosing {
		w.idle.Wait()
	}
	err := w.refusalLocked()
	if err != nil || w.block == 0 {
		return err
	}
	if err := w.mergeLanesLocked(); err != nil {
		return err
	}
	w.exclusive = true
	w.space.Broadcast() // all of them are held up now
	w.openLocked()
	for err == nil && (w.flushed < w.writtenLocked() || w.flushing) {
		if err = w.flushStepLocked(w.writtenLocked()); err == nil {
			err = w.refusalLocked()
		}
	}
	return err
}

func (w *Writer) giveWayLocked() {
	if w.exclusive {
		w.exclusive = false
		w.openLocked()
		w.idle.Broadcast()
	}
}

// skipLocked counts n bytes as written and flushed that went past the memory,
// which is empty.
func (w *Writer) skipLocked(n int) {
	w.lap += int64(n)
	w.flushed = w.writtenLocked()
	w.restartLocked()
}

// A handoff admits one goroutine at a time. Like sync.Mutex it is fast, because a
// running goroutine may take it before one that must be woken. It may do so at most
// maxPassed times, and never under sync=each. Unlike a mutex it lets Close release
// the waiters. The Writer's lock guards it.
type handoff struct {
	taken   bool
	free    spin.Cond
	waiting int  // how many goroutines wait for free
	woken   bool // one of them was woken and does not run yet
	given   bool // the next of them to wake has it
	passed  int  // how often others took it while a goroutine waited
}

// maxPassed bounds the wait to some dozens of Writes for each waiter.
const maxPassed = 128

func (w *Writer) enterLocked() error {
	t := &w.bypass
	for t.taken {
		if w.isClosing {
			return ErrClosed
		}
		t.waiting++
		t.free.Wait()
		t.waiting--
		t.woken = false
		if t.given {
			t.given = false
			return nil
		}
	}
	t.taken = true
	return nil
}

func (w *Writer) leaveLocked() {
	t := &w.bypass
	t.passed++
	t.given = t.waiting > 0 && (t.passed >= maxPassed || w.policy.Sync.Mode == SyncEach)
	t.taken = t.given
	if t.given || t.waiting == 0 {
		t.passed = 0
	}
	if t.given || t.waiting > 0 && !t.woken {
		t.woken = true
		t.free.Signal()
	}
	w.idle.Broadcast()
}

// roomForLocked returns up to where the ring must be flushed before n more bytes fit.
// It prefers whole strips: their writes are aligned to the page cache.
func (w *Writer) roomForLocked(n int) int64 {
	written := w.writtenLocked()
	full := w.fullLocked()
	if full > w.flushed && full+int64(w.room) >= written+int64(n) {
		return full
	}
	return written
}

// sealedErrLocked returns why nothing may touch the file any more.
func (w *Writer) sealedErrLocked() error {
	if w.final != nil {
		return w.final
	}
	return ErrClosed
}

// awaitSyncLocked has a flush wait while the kernel has twice the bytes of a sync by bytes. The disk
// is slower than the callers then. A policy that says when bytes are flushed keeps that. In Close the
// sync comes after the last flush.
func (w *Writer) awaitSyncLocked() {
	limit := int64(w.policy.Sync.Bytes)
	for limit > 0 && w.policy.FlushEvery == 0 && w.flushed-w.durable >= 2*limit && w.final == nil && !w.isClosing {
		w.idle.Wait()
	}
}
