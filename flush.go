package holdfast

import (
	"io/fs"
	"time"

	"github.com/holdfast-go/holdfast/internal/bufpool"
	"github.com/holdfast-go/holdfast/internal/deadline"
	"github.com/holdfast-go/holdfast/internal/spin"
)

// A fill is the block that Writes fill: accepted bytes that no flush has taken yet. The
// block grows up to the policy's Buffer. The Writer's lock guards it.
type fill struct {
	// The next byte goes to buf[pos]. While pos stays below limit, Write copies and checks
	// nothing else; limit 0 sends every Write to accept.
	pos, limit int
	buf        []byte
	writes     int64 // number of accepted Writes

	base  int64     // the offset of buf[0]
	began time.Time // the arrival of buf[0]
}

// put copies p. The caller has made room for it.
func (f *fill) put(p []byte) {
	if f.pos == 0 && len(p) > 0 {
		f.began = time.Now()
	}
	f.pos += copy(f.buf[f.pos:], p)
	f.writes++
}

// keep puts the bytes of another block into a new one, of at most that size.
func (f *fill) keep(p []byte, most int) {
	size := min(bufpool.Size(len(p)), most)
	if f.buf = bufpool.Get(size); f.buf == nil {
		f.buf = make([]byte, size)
	}
	f.pos, f.began = copy(f.buf, p), time.Now()
}

// A flusher holds the bytes of the flush in flight and the calls that wait for it. At most one flush is in
// flight. The goroutine that needs a flush makes it: a Write without room, Flush, the leader of a sync, or
// the clock. While flushing is set, only that goroutine uses out; the Writer's lock guards the rest.
type flusher struct {
	flushing bool
	stuck    bool   // the last flush failed, and out holds the bytes it left
	out      []byte // the bytes from flushed up to fill.base
	block    []byte // the whole memory of out
	last     int    // number of bytes that the last flush took: the first size of the next block
	flushed  int64  // an offset: fill.base - len(out)

	// exclusive is set while a large Write bypasses memory: no other call accepts bytes. turn
	// orders the large Writes. heldUp counts the other calls that wait for exclusive to end.
	exclusive bool
	turn      handoff
	heldUp    int

	idle  spin.Cond // signals the end of a flush, a sync, a bypass or Close
	space spin.Cond // signals that memory may have room: see makeRoomLocked

	timer deadline.Timer
}

// A strip that took longer than slowFill to fill is flushed in the background, and no Write waits for it: the
// kernel is faster than the callers. If strips fill faster, the Write that filled one flushes it: another goroutine
// would have to be woken for each, and memory would soon be full all the same.
const slowFill = time.Millisecond

// makeRoomLocked does one step towards room for n bytes.
//
// A flush wakes one waiting call when it begins, because memory is empty then, and one when it ends. A woken
// call wakes the next, unless it has to wait for the next flush. Invariant: while calls wait, a flush is in
// flight or one waiter is awake. Waking all of thousands would find room for a few. Only Close, a panic and
// the end of a bypass wake all.
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

// growLocked gives fill a block of at least need bytes. It allocates without the lock.
func (w *Writer) growLocked(need int) {
	size := min(bufpool.Size(max(need, 4*len(w.fill.buf), w.flush.last)), int(w.policy.Buffer))
	block := bufpool.Get(size)
	if block == nil {
		w.mu.Unlock()
		block = make([]byte, size)
		w.mu.Lock()
	}
	if len(w.fill.buf) >= size { // another call was faster
		bufpool.Put(block)
		return
	}
	copy(block, w.fill.buf[:w.fill.pos])
	bufpool.Put(w.fill.buf)
	w.fill.buf = block
}

// stripLocked reports whether there is a full strip that nobody flushes.
func (w *Writer) stripLocked() bool {
	return w.fill.pos >= w.strip && w.fill.pos > 0 && !w.flush.flushing && !w.flush.stuck
}

// flushStripLocked flushes a full strip after a Write was accepted: in this goroutine if strips fill
// fast, else in the background. The next call returns a failure.
func (w *Writer) flushStripLocked() {
	if !w.stripLocked() || w.dirtyLocked() { // if dirty, the end of the due sync starts the flush
		return
	}
	if time.Since(w.fill.began) > slowFill {
		w.flushInBackgroundLocked()
		return
	}
	w.noteLocked(w.flushStepLocked())
}

// flushToLocked flushes up to end, or waits for the goroutine that does. It flushes
// newer bytes too: they may be due as well.
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

// flushStepLocked waits for the flush in flight. If there is none, it flushes the accepted bytes, the bytes that a
// failed flush left, or the bytes up to the end of a record: a caller that needs all of them repeats it.
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

// beginFlushLocked moves the filled block to out. If a failed flush left bytes in out, only these are flushed.
func (w *Writer) beginFlushLocked() {
	f := &w.flush
	f.flushing = true
	if len(f.out) == 0 {
		begun := w.begunLocked()
		f.last = w.fill.pos
		f.out, f.block = w.fill.buf[:f.last-len(begun)], w.fill.buf
		w.fill.base += int64(len(f.out))
		w.fill.buf, w.fill.pos = nil, 0
		if len(begun) > 0 {
			w.fill.keep(begun, int(w.policy.Buffer))
		}
	}
	f.timer.Set(w.fill.pos > 0)
	w.openLocked()
	f.space.Signal()
}

