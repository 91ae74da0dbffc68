package holdfast

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/deadline"
	"github.com/holdfast-go/holdfast/internal/weakbuf"
	"github.com/holdfast-go/holdfast/internal/spin"
)

// A fill is the block that Writes fill: the accepted bytes that no flush has begun with. It
// grows with what it holds, up to the policy's Buffer. The Writer's lock guards it.
type fill struct {
	// The next byte goes to buf[pos]. Write may copy without a look at anything else while pos stays
	// below limit; 0 makes every Write look.
	pos, limit int
	buf        []byte
	writes     int64 // how many were accepted

	base  int64     // the offset of buf[0]
	began time.Time // when that came
}

// put copies p, for which there is room.
func (f *fill) put(p []byte) {
	if f.pos == 0 && len(p) > 0 {
		f.began = time.Now()
	}
	f.pos += copy(f.buf[f.pos:], p)
	f.writes++
}

// A flusher is what a flush hands to the file, and who waits for it. At most one flush is in flight, and whoever needs
// one makes it: a Write without room, Flush, the leader of a sync, or the clock. While flushing is
// set, out is that goroutine's alone; the Writer's lock guards the rest.
type flusher struct {
	flushing bool
	stuck    bool   // the last flush failed, and out holds what it left
	out      []byte // follows what is flushed, and stands before fill; block is all the memory of it
	block    []byte
	last     int   // how many bytes the last flush began with: the next block has room for as many at once
	flushed  int64 // an offset; fill.base is out's length more

	// While a large Write bypasses memory, exclusive is set and no call accepts bytes. The
	// calls with large Writes take turns. heldUp counts the other calls that wait for exclusive to end.
	exclusive bool
	turn      handoff
	heldUp    int

	idle  spin.Cond // a flush, a sync, a bypass or Close has ended
	space spin.Cond // there may be room in memory: see makeRoomLocked

	timer deadline.Timer
}

// slowFill is how long it takes to fill a strip where the kernel is not the limit. Then a flush is made in the background, and
// no Write waits for it. If strips fill faster, the Write that filled one flushes it: another goroutine would have to be
// woken for each, and memory would be full soon all the same.
const slowFill = time.Millisecond

// makeRoomLocked does one step towards room for n bytes.
//
// A flush wakes one call that waits for room when it has begun, because memory is empty then, and one when it has ended.
// Each call that is woken wakes the next, unless it waits again for the next flush. So while calls wait, a
// flush is in flight or one of them is woken. If all were woken, most of thousands would find no
// room. What ends the waiting otherwise wakes all.
func (w *Writer) makeRoomLocked(n int) error {
	switch {
	case w.flush.flushing:
	case w.dirtyLocked():
		return w.syncToLocked(w.flush.flushed)
	case !w.flush.stuck && time.Since(w.fill.began) > slowFill:
		w.flushInBackgroundLocked()
		return nil
	default:
		return w.flushStepLocked()
	}
	w.flush.space.Wait()
	if !w.flush.flushing || !w.flush.stuck && w.fill.pos+n <= int(w.policy.Buffer) {
		w.flush.space.Signal()
	}
	return nil
}

// growLocked takes more memory. It makes it without the lock.
func (w *Writer) growLocked(need int) {
	size := min(weakbuf.Size(max(need, 4*len(w.fill.buf), w.flush.last)), int(w.policy.Buffer))
	block := weakbuf.Get(size)
	if block == nil {
		w.mu.Unlock()
		block = make([]byte, size)
		w.mu.Lock()
	}
	if len(w.fill.buf) >= size { // another call was faster
		weakbuf.Put(block)
		return
	}
	copy(block, w.fill.buf[:w.fill.pos])
	weakbuf.Put(w.fill.buf)
	w.fill.buf = block
}

// stripLocked reports whether there is a full strip that nobody flushes.
func (w *Writer) stripLocked() bool {
	return w.fill.pos >= w.strip && w.fill.pos > 0 && !w.flush.flushing && !w.flush.stuck
}

// flushStripLocked has a full strip flushed behind a Write that was accepted: here if strips fill fast. The
// next call returns what fails then.
func (w *Writer) flushStripLocked() {
	if !w.stripLocked() || w.dirtyLocked() { // the end of the sync that is due starts it then
		return
	}
	if time.Since(w.fill.began) > slowFill {
		w.flushInBackgroundLocked()
		return
	}
	w.noteLocked(w.flushStepLocked())
}

