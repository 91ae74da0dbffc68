package holdfast

// spillShare is the part of a block that a Writer has behind its first block, for the
// rest of the record that fills the block.
const spillShare = 8

// isRingLocked reports whether memory is the ring of two blocks. At first it is one
// block and its spill: a single goroutine that fills blocks and flushes them needs no
// second one. Its first byte has the offset lap, where a block begins, and all that is
// not flushed lies behind it.
func (w *Writer) isRingLocked() bool { return len(w.buf) == 2*w.block }

// growLocked makes the ring, without the lock, or waits for the goroutine that does.
func (w *Writer) growLocked() {
	if w.growing {
		w.idle.Wait()
		return
	}
	w.growing = true
	w.mu.Unlock()
	ring := make([]byte, 2*w.block)
	w.mu.Lock()
	w.growing = false
	// A flush in flight reads the bytes from the old memory.
	held := w.buf[:w.pos]
	at := int(w.lap % int64(len(ring)))
	copy(ring, held[copy(ring[at:], held):])
	written := w.writtenLocked()
	w.buf = ring
	w.moveLocked(written)
	w.openLocked()
	w.idle.Broadcast()
}

// moveLocked makes pos and lap those of the offset where the next byte goes.
func (w *Writer) moveLocked(written int64) {
	size := int64(w.block)
	if w.isRingLocked() {
		size *= 2
	}
	w.pos = 0
	if size > 0 {
		w.pos = int(written % size)
	}
	w.lap = written - int64(w.pos)
}

// wrapLocked starts the ring anew at its end.
func (w *Writer) wrapLocked() {
	if w.pos == len(w.buf) && w.isRingLocked() {
		w.lap += int64(len(w.buf))
		w.pos = 0
	}
}