// begunLocked returns the bytes of a record that has begun and waits for more Writes: they are left to the next flush,
// so that a reader of the file does not see a part. A record that takes half a strip is flushed in parts, and so is one
// that has nothing before it: no flush is put off.
func (w *Writer) begunLocked() []byte {
	if w.target.ender == nil {
		return nil
	}
	last := w.fill.buf[max(0, w.fill.pos-w.strip/2):w.fill.pos]
	if end := w.target.ender.RecordEnd(last); end > 0 {
		return last[end:]
	}
	return nil
}

// writeOutLocked ends a flush that has begun. It releases the lock while it writes.
func (w *Writer) writeOutLocked(again bool) (err error) {
	f, n := &w.flush, 0
	defer func() { // also if the file panics
		f.flushing = false
		f.flushed += int64(n)
		if f.out = f.out[n:]; len(f.out) == 0 {
			bufpool.Put(f.block)
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
	start, calls := w.startTimeLocked(len(p)), 0
	w.callFileLocked("Write", func() { n, calls, err = w.target.write(p) })
	w.wroteLocked(start, calls, err == nil)
	return n, err
}

// startTimeLocked returns the time at which a write of n bytes starts, or the zero Time. Reading the clock twice takes
// a tenth of a short write: one short write in 64 is timed.
func (w *Writer) startTimeLocked(n int) (start time.Time) {
	const short, each = 16 << 10, 64
	if n >= short || w.reports.flushes%each == 0 {
		start = time.Now()
	}
	return start
}

// wroteLocked counts a write. After one that took all its bytes, the next failure is a new one.
func (w *Writer) wroteLocked(start time.Time, calls int, all bool) {
	if !start.IsZero() {
		w.reports.flushTimes.Add(time.Since(start))
	}
	w.reports.flushes += int64(calls)
	w.reports.systemCalls += int64(calls)
	if all {
		w.reports.failing = nil
	}
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
	w.settleLocked() // bytes that are left are due again later
}

// bypassLocked writes p, a large Write, to the file from the caller's memory, after all bytes
// accepted before it.
func (w *Writer) bypassLocked(p []byte) (n int, end int64, err error) {
	if err := w.enterLocked(); err != nil {
		return 0, 0, err
	}
	defer w.leaveLocked()
	return w.writeAloneLocked(p)
}

// writeAloneLocked is the part of bypassLocked between enterLocked and leaveLocked. If it must wait for a sync, it
// does so before it stops the other calls. End is the offset after p.
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

// aloneLocked reports whether a large Write may go to the file at once: to a steady file, when no other call is at work, no byte
// waits in memory, and there is nothing to report.
func (w *Writer) aloneLocked() bool {
	f, r := &w.flush, &w.reports
	return w.target.steady && !w.isClosing && !f.turn.taken && !f.exclusive && !f.flushing && !f.stuck && f.heldUp == 0 && w.fill.pos == 0 &&
		r.unreported == nil && r.final == nil && !w.dirtyLocked()
}

// accept is the slow path of Write. It is called with the lock and returns without it.
//
// A large Write that is alone goes to the file here: a Write without a buffer is to cost what write(2) costs. So this defers
// nothing, because a steady file does not panic, and calls no function that it need not: on the way back from a system call
// each one takes 6 to 9 ns (docs/design/decisions.md). What the kernel has not taken goes to writeFileLocked, unless it was
// refused with an error: that may be of bytes before (NFS), and is told once.
func (w *Writer) accept(p []byte) (n int, end int64, err error) {
	if len(p) <= w.large || !w.aloneLocked() {
		return w.acceptAmongOthers(p)
	}
	f := &w.flush
	f.turn.taken, f.exclusive, f.flushing = true, true, true // and fill.limit is 0, because no byte waits
	start := w.startTimeLocked(len(p))
	w.mu.Unlock()
	if t := &w.target; !t.own {
		n, err = t.file.Write(p) // an os.File tries again itself; so does a log, or not: another process may have written behind a part
	} else if n, err = t.fd.WriteOnce(p); err != nil { // an os.File takes a tenth of a short write to guard its descriptor from a Close
		err = &fs.PathError{Op: "write", Path: t.osFile.Name(), Err: err}
	}
	w.mu.Lock()
	w.wroteLocked(start, 1, n == len(p))
	if n < len(p) && err == nil {
		var rest int
		rest, err = w.writeFileLocked(p[n:])
		n += rest
	}
	w.fill.base += int64(n)
	f.flushed = w.fill.base
	if n > 0 {
		w.fill.writes++
		w.sync.age.Begin()
	}
	if end = w.fill.base; err != nil {
		err, end = w.writeErrorLocked(err, false), 0
	}
	f.exclusive, f.flushing = false, false
	if w.due.Sync > 0 || w.due.SyncBytes > 0 {
		w.settleLocked()
	}
	f.space.Broadcast()
	w.leaveLocked()
	w.mu.Unlock()
	return n, end, err
}

// awaitBypassLocked waits until exclusive ends, or Close begins.
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

// A handoff is a mutex that Close can abort: it admits one goroutine at a time, and
// Close releases the waiters. Like sync.Mutex it is fast, because a running goroutine may
// take it before a woken one, at most maxPassed times in a row and never under
// sync=each. The Writer's lock guards it.
type handoff struct {
	taken   bool
	free    spin.Cond
	waiting int  // number of goroutines that wait for free
	woken   bool // a waiter was woken and does not run yet
	given   bool // the next waiter to wake has it
	passed  int  // times that others took it while a goroutine waited
}

// maxPassed bounds a waiter's wait: at most maxPassed Writes for each waiter before it.
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
