package readahead

import (
	"runtime"
	"sync/atomic"
	"time"
)

// more puts the next bytes of the source behind those that are not consumed, all
// as one slice. On an error there are none, and what is not consumed stays.
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

// read reads the source where no goroutine does.
func (r *Reader) read(p []byte) (n int, err error) {
	defer func() { r.err = r.source.failed }() // its panic goes through
	return r.source.read(p)
}

// got adds n bytes behind the view, and keeps the error that comes after them.
func (r *Reader) got(n int, err error) error {
	r.view = r.view[:len(r.view)+n]
	r.err = err
	if n == 0 {
		return err
	}
	return nil
}

// makeRoom moves the view so that the source can be read into the memory behind
// it: at least half a block.
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

// holdBlock makes sure that the Reader has a block of memory of its own.
func (r *Reader) holdBlock() {
	if r.mem == nil {
		r.mem = make([]byte, r.head+r.block)
	}
}

// take is more where a goroutine reads ahead.
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
		// Less is copied this way: many short reads don't move a long line again and again.
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

// moveBefore moves what is not consumed before the block in mem. If there is room, it
// moves the byte before it too, for UnreadByte.
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

// lengthen moves what is not consumed to memory of its own, with room for a block
// behind it. That memory at least doubles, so a line is copied twice at most.
func (r *Reader) lengthen() {
	unread := r.view[r.pos:]
	if cap(r.long)-len(unread) < r.block {
		r.long = make([]byte, 2*len(unread)+r.block)
	}
	n := copy(r.long, unread)
	r.view, r.pos, r.low = r.long[:n], 0, 0
}

// ahead is a goroutine that reads the next block while the caller works on this one.
// It shares two blocks of memory with the caller, and so is one ahead.
type ahead struct {
	full    chan loaded
	empty   chan []byte
	stopped atomic.Bool
	done    chan struct{}
}

// A loaded block has n bytes in mem, behind the room before it.
type loaded struct {
	mem []byte
	n   int
	err error // what comes after them

	died  bool // the goroutine, by what the source did: the caller does the same
	cause any  // what the source panicked with; nil: it called runtime.Goexit
}

// startAhead gives the source to a goroutine until done is closed. The caller has the
// other block of memory.
func startAhead(s *source, head, block int) *ahead {
	// Each channel has room for both blocks, so no send ever waits.
	a := &ahead{full: make(chan loaded, 2), empty: make(chan []byte, 2), done: make(chan struct{})}
	a.empty <- make([]byte, head+block)
	go func() {
		defer close(a.done)
		ended := false
		defer func() {
			if !ended { // not the whole program, for which no caller could recover
				a.full <- loaded{died: true, cause: recover(), err: s.failed}
			}
		}()
		a.run(s, head)
		ended = true
	}()
	return a
}

// run reads a block for each that is empty.
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

// give hands back unused memory, one block for each taken.
func (a *ahead) give(mem []byte) { a.empty <- mem }

// stop lets no other Read begin. It must be called once, and no give may follow it.
func (a *ahead) stop() {
	a.stopped.Store(true)
	close(a.empty)
}

// wait waits until the Read that is under way has ended.
func (a *ahead) wait() { <-a.done }

// pace finds out whether a read in the background gains. It measures the times of reads
// and the times between them, for each block: only the shorter of the two can be saved.
type pace struct {
	mode     Mode
	measures bool

	blocks           int
	reading, working time.Duration // sums over blocks
	since            time.Time
}

const (
	// paceBlocks is how many blocks are looked at together.
	paceBlocks = 8

	// worthAhead is the least gain for a block. A hand-over of a block to another CPU
	// takes 5 to 10 µs, or about 20 with the bytes that left the near cache.
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

// reads and hasRead are called before and after a read by the caller.
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
