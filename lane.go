package holdfast

import "unsafe"

// A Lane is one goroutine's own way into a [Writer]: a small buffer whose whole
// records are merged into the Writer's memory in their order, so that many
// goroutines on many cores do not meet at every record. All that the policy
// promises holds for them, and the Writer's Flush, Sync and Close cover them.
//
// A Lane is for one goroutine; the Writer's methods may run beside it. Its
// buffer is taken from the Writer's memory until Close.
type Lane struct {
	w    *Writer
	size int  // 0: every Write goes to the Writer
	done bool // the owner has called Close

	mu     spinlock // taken before the Writer's
	buf    []byte   // guarded by mu, as all below
	closed bool     // nothing will merge what comes now
}

const (
	// lanesShare is the part of the ring that lanes may have: a quarter, so
	// that the Writer itself always has room for a record of a whole block.
	lanesShare = 4
	// lanesPerBlock makes a lane 2 KiB of 256 KiB: some dozens of records,
	// which is enough to make a merge cheap.
	lanesPerBlock = 128
	minLane       = 512
)

// Lane returns a new Lane. Under sync=group and sync=each, with no buffer, or
// when other lanes have taken all memory that lanes may have, each of its Writes
// is the Writer's.
func (w *Writer) Lane() *Lane {
	l := &Lane{w: w}
	w.mu.Lock()
	defer w.mu.Unlock()
	size := max(minLane, w.block/lanesPerBlock)
	least := len(w.buf) - len(w.buf)/lanesShare
	if w.policy.acknowledgesDurable() || w.isClosing || w.room-size < least {
		return l
	}
	l.size, l.buf = size, make([]byte, 0, size)
	w.room -= size
	// A new slice: who merges lanes reads the old one without the lock.
	w.lanes = append(w.lanes[:len(w.lanes):len(w.lanes)], l)
	w.openLocked()
	return l
}

// Write accepts p as [Writer.Write] does.
func (l *Lane) Write(p []byte) (n int, err error) {
	if l.done {
		return 0, ErrClosed
	}
	if l.size == 0 {
		return l.w.Write(p)
	}
	l.mu.Lock()
	if held := len(l.buf); held > 0 && len(p) <= l.size-held && !l.w.trouble.Load() {
		l.buf = append(l.buf, p...)
		l.mu.Unlock()
		return len(p), nil
	}
	l.mu.Unlock()
	return l.writeSlow(p)
}

// WriteString is Write for a string.
func (l *Lane) WriteString(s string) (n int, err error) {
	return l.Write(unsafe.Slice(unsafe.StringData(s), len(s)))
}

func (l *Lane) writeSlow(p []byte) (int, error) {
	if err := l.w.admit(); err != nil {
		return 0, err
	}
	if !l.fits(len(p)) {
		if err := l.w.merge(l); err != nil {
			return 0, err
		}
	}
	if len(p) > l.size {
		return l.w.Write(p)
	}
	return l.begin(p)
}

func (l *Lane) fits(n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return n <= l.size-len(l.buf)
}

// begin puts p, which fits, into the buffer. It starts the Writer's clocks under
// both locks: a flush by time either has not begun and finds p here, or p finds
// its clock stopped and starts it.
func (l *Lane) begin(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, ErrClosed
	}
	if len(p) > 0 {
		l.w.mu.Lock()
		l.w.armLocked()
		l.w.openLocked()
		l.w.mu.Unlock()
	}
	l.buf = append(l.buf, p...)
	return len(p), nil
}

// Close merges what the Lane holds and gives its memory back. It does not flush.
// A Lane that is not closed loses nothing: its Writer's Close covers it.
func (l *Lane) Close() error {
	if l.done || l.size == 0 {
		l.done = true
		return nil
	}
	if err := l.w.merge(l); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done, l.closed = true, true
	l.w.dropLane(l)
	return nil
}

func (w *Writer) dropLane(l *Lane) {
	w.mu.Lock()
	defer w.mu.Unlock()
	kept := make([]*Lane, 0, len(w.lanes))
	for _, other := range w.lanes {
		if other != l {
			kept = append(kept, other)
		}
	}
	w.lanes = kept
	w.room += l.size
	w.openLocked()
}

// admit waits until a Lane may accept bytes, or returns why it may not. While a
// straight write is under way it may not: what came now would be flushed late.
func (w *Writer) admit() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		if err := w.refusalLocked(); err != nil || !w.stuck && !w.exclusive {
			return err
		}
		if err := w.makeRoomLocked(0); err != nil {
			return err
		}
	}
}

// mergeLanesLocked merges what all lanes hold now. It lets go of the lock while
// it does: a lane's lock comes first.
func (w *Writer) mergeLanesLocked() error {
	lanes := w.lanes
	if len(lanes) == 0 {
		return nil
	}
	w.mu.Unlock()
	defer w.mu.Lock()
	for _, l := range lanes {
		if err := w.merge(l); err != nil {
			return err
		}
	}
	return nil
}

// withLanesLocked takes step up to what is written, lanes included. What can't
// be merged at once, because memory is full or a straight write is under way,
// does not hold up the rest.
func (w *Writer) withLanesLocked(step func(end int64) error) error {
	merged := w.mergeReadyLanesLocked()
	if err := step(w.writtenLocked()); err != nil || merged {
		return err
	}
	if err := w.mergeLanesLocked(); err != nil {
		return err
	}
	return step(w.writtenLocked())
}

// mergeReadyLanesLocked merges the lanes that there is room for, and reports
// whether those were all.
func (w *Writer) mergeReadyLanesLocked() bool {
	lanes := w.lanes
	if len(lanes) == 0 {
		return true
	}
	w.mu.Unlock()
	defer w.mu.Lock()
	all := true
	for _, l := range lanes {
		_, done := w.tryMerge(l)
		all = all && done
	}
	return all
}

// merge moves what l holds into the ring, whole. No lock is held while it waits
// for room.
func (w *Writer) merge(l *Lane) error {
	for {
		n, done := w.tryMerge(l)
		w.mu.Lock()
		if done {
			w.flushFullLocked()
			w.mu.Unlock()
			return nil
		}
		err := w.makeRoomUnlessClosingLocked(n)
		w.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

func (w *Writer) makeRoomUnlessClosingLocked(n int) error {
	if w.isClosing {
		return ErrClosed // Close merges what is left
	}
	if w.readyLocked(n) {
		return nil
	}
	return w.makeRoomLocked(n)
}

// tryMerge returns how much l holds and whether that has been merged.
func (w *Writer) tryMerge(l *Lane) (n int, done bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.buf) == 0 {
		return 0, true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isClosing || !w.readyLocked(len(l.buf)) {
		return len(l.buf), false
	}
	w.putLaneLocked(l)
	return 0, true
}

func (w *Writer) putLaneLocked(l *Lane) {
	w.writes++
	w.putLocked(l.buf)
	l.buf = l.buf[:0]
}
