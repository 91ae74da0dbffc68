package holdfast

import "errors"

// Close flushes all that was accepted, by Lanes too, syncs unless the policy is
// sync=never, closes the file, and returns every failure of these and of the
// background that no call has returned yet. It tries each step whatever the
// steps before came to. What could not be flushed is lost with the Writer; the
// [WriteError] tells from which byte on.
//
// Calls that wait for memory return ErrClosed, as every later call does. Another
// Close waits for the first and returns what it returned. Close waits for calls
// that the kernel has not finished, however long that takes.
func (w *Writer) Close() error {
	w.mu.lockForGood()
	defer w.mu.Unlock()
	if w.isClosing {
		for !w.closed {
			w.idle.Wait()
		}
		return w.closeErr
	}
	w.isClosing = true
	close(w.closing)
	w.openLocked()
	w.idle.Broadcast()
	w.straight.free.Broadcast()

	flushErr := w.drainLocked()
	syncErr := w.lastSyncLocked()
	w.sealLocked()

	w.mu.Unlock()
	w.background.Wait()
	closeErr := w.target.close()
	w.mu.Lock()
	w.stats.SystemCalls++
	w.closeErr = joinDistinct(w.unreported, flushErr, syncErr, w.final, closeErr)
	w.closed = true
	w.flushTimer.disarm()
	w.syncTimer.disarm()
	w.idle.Broadcast()
	return w.closeErr
}

// drainLocked flushes what the ring holds and then what lanes hold, for which
// there is room then.
func (w *Writer) drainLocked() error {
	for w.straight.taken {
		w.idle.Wait()
	}
	err := w.flushToLocked(w.writtenLocked())
	w.closeLanesLocked()
	return joinDistinct(err, w.flushToLocked(w.writtenLocked()))
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
	if !w.policy.syncs() {
		return nil
	}
	if w.flushed == w.writtenLocked() {
		return w.commitLocked(background, w.writtenLocked())
	}
	for w.commit.leading {
		w.idle.Wait()
	}
	if w.final != nil || w.durable == w.flushed && !w.nameless {
		return nil
	}
	w.commit.leading = true
	defer func() { w.commit.leading = false }()
	return w.syncLocked()
}

// sealLocked lets what is under way end, and nothing begin.
func (w *Writer) sealLocked() {
	for w.commit.leading || w.flushing {
		w.idle.Wait()
	}
	w.sealed = true
	w.commit.wakeAll()
}

// joinDistinct joins the errors without saying the same thing twice: what failed
// in the background mostly fails again in Close.
func joinDistinct(errs ...error) error {
	said := map[string]bool{}
	var distinct []error
	for _, err := range errs {
		if err != nil && !said[err.Error()] {
			said[err.Error()] = true
			distinct = append(distinct, err)
		}
	}
	if len(distinct) == 1 {
		return distinct[0]
	}
	return errors.Join(distinct...)
}
