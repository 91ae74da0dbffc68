package holdfast

import (
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/holdfast-go/holdfast/internal/spin"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// A Lane is one goroutine's own way into a [Writer]. It is a small buffer of records,
// which the Writer merges into its memory whole and in order. So many goroutines on
// many cores do not contend for each record. The policy's promises hold for a Lane's
// records too, and the Writer's Flush, Sync and Close cover them.
//
// A Lane is for one goroutine; the Writer's methods may run concurrently. Its
// buffer is taken from the Writer's memory until Close. Unlike a Writer it is an
// [io.ByteWriter]: single bytes are only fast in a buffer of the goroutine's own.
type Lane struct {
	// The owner fills buf and then publishes n, without a lock; other goroutines take
	// the bytes below n, under mu. For each accepted record:
	//
	//	the owner                          the goroutine that revokes the limit
	//	copies the record behind n         stores 0 in the limit
	//	publishes the new n                has the fence
	//	looks at the limit                 looks at n
	//
	// As in Dekker's algorithm at least one sees the other. If the owner saw a limit,
	// the policy's clocks ran and no error waited for a call to return it. The other
	// side has seen the record, or sees it when it merges. If the owner saw 0, the
	// record is not accepted yet, and settle decides. An atomic store needs no more
	// than this. With spin.StoreRelease, the other side puts the fence between the owner's
	// store and its load (see fenceLocked).
	n     atomic.Int32
	limit *atomic.Int32 // the Writer's laneLimit or fencedLimit, or never
	// byteLimit is the same for WriteByte, but never where there is no fence.
	byteLimit *atomic.Int32
	buf       []byte // one byte longer than size: WriteByte puts the byte before it looks
	w         *Writer
	size      int  // how much may be held; 0: every Write goes to the Writer
	done      bool // the owner has called Close
	never     atomic.Int32

	mu     spin.Mutex // taken before the Writer's
	taken  int32      // how much of buf was merged; guarded by mu
	closed bool       // nothing merges what comes from now on; guarded by mu
	sure   int32      // what is accepted for certain; guarded by the Writer's lock, see endLocked

	_ [16]byte // two owners must not write to one cache line
}

// lanesShare is the part of the ring that lanes may have: 3 of so many parts. What is left
// always has room for a record of a whole block.
const lanesShare = 8

// mostGathered bounds a record that is gathered: to copy a longer one twice takes longer than a lock.
const mostGathered = 256

// laneBuffer is how long a lane's buffer is beside so many others. From good bytes on it holds
// enough records to make a merge cheap; a small block has as many as it has room for. A few
// lanes have more.
func (w *Writer) laneBuffer(others int) int {
	const least, good, few, more = 512, 2048, 8, 8192
	most := good
	if others < few {
		most = more
	}
	return max(least, min(most, w.block/32), w.block/128)
}

// Lane returns a new Lane. It passes each Write on to the Writer under sync=group and
// sync=each, without a buffer, and where other lanes have all the memory of lanes.
func (w *Writer) Lane() *Lane {
	l := &Lane{w: w}
	l.limit, l.byteLimit = &l.never, &l.never
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.block > 0 && !w.isRingLocked() && !w.policy.Sync.Waits() {
		w.growLocked(2 * w.block)
	}
	size := w.laneBuffer(len(w.lanes))
	if w.policy.Sync.Waits() || w.isClosing || w.room-size < 2*w.block-3*(2*w.block/lanesShare) {
		l.buf = make([]byte, 1)
		return l
	}
	l.buf = make([]byte, size)
	l.size = len(l.buf) - 1
	w.room -= len(l.buf)
	// A new slice: a goroutine that merges lanes reads the old one without the lock.
	w.lanes = append(w.lanes[:len(w.lanes):len(w.lanes)], l)
	w.wantBarrierLocked()
	w.openLocked()
	return l
}

// Write accepts p as [Writer.Write] does.
func (l *Lane) Write(p []byte) (n int, err error) {
	at := int(l.n.Load())
	if len(p) < len(l.buf)-at && len(p) <= mostGathered {
		copy(l.buf[at:], p)
		l.publish(int32(at + len(p)))
		if l.limit.Load() > 0 || l.settle(at) {
			return len(p), nil
		}
	}
	return l.writeSlow(p)
}

// WriteString is Write for a string.
func (l *Lane) WriteString(s string) (n int, err error) {
	return l.Write(unsafe.Slice(unsafe.StringData(s), len(s)))
}

// WriteByte accepts c as Write accepts a record of one byte. On nil, c is accepted,
// and under sync=group and sync=each durable. On an error it is not in the file; only
// under these two policies, and without a buffer, it may be.
func (l *Lane) WriteByte(c byte) error { return writeByte(l, c) }

// writeByteAtomic is WriteByte with an atomic store.
func (l *Lane) writeByteAtomic(c byte) error {
	n := l.n.Load()
	l.buf[n] = c
	l.n.Store(n + 1)
	if n+1 < l.byteLimit.Load() {
		return nil
	}
	return l.writeByteSlow()
}

// writeByteSlow decides on the byte that WriteByte has put into the buffer.
func (l *Lane) writeByteSlow() error {
	if l.size == 0 {
		l.n.Store(0) // only the owner reads it
		_, err := l.writeSlow(l.buf[:1])
		return err
	}
	end := l.n.Load()
	at := int(end) - 1
	if l.byteLimit != l.limit {
		// There is no fence on the other side: the owner has its own.
		l.n.Store(end)
		if end < l.limit.Load() {
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
// is accepted. It is if it was merged meanwhile, or can be merged here, which also
// makes room for WriteByte. Otherwise settle takes it back, and it is never merged.
func (l *Lane) settle(at int) bool {
	l.mu.Lock()
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	accepted := int(l.taken) > at
	mergeable := !accepted && l.mergeableLocked()
	if mergeable {
		l.w.putLaneLocked(l)
		l.w.openLocked()
		l.admittedLocked()
	}
	if accepted || mergeable {
		at, l.taken = 0, 0 // nothing is held
	}
	l.n.Store(int32(at))
	l.sure = min(l.sure, int32(at))
	l.mu.Unlock()
	if mergeable {
		l.w.flushFullLocked()
	}
	return accepted || mergeable
}

func (l *Lane) mergeableLocked() bool {
	held := int(l.n.Load() - l.taken)
	return held > 0 && !l.w.trouble && !l.closed && l.w.merging == 0 && l.w.readyLocked(held)
}

// admittedLocked gives the owner a limit from now on: its share of memory is free.
func (l *Lane) admittedLocked() {
	if l.w.barrier.Load() {
		l.limit, l.byteLimit = &l.w.fencedLimit, &l.w.fencedLimit
	} else {
		l.limit, l.byteLimit = &l.w.laneLimit, &l.never
	}
}

// publish stores n after all earlier stores. Without a fence on the other side it is
// an XCHG, which takes as long as taking a lock.
func (l *Lane) publish(n int32) {
	if l.byteLimit == l.limit {
		spin.StoreRelease(&l.n, n)
	} else {
		l.n.Store(n)
	}
}

func (l *Lane) writeSlow(p []byte) (int, error) {
	if l.done {
		return 0, ErrClosed
	}
	if l.size == 0 {
		return l.w.Write(p)
	}
	if len(p) > mostGathered && (l.n.Load() == 0 || l.turnOver(nil)) && l.w.copied(p) || l.turnOver(p) {
		return len(p), nil
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

// copied accepts p if that takes a copy alone.
func (w *Writer) copied(p []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock() // the copy may panic, see Write
	if len(p) > w.limit-w.pos {
		return false
	}
	w.pos += copy(w.buf[w.pos:], p)
	w.writes++
	return true
}

func (l *Lane) fits(n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.taken == l.n.Load() || n <= l.size-int(l.n.Load())
}

// begin puts p, which fits, into the buffer. It starts the Writer's clocks under both locks. A flush by
// time either has not begun and finds p here, or p finds its clock stopped and starts it.
func (l *Lane) begin(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, ErrClosed
	}
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	l.beginLocked(p)
	return len(p), nil
}

func (l *Lane) beginLocked(p []byte) {
	if len(p) > 0 {
		l.w.armLocked()
	}
	l.w.openLocked()           // before the copy, which may panic
	if l.taken == l.n.Load() { // nothing is held, also if the copy panics
		l.taken, l.sure = 0, 0
		l.n.Store(0)
	}
	at := int(l.n.Load())
	end := int32(at + copy(l.buf[at:], p))
	l.sure = end
	l.n.Store(end)
	l.admittedLocked()
}

// turnOver merges what the lane holds and begins anew with p, in one step. It reports
// whether it did so, without a wait and without an error to return.
func (l *Lane) turnOver(p []byte) bool {
	full, done := l.tryTurnOver(p)
	if full {
		l.w.mu.Lock()
		defer l.w.mu.Unlock()
		l.w.flushFullLocked() // without the lane's lock: this may take a write
	}
	return done
}

func (l *Lane) tryTurnOver(p []byte) (full, done bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	if len(p) > l.size || !l.mergeableLocked() {
		return false, false
	}
	l.w.putLaneLocked(l)
	l.beginLocked(p)
	return l.w.fullLocked() > l.w.flushed, true
}

// Close merges what the Lane holds and gives its memory back. It does not flush. On an error the
// Lane stays open and loses nothing. Its Writer's Close covers a Lane that is not closed.
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
	w := l.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lanes = slices.DeleteFunc(slices.Clone(w.lanes), func(other *Lane) bool { return other == l }) // see Lane
	w.room += len(l.buf)
	l.sure = l.n.Load()
	w.openLocked()
	return nil
}

// wantBarrierLocked registers the process, once, for the barrier that lanes use.
func (w *Writer) wantBarrierLocked() {
	if !lanesWantBarrier || w.registered || w.isClosing {
		return
	}
	w.registered = true
	if sys.Barrier() == nil { // another Writer has registered it
		w.barrier.Store(true)
		return
	}
	// Without the lock: this may take some ms.
	w.background.Go(func() { w.barrier.Store(sys.RegisterBarrier() == nil) })
}

// fenceLocked makes every thread that runs an owner pass a full barrier, after
// fencedLimit became 0. The kernel may refuse this at any time: the process may have
// entered a seccomp filter, or have been restored from a checkpoint. Then fenceLocked
// stops the world instead, once: a stopped goroutine is at a safepoint, behind its
// stores. After that fencedLimit stays 0, and owners publish with atomic stores.
func (w *Writer) fenceLocked() {
	if sys.Barrier() == nil {
		return
	}
	w.barrier.Store(false)
	runtime.ReadMemStats(new(runtime.MemStats))
}

// openLanesLocked grants or revokes the lock-free fast path of lanes. After it has
// revoked it, every record that was accepted so can be seen.
func (w *Writer) openLanesLocked(open, trouble bool) {
	limit := int32(0)
	if open {
		limit = int32(w.laneBuffer(math.MaxInt)) // of the smallest, for WriteByte
	}
	if limit != w.laneLimit.Load() { // a store takes the line from the owners
		w.laneLimit.Store(limit)
	}
	if !w.barrier.Load() {
		limit = 0
	}
	if limit != w.fencedLimit.Load() {
		w.fencedLimit.Store(limit)
		if limit == 0 {
			w.fenceLocked()
		}
	}
	if trouble == w.trouble {
		return
	}
	w.trouble = trouble
	for _, l := range w.lanes {
		l.sure = l.n.Load()
	}
}

// endLocked returns up to where l may be merged. WriteByte publishes a byte before
// it knows whether the byte is accepted. While an error waits for a call to return it,
// or nothing more is accepted, this byte must not be merged: its call fails.
func (l *Lane) endLocked() int32 {
	if l.w.trouble || l.closed {
		return l.sure
	}
	return l.n.Load()
}

// admit waits until a Lane may accept bytes, or returns why it may not. It waits while a bypass is under
// way: new bytes would be flushed late. It waits too while the ring holds more than the Lane's share leaves.
func (w *Writer) admit() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		switch err := w.refusalLocked(); {
		case err != nil:
			return err
		case w.merging > 0:
			w.idle.Wait()
			continue
		case w.readyLocked(0):
			return nil
		}
		if err := w.makeRoomLocked(0); err != nil {
			return err
		}
	}
}

// mergeLanesLocked merges what all lanes hold now. It releases the lock meanwhile: a
// lane's lock comes first. Room that is made meanwhile is for the lanes: else a
// goroutine that writes without a pause would take it each time.
func (w *Writer) mergeLanesLocked() error {
	lanes := w.lanes
	if len(lanes) == 0 {
		return nil
	}
	w.merging++
	w.openLocked()
	defer func() {
		w.merging--
		w.openLocked()
		w.idle.Broadcast()
	}()
	w.mu.Unlock()
	defer w.mu.Lock()
	for _, l := range lanes {
		if err := w.merge(l); err != nil {
			return err
		}
	}
	return nil
}

// withLanesLocked calls step with what is written, lanes included. If lanes can't be
// merged at once, because memory is full or a bypass is under way, it first calls step
// without them.
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

// mergeReadyLanesLocked merges the lanes that fit into memory now, and reports whether
// these are all.
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
		if err := w.goOn(n, done); done || err != nil {
			return err
		}
	}
}

// goOn takes the next step after n bytes of a lane were merged, or found no room.
func (w *Writer) goOn(n int, merged bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case merged:
		w.flushFullLocked()
		return nil
	case w.isClosing:
		return ErrClosed // Close merges what is left
	case w.readyLocked(n):
		return nil
	}
	return w.makeRoomLocked(n)
}

// tryMerge returns how much l holds and whether that has been merged.
func (w *Writer) tryMerge(l *Lane) (n int, done bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken == l.n.Load() {
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
	w.openLocked()
	return 0, true
}

func (l *Lane) heldLocked() []byte { return l.buf[l.taken:l.endLocked()] }

func (w *Writer) putLaneLocked(l *Lane) {
	held := l.heldLocked() // the caller calls openLocked
	w.writes++
	l.taken += int32(len(held))
	w.putLocked(held)
}
