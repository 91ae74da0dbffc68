package readahead

import (
	"runtime"
	"sync/atomic"
	"time"
)

// more reads the next bytes of the source to the end of the view, as one slice with the unconsumed
// bytes. After an error the unconsumed bytes stay.
func (r *Reader) more() error {
	if r.err != nil {
		return r.err
	}
	if r.ahead == nil && r.pace.wantsAhead(r.source.offset, r.block) {
		r.holdBlock()
		r.ahead = startAhead(&r.source, r.head, r.block)
	}
	if r.ahead != nil {
		return r.take()
	}
	r.makeRoom()
	end := len(r.view)
	r.pace.reads()
	n, err := r.read(r.view[end:min(cap(r.view), end+r.block)])
	r.pace.hasRead()
	return r.got(n, err)
}

// read reads the source in the calling goroutine.
func (r *Reader) read(p []byte) (n int, err error) {
	defer func() { r.err = r.source.failed }() // a panic of the source passes through
	return r.source.read(p)
}

// got appends n bytes to the view, and keeps the error that comes after them.
func (r *Reader) got(n int, err error) error {
	r.view = r.view[:len(r.view)+n]
	r.err = err
	if n == 0 {
		return err
	}
	return nil
}

// makeRoom moves the view so that at least half a block of memory follows it.
func (r *Reader) makeRoom() {
	switch room := cap(r.view) - len(r.view); {
	case r.buffered() > 0 && 2*room >= r.block:
	case r.buffered() <= r.head:
		r.holdBlock()
		r.moveBefore(r.mem)
	default:
		r.lengthen()
	}
}

// holdBlock allocates the Reader's block of memory if there is none.
func (r *Reader) holdBlock() {
	if r.mem == nil {
		r.mem = make([]byte, r.head+r.block)
	}
}

// take is more when a goroutine reads ahead.
func (r *Reader) take() error {
	b := r.ahead.take()
	if b.died {
		r.err = b.err
		if b.cause == nil {
			runtime.Goexit()
		}
		panic(b.cause)
	}
	data := b.mem[r.head : r.head+b.n]
	switch room := cap(r.view) - len(r.view); {
	case r.buffered() > len(data) && room >= len(data):
		// This copies less: many short reads don't move a long line again and again.
		copy(r.view[len(r.view):cap(r.view)], data)
		r.ahead.give(b.mem)
	case r.buffered() <= r.head:
		r.moveBefore(b.mem)
		r.ahead.give(r.mem)
		r.mem = b.mem
	default:
		r.lengthen()
		copy(r.view[len(r.view):cap(r.view)], data)
		r.ahead.give(b.mem)
	}
	return r.got(b.n, b.err)
}

// moveBefore moves the unconsumed bytes to the room before the block in mem. If there is room, it
// moves the byte before them too, for UnreadByte.
func (r *Reader) moveBefore(mem []byte) {
	unread := r.buffered()
	kept := r.view[r.pos:]
	if r.pos > r.low && unread < r.head {
		kept = r.view[r.pos-1:]
	}
	r.low, r.pos = r.head-len(kept), r.head-unread
	copy(mem[r.low:], kept)
	r.view = mem[:r.head]
}

// lengthen moves the unconsumed bytes to new memory with room for a block after them. That memory
// at least doubles, so a line is copied twice at most.
func (r *Reader) lengthen() {
	unread := r.view[r.pos:]
	if cap(r.long)-len(unread) < r.block {
		r.long = make([]byte, 2*len(unread)+r.block)
	}
	n := copy(r.long, unread)
	r.view, r.pos, r.low = r.long[:n], 0, 0
}

// ahead is a goroutine that reads the next block while the caller works on the current one. It
// shares two blocks of memory with the caller.
type ahead struct {
	full    chan loaded
	empty   chan []byte
	stopped atomic.Bool
	done    chan struct{}
}

// A loaded block has n bytes in mem, after the room at its head.
type loaded struct {
	mem []byte
	n   int
	err error // the error after the bytes

	died  bool // the source ended the goroutine: the caller ends too
	cause any  // the panic value; nil: runtime.Goexit
}

// startAhead starts a goroutine that owns the source until done is closed. The caller has the other
// block of memory.
func startAhead(s *source, head, block int) *ahead {
	// Each channel has room for both blocks, so no send ever waits.
	a := &ahead{full: make(chan loaded, 2), empty: make(chan []byte, 2), done: make(chan struct{})}
	a.empty <- make([]byte, head+block)
	go func() {
		defer close(a.done)
		ended := false
		defer func() {
			if !ended { // recover, or the panic would end the whole program
				a.full <- loaded{died: true, cause: recover(), err: s.failed}
			}
		}()
		a.run(s, head)
		ended = true
	}()
	return a
}

// run reads into each block that the caller gives.
func (a *ahead) run(s *source, head int) {
	for mem := range a.empty {
		if a.stopped.Load() {
			return
		}
		n, err := s.read(mem[head:])
		a.full <- loaded{mem: mem, n: n, err: err}
		if err != nil {
			return
		}
	}
}

// take waits for the next block. It must not be called after an error.
func (a *ahead) take() loaded { return <-a.full }

// give returns a block of memory, once for each take.
func (a *ahead) give(mem []byte) { a.empty <- mem }

// stop prevents further Reads. It must be called once, and no give may follow it.
func (a *ahead) stop() {
	a.stopped.Store(true)
	close(a.empty)
}

// wait waits until the Read in flight has ended.
func (a *ahead) wait() { <-a.done }

// pace decides whether reading in the background gains. It measures, for each block, the time of
// the read and the time until the next read: only the shorter one can be saved.
type pace struct {
	mode     Mode
	measures bool

	blocks           int
	reading, working time.Duration // sums over blocks
	since            time.Time
}

const (
	// paceBlocks is the number of blocks of one measurement.
	paceBlocks = 8

	// worthAhead is the least gain per block. To hand a block to another CPU takes 5 to 10 µs, or
	// about 20 µs with the bytes that left the near cache.
	worthAhead = 50 * time.Microsecond
)

func newPace(mode Mode, regular bool) pace {
	return pace{mode: mode, measures: mode == Regular && regular}
}

// wantsAhead reports whether to start a goroutine, after offset bytes were read.
func (p *pace) wantsAhead(offset int64, block int) bool {
	if p.mode == Always {
		return offset >= int64(block)
	}
	if p.blocks < paceBlocks {
		return false
	}
	gain := min(p.reading, p.working) / paceBlocks
	p.blocks, p.reading, p.working = 0, 0, 0
	return gain >= worthAhead
}

// reads and hasRead are called before and after a read in the calling goroutine.
func (p *pace) reads() {
	if !p.measures {
		return
	}
	now := time.Now()
	if !p.since.IsZero() {
		p.working += now.Sub(p.since)
	}
	p.since = now
}

func (p *pace) hasRead() {
	if !p.measures {
		return
	}
	now := time.Now()
	p.reading += now.Sub(p.since)
	p.since = now
	p.blocks++
}
