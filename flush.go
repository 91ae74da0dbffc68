package holdfast

import "time"

// flushToLocked flushes up to end at least, or waits for who does. It takes along
// what came after: that may be due too.
func (w *Writer) flushToLocked(end int64) error {
	for w.flushed < end {
		if err := w.flushStepLocked(w.writtenLocked()); err != nil {
			return err
		}
	}
	return nil
}

// makeRoomLocked does one step towards room for n bytes.
func (w *Writer) makeRoomLocked(n int) error {
	if !w.exclusive {
		return w.flushStepLocked(w.roomForLocked(n))
	}
	w.heldUp++
	w.idle.Wait()
	w.heldUp--
	if w.heldUp == 0 {
		w.idle.Broadcast()
	}
	return nil
}

// flushStepLocked waits for the flush in flight, or is it: it hands one stretch
// of the ring below end to the kernel, without the lock.
func (w *Writer) flushStepLocked(end int64) error {
	if w.flushing {
		w.idle.Wait()
		return nil
	}
	if w.sealed {
		return ErrClosed
	}
	again := w.stuck
	from := w.placeLocked(w.flushed)
	stretch := w.buf[from : from+min(int(end-w.flushed), len(w.buf)-from)]
	w.flushing = true
	w.mu.Unlock()
	n, calls, err := w.target.write(stretch)
	w.mu.Lock()
	w.flushing = false
	w.flushed += int64(n)
	w.spillLocked()
	w.countFlushesLocked(calls)
	w.stuck = err != nil && w.flushed < w.writtenLocked()
	w.restLocked()
	w.openLocked()
	w.idle.Broadcast()
	if err != nil {
		return w.writeErrorLocked(err, again && n == 0)
	}
	return nil
}

func (w *Writer) writeErrorLocked(err error, again bool) error {
	return &WriteError{Path: w.target.path, Flushed: w.flushed, Durable: w.durable, Err: err, again: again}
}

func (w *Writer) countFlushesLocked(calls int) {
	w.stats.Flushes += int64(calls)
	w.stats.SystemCalls += int64(calls)
}

// restLocked stops the flush timer when no byte waits.
func (w *Writer) restLocked() {
	if w.flushed == w.writtenLocked() && len(w.lanes) == 0 {
		w.flushTimer.disarm()
	}
}

// fastFill tells writers that are limited by the kernel from those that are not.
// When blocks fill faster than this, to hand one to another goroutine hides
// nothing: the next is full before the kernel is done; and it costs a wake and
// the transfer of the block between two cores' caches.
const fastFill = time.Millisecond

// flushFullLocked sees to it that full blocks are flushed: in the background, so
// that no Write waits for the kernel, or right here if blocks fill fast, which it
// reports.
func (w *Writer) flushFullLocked() (fast bool) {
	full := w.fullLocked()
	if full <= w.flushed {
		return false
	}
	if full == w.full {
		w.startLocked(&w.flusher) // another look at the same block
		return false
	}
	last := w.filled
	w.full, w.filled = full, time.Since(w.began)
	if w.flushing || w.filled-last > fastFill {
		w.startLocked(&w.flusher)
		return false
	}
	// What fails here is told by the next call: these bytes are accepted.
	w.noteLocked(w.flushStepLocked(full))
	return true
}

// runFlusher flushes full blocks, and everything when the deadline has passed,
// until nothing is left to do.
func (w *Writer) runFlusher() {
	defer w.background.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.flushDueLocked()
	if err != nil {
		w.flushTimer.arm() // try again in a while
	}
	w.noteLocked(err)
	w.flusher.running = false
}

func (w *Writer) flushDueLocked() error {
	for !w.isClosing {
		var err error
		if w.flushing {
			w.idle.Wait() // what is due then is more than what is due now
			continue
		}
		if w.flusher.due {
			w.flusher.due = false
			w.flushTimer.disarm()
			w.openLocked()
			err = w.withLanesLocked(w.flushToLocked)
		} else if full := w.fullLocked(); full > w.flushed {
			err = w.flushStepLocked(full)
		} else {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}
