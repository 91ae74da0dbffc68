package holdfast

// spillShare is the part of a strip that a Writer has behind its first strip, for the
// rest of the record that fills the strip.
const spillShare = 8

// isRingLocked reports whether memory is the ring of two blocks. At first it grows with
// what it holds, up to a strip and its spill: a single goroutine that fills strips and
// flushes them needs no more. Its first byte has the offset lap, and all that is not
// flushed lies behind it.
func (w *Writer) isRingLocked() bool { return len(w.buf) == 2*w.block }

// growLocked makes more memory, without the lock, or waits for the goroutine that does.
// It makes the ring if need bytes fit into no less.
func (w *Writer) growLocked(need int) {
	if w.growing {
		w.idle.Wait()
		return
	}
	const first, growth = 1024, 4 // a file of one record needs no more than the first
	size := 2 * w.block
	if most := w.strip + w.strip/spillShare; need <= most {
		size = min(most, max(need, first, growth*len(w.buf)))
	}
	w.growing = true
	w.mu.Unlock()
	memory := make([]byte, size)
	w.mu.Lock()
	w.growing = false
	// A flush in flight reads the bytes from the old memory.
	held := w.buf[:w.pos]
	written := w.writtenLocked()
	at := 0
	if size == 2*w.block {
		at = int(w.lap % int64(size))
	}
	copy(memory, held[copy(memory[at:], held):])
	w.buf = memory
	w.moveLocked(written)
	w.openLocked()
	w.idle.Broadcast()
}

// moveLocked makes pos and lap those of the offset where the next byte goes.
func (w *Writer) moveLocked(written int64) {
	switch ring := int64(len(w.buf)); {
	case !w.isRingLocked() && w.flushed < written:
		w.pos = int(written - w.lap)
		return
	case !w.isRingLocked() || ring == 0:
		w.pos = 0
	default:
		w.pos = int(written % ring)
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
