package holdfast

import "github.com/holdfast-go/holdfast/internal/reuse"

// spillShare is the part of a strip that a Writer has behind its first strip, for the
// rest of the record that fills the strip.
const spillShare = 8

// isRingLocked reports whether memory is the ring of two blocks. At first it grows with
// what it holds, up to a strip and its spill. A single goroutine that fills strips and
// flushes them needs no more.
func (w *Writer) isRingLocked() bool { return w.block > 0 && len(w.buf) == 2*w.block }

// releaseLocked lets go of memory if it is empty. The next byte takes it again, unless the garbage
// collector has come before: so it is freed if the Writer is idle.
func (w *Writer) releaseLocked() {
	if w.flushed < w.writtenLocked() || len(w.buf) < reuse.First || len(w.lanes) > 0 { // a Lane is merged into memory that is there
		return
	}
	w.memory.Leave(w.buf)
	w.buf, w.pos, w.lap = nil, 0, w.flushed
	w.openLocked()
}

// growLocked takes more memory. It makes it without the lock, or waits for the goroutine that does.
// It makes the ring if need bytes fit into no less.
func (w *Writer) growLocked(need int) {
	if w.growing {
		w.idle.Wait()
		return
	}
	const growth = 4
	size := 2 * w.block
	if most := w.strip + w.strip/spillShare; need <= most {
		for size = reuse.First; size < need; size *= growth {
		}
		size = min(most, size)
	}
	memory := w.memory.Again(size)
	if memory == nil {
		w.growing = true
		w.mu.Unlock()
		memory = w.memory.Make(size)
		w.mu.Lock()
		w.growing = false
	}
	// A flush in flight reads the bytes from the old memory.
	held := w.buf[:w.pos]
	w.buf = memory
	at := 0
	if w.isRingLocked() {
		at = w.inStripLocked(w.lap)
	}
	copy(memory, held[copy(memory[at:], held):])
	w.lap -= int64(at)
	if w.pos += at; w.pos > len(memory) {
		w.pos -= len(memory)
		w.lap += int64(len(memory))
	}
	w.openLocked()
	w.idle.Broadcast()
}

// inStripLocked returns where in its strip an offset is. In the ring each strip begins at
// a multiple of strips, so that none lies across the ring's end and takes two flushes.
func (w *Writer) inStripLocked(offset int64) int { return int(offset % int64(w.strip)) }

// wrapLocked goes on at the beginning of the ring when its end is reached.
func (w *Writer) wrapLocked() {
	if w.pos == len(w.buf) && w.isRingLocked() {
		w.lap += int64(len(w.buf))
		w.pos = 0
	}
}

// placeLocked returns where in memory the byte of an offset is that is not flushed yet.
func (w *Writer) placeLocked(offset int64) int {
	if offset < w.lap {
		return int(offset-w.lap) + len(w.buf)
	}
	return int(offset - w.lap)
}

// restartLocked starts memory anew with what is not flushed, so that the next strip takes
// the same memory as the last, which the caches hold. No flush may be in flight.
func (w *Writer) restartLocked() {
	held, to := int(w.writtenLocked()-w.flushed), 0
	if w.isRingLocked() {
		to = w.inStripLocked(w.flushed)
		most := w.strip / spillShare
		if w.block > w.strip {
			most = w.strip / 2 // the caches do not hold this ring: a copy takes less time than to go on in it
		}
		if held > 0 && (w.flushed <= w.lap+int64(to) || held > most) {
			return
		}
	}
	at := w.pos - held
	copy(w.buf[to:], w.buf[at:w.pos])
	w.pos, w.lap = to+held, w.flushed-int64(to)
}