// flushToLocked flushes up to end at least, or waits for the goroutine that does. It
// takes along newer bytes: they may be due too.
func (w *Writer) flushToLocked(end int64) error {
	for w.flush.flushed < end {
		step := w.flushStepLocked
		if w.dirtyLocked() {
			step = func() error { return w.syncToLocked(w.flush.flushed) }
		}
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// flushStepLocked waits for the flush in flight. If there is none, it makes one of all that was accepted.
func (w *Writer) flushStepLocked() error {
	if w.flush.flushing {
		w.flush.idle.Wait()
		return nil
	}
	if w.sealed {
		return w.endedLocked()
	}
	again := w.flush.stuck
	w.beginFlushLocked()
	return w.writeOutLocked(again)
}

// flushInBackgroundLocked begins a flush, and leaves the rest to another goroutine.
func (w *Writer) flushInBackgroundLocked() {
	w.beginFlushLocked()
	w.goLocked(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.noteLocked(w.writeOutLocked(false))
	})
}

// beginFlushLocked takes what the flush hands to the file. What a failed one left goes first, alone.
func (w *Writer) beginFlushLocked() {
	f := &w.flush
	f.flushing = true
	if len(f.out) == 0 {
		f.out, f.block, f.last = w.fill.buf[:w.fill.pos], w.fill.buf, w.fill.pos
		w.fill.base += int64(w.fill.pos)
		w.fill.buf, w.fill.pos = nil, 0
	}
	f.timer.Set(w.fill.pos > 0)
	w.openLocked()
	f.space.Signal()
}

// writeOutLocked ends a flush that has begun. It releases the lock while it writes.
func (w *Writer) writeOutLocked(again bool) (err error) {
	f, n := &w.flush, 0
	defer func() { // also if the file panics
		f.flushing = false
		f.flushed += int64(n)
		if f.out = f.out[n:]; len(f.out) == 0 {
			weakbuf.Put(f.block) // whoever needs memory next takes it, or the garbage collector
			f.out, f.block = nil, nil
		}
		if f.stuck = err != nil && len(f.out) > 0; err != nil {
			err = w.writeErrorLocked(err, again && n == 0)
		}
		f.space.Signal()
		f.idle.Broadcast()
		w.settleLocked()
	}()
	n, err = w.writeFileLocked(f.out)
	return err
}

// writeFileLocked hands p to the file, and releases the lock meanwhile. Flushing is set.
func (w *Writer) writeFileLocked(p []byte) (n int, err error) {
	// To read the clock twice takes a tenth of a short write: of those one of 16 is timed.
	const short, each = 4 << 10, 16
	timed, start, calls := len(p) >= short || w.reports.flushes%each == 0, time.Time{}, 0
	if timed {
		start = time.Now()
	}
	w.callFileLocked("Write", func() { n, calls, err = w.target.write(p) })
	if timed {
		w.reports.flushTimes.Add(time.Since(start))
	}
	w.reports.flushes += int64(calls)
	w.reports.systemCalls += int64(calls)
	if err == nil {
		w.reports.failing = nil
	}
	return n, err
}

// flushDue is called by the clock of flushes.
func (w *Writer) flushDue() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flush.timer.Set(false)
	if w.isClosing {
		return
	}
	w.background.Add(1)
	defer w.background.Done()
	w.noteLocked(w.flushToLocked(w.writtenLocked()))
	w.settleLocked() // what is left is due again after a while
}

// bypassLocked hands p to the kernel from the caller's memory, behind all
// that was accepted before it. It is for large Writes.
func (w *Writer) bypassLocked(p []byte) (n int, end int64, err error) {
	if err := w.enterLocked(); err != nil {
		return 0, 0, err
	}
	defer w.leaveLocked()
	return w.writeAloneLocked(p)
}

// writeAloneLocked is bypassLocked between enterLocked and leaveLocked. It waits for a sync, if it must, before it stops
// the other calls. End is the offset behind p.
func (w *Writer) writeAloneLocked(p []byte) (n int, end int64, err error) {
	for w.dirtyLocked() {
		if err := w.syncToLocked(w.flush.flushed); err != nil {
			return 0, 0, err
		}
	}
	for w.flush.heldUp > 0 && !w.isClosing { // so in a stream of bypasses no other call waits for more than two
		w.flush.idle.Wait()
	}
	if err := w.refusalLocked(); err != nil {
		return 0, 0, err
	}
	w.flush.exclusive = true
	w.openLocked()
	defer func() {
		w.flush.exclusive = false
		w.settleLocked()
		w.flush.space.Broadcast()
	}()
	for w.flush.flushed < w.writtenLocked() || w.flush.flushing {
		if err := w.flushStepLocked(); err != nil {
			return 0, 0, err
		}
		if err := w.refusalLocked(); err != nil {
			return 0, 0, err
		}
	}
	w.flush.flushing = true
	defer func() {
		w.flush.flushing = false
		w.flush.idle.Broadcast()
	}()
	n, err = w.writeFileLocked(p)
	w.fill.base += int64(n)
	w.flush.flushed = w.fill.base
	if n > 0 {
		w.fill.writes++
		w.sync.age.Begin()
	}
	if err != nil {
		err = w.writeErrorLocked(err, false)
	}
	return n, w.fill.base, err
}

// awaitBypassLocked waits until no large Write stops the others, or Close has begun.
func (w *Writer) awaitBypassLocked() {
	f := &w.flush
	f.heldUp++
	for f.exclusive && !w.isClosing {
		f.space.Wait()
	}
	if f.heldUp--; f.heldUp == 0 {
		f.idle.Broadcast()
	}
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
	t := &w.flush.turn
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
	t := &w.flush.turn
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
	w.flush.idle.Broadcast()
}
