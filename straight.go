package holdfast

import "sync"

// writeStraightLocked hands p to the kernel from the caller's memory, behind all
// that was accepted before it. It is the way of Writes that memory can't hold.
func (w *Writer) writeStraightLocked(p []byte) (n int, err error) {
	if err := w.enterLocked(); err != nil {
		return 0, err
	}
	defer w.leaveLocked()
	return w.writeAloneLocked(p)
}

// writeAloneLocked is writeStraightLocked for the one whose turn it is.
func (w *Writer) writeAloneLocked(p []byte) (n int, err error) {
	if err := w.clearWayLocked(); err != nil {
		return 0, err
	}
	w.flushing = true
	w.mu.Unlock()
	n, calls, err := w.target.write(p)
	w.mu.Lock()
	w.flushing = false
	w.countFlushesLocked(calls)
	w.skipLocked(n)
	if n > 0 {
		w.writes++
		w.syncTimer.arm()
	}
	if err != nil {
		err = w.writeErrorLocked(err, false)
	}
	w.giveWayLocked()
	return n, err
}

// clearWayLocked stops others from accepting bytes and flushes what they
// accepted; on an error they may go on. Those whom the last straight write held
// up, and what lanes hold, go first, so that a stream of straight writes keeps
// nobody waiting beyond one.
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
	w.openLocked()
	for err == nil && (w.flushed < w.writtenLocked() || w.flushing) {
		if err = w.flushStepLocked(w.writtenLocked()); err == nil {
			err = w.refusalLocked()
		}
	}
	if err != nil {
		w.giveWayLocked()
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
	written := w.writtenLocked() + int64(n)
	w.flushed = written
	w.moveLocked(written)
}

// A turn admits one goroutine at a time. Like sync.Mutex it lets a goroutine that
// runs take it before one that must be woken, which is what makes it fast, but
// not more than maxPassed times. Unlike a mutex it lets Close release those who
// wait. It is guarded by the Writer's lock.
type turn struct {
	taken   bool
	free    sync.Cond
	waiting int  // how many wait for free
	woken   bool // one of them is on its way
	given   bool // the next of them to wake has the turn
	passed  int  // how often the turn went on while somebody waited
}

// maxPassed bounds the wait to some dozens of Writes for each who waits.
const maxPassed = 128

func (w *Writer) enterLocked() error {
	t := &w.straight
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
	t := &w.straight
	t.passed++
	t.given = t.waiting > 0 && t.passed >= maxPassed
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
