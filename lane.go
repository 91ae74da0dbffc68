package holdfast

import (
	"sync/atomic"
	"unsafe"
)

// A Lane is one goroutine's own way into a [Writer]: a small buffer whose whole
// records are merged into the Writer's memory in their order, so that many
// goroutines on many cores do not meet at every record. All that the policy
// promises holds for them, and the Writer's Flush, Sync and Close cover them.
//
// A Lane is for one goroutine; the Writer's methods may run beside it. Its
// buffer is taken from the Writer's memory until Close. It is an [io.ByteWriter],
// which a Writer is not: a byte at a time is for a goroutine with a buffer of its
// own.
type Lane struct {
	// The owner fills buf and then publishes n, without a lock; others take what
	// lies below n under mu. Each accepted record goes like this:
	//
	//	the owner                          who ends what laneLimit promises
	//	copies the record behind n         stores 0 in laneLimit
	//	publishes the new n                has the fence
	//	looks at laneLimit                 looks at n
	//
	// As in Dekker's algorithm at least one sees the other. Either the owner saw a
	// limit that stood: then the policy's clocks ran, no error waited to be told,
	// and whoever ended that has seen the record, or will when he merges. Or he
	// saw none: then the record is not accepted yet, and settle says what becomes
	// of it. Where the owner publishes with an atomic store that is all; where he
	// does it with a plain one, the fence between his store and his load is put in
	// by the other side (see lanesWantBarrier).
	n         int32
	limit     *int32 // the Writer's laneLimit, or never
	byteLimit *int32 // the same for WriteByte, which can't do without the fence
	buf       []byte // one byte longer than size: WriteByte looks when it has put the byte
	w         *Writer
	size      int  // how much may be held; 0: every Write goes to the Writer
	done      bool // the owner has called Close
	never     int32

	mu     spinlock // taken before the Writer's
	taken  int32    // how much of buf was merged; guarded by mu, as is
	closed bool     // nothing will merge what comes now
	sure   int32    // what is accepted for certain; guarded by the Writer's lock, see endLocked

	_ [40]byte // two owners must not write to one cache line
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

// laneBuffer is how long a lane's buffer is.
func (w *Writer) laneBuffer() int { return max(minLane, w.block/lanesPerBlock) }

// Lane returns a new Lane. Under sync=group and sync=each, with no buffer, or
// when other lanes have taken all memory that lanes may have, each of its Writes
// is the Writer's.
func (w *Writer) Lane() *Lane {
	l := &Lane{w: w}
	l.limit, l.byteLimit = &l.never, &l.never
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.isRingLocked() && !w.policy.acknowledgesDurable() {
		w.growLocked()
	}
	least := 2*w.block - 2*w.block/lanesShare
	if w.policy.acknowledgesDurable() || w.isClosing || w.room-w.laneBuffer() < least {
		l.buf = make([]byte, 1)
		return l
	}
	l.buf = make([]byte, w.laneBuffer())
	l.size = len(l.buf) - 1
	w.room -= len(l.buf)
	// A new slice: who merges lanes reads the old one without the lock.
	w.lanes = append(w.lanes[:len(w.lanes):len(w.lanes)], l)
	if lanesWantBarrier {
		w.wantBarrierLocked(true)
	}
	w.openLocked()
	return l
}

// Write accepts p as [Writer.Write] does.
func (l *Lane) Write(p []byte) (n int, err error) {
	at := int(l.n)
	if end := at + len(p); end < int(atomic.LoadInt32(l.limit)) {
		copy(l.buf[at:], p)
		l.publish(int32(end))
		if atomic.LoadInt32(l.limit) > 0 || l.settle(at) {
			return len(p), nil
		}
	}
	return l.writeSlow(p)
}

// WriteString is Write for a string.
func (l *Lane) WriteString(s string) (n int, err error) {
	return l.Write(unsafe.Slice(unsafe.StringData(s), len(s)))
}

// writeByteSlow settles what becomes of the byte that WriteByte has put.
func (l *Lane) writeByteSlow() error {
	if l.size == 0 {
		l.n = 0 // nobody else looks at it
		_, err := l.writeSlow(l.buf[:1])
		return err
	}
	end := l.n
	at := int(end) - 1
	if l.byteLimit != l.limit {
		// The fence is not to be had: the owner brings his own.
		atomic.StoreInt32(&l.n, end)
		if end < atomic.LoadInt32(l.limit) {
			return nil
		}
	}
	if l.settle(at) {
		return nil
	}
	_, err := l.writeSlow(l.buf[at:end])
	return err
}

// settle decides on what the owner has published behind at, and reports whether it
// is accepted: because it was merged meanwhile, or because nothing is in the way of
// merging it here, which is also what makes room for WriteByte. If not, it is taken
// back, and nobody will merge it any more.
func (l *Lane) settle(at int) bool {
	l.mu.Lock()
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	accepted := int(l.taken) > at
	mergeable := !accepted && l.mergeableLocked()
	if mergeable {
		l.w.putLaneLocked(l)
		l.admittedLocked()
	}
	if accepted || mergeable {
		at, l.taken = 0, 0 // nothing is held
	}
	atomic.StoreInt32(&l.n, int32(at))
	l.sure = min(l.sure, int32(at))
	l.mu.Unlock()
	if mergeable {
		l.w.flushFullLocked()
	}
	return accepted || mergeable
}

func (l *Lane) mergeableLocked() bool {
	held := int(l.n - l.taken)
	return held > 0 && !l.w.trouble && !l.closed && l.w.readyLocked(held)
}

// admittedLocked lets the owner go by laneLimit from now on: his share of memory is
// free.
func (l *Lane) admittedLocked() {
	l.limit = &l.w.laneLimit
	if !lanesWantBarrier || l.w.mu.barrier.Load() {
		l.byteLimit = l.limit
	}
}

func (l *Lane) writeSlow(p []byte) (int, error) {
	if l.done {
		return 0, ErrClosed
	}
	if l.size == 0 {
		return l.w.Write(p)
	}
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
	return l.taken == l.n || n <= l.size-int(l.n)
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
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	at := int(l.n)
	if l.taken == l.n {
		at, l.taken = 0, 0
	}
	l.sure = int32(at + copy(l.buf[at:], p))
	atomic.StoreInt32(&l.n, l.sure)
	l.admittedLocked()
	if len(p) > 0 {
		l.w.armLocked()
		l.w.openLocked()
	}
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
	l.limit, l.byteLimit = &l.never, &l.never
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
	w.room += len(l.buf)
	l.sure = l.n
	w.openLocked()
}

// openLanesLocked lets the owners of lanes accept records without a look at
// anything else, or ends that and sees to it that none is overlooked that was
// accepted so.
func (w *Writer) openLanesLocked(open, trouble bool) {
	limit := int32(0)
	if open {
		limit = int32(w.laneBuffer())
	}
	if limit != w.laneLimit {
		atomic.StoreInt32(&w.laneLimit, limit)
		if !open && w.mu.barrier.Load() {
			fence()
		}
	}
	if trouble == w.trouble {
		return // a store would take the line from owners who look at laneLimit
	}
	w.trouble = trouble
	for _, l := range w.lanes {
		l.sure = atomic.LoadInt32(&l.n)
	}
}

// endLocked returns up to where l may be merged. WriteByte publishes a byte before
// it knows whether it may: while an error waits to be told, or when nothing more
// is accepted, such a byte must not be merged, for its call is going to fail.
func (l *Lane) endLocked() int32 {
	if l.w.trouble || l.closed {
		return l.sure
	}
	return atomic.LoadInt32(&l.n)
}

// admit waits until a Lane may accept bytes, or returns why it may not. While a
// straight write is under way it may not: what came now would be flushed late.
// Nor while the ring holds more than it may since the Lane took its share.
func (w *Writer) admit() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		if err := w.refusalLocked(); err != nil || w.readyLocked(0) {
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
	if l.taken == atomic.LoadInt32(&l.n) {
		return 0, true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	held := l.heldLocked()
	if len(held) == 0 {
		return 0, true
	}
	if w.isClosing || !w.readyLocked(len(held)) {
		return len(held), false
	}
	w.putLaneLocked(l)
	return 0, true
}

func (l *Lane) heldLocked() []byte { return l.buf[l.taken:l.endLocked()] }

func (w *Writer) putLaneLocked(l *Lane) {
	held := l.heldLocked()
	w.writes++
	l.taken += int32(len(held))
	w.putLocked(held)
}
