package holdfast

import (
	"sync/atomic"
	"time"
)

// ReadAhead says who reads the next block of a [Reader].
type ReadAhead int

const (
	// ReadAheadFiles lets the kernel read ahead, and the caller copy, unless
	// both the copying and the caller's own work take so long that a goroutine
	// which copies in the background gains: it is started when that has been
	// measured, and only for a regular file, whose Reads end by themselves.
	ReadAheadFiles ReadAhead = iota

	// ReadAheadAlways lets a goroutine read from the second block on, whatever
	// the source is: for one that computes, such as a decompressor. The goroutine
	// asks it for two blocks more than the caller has consumed, and Close waits
	// for the Read that is under way.
	ReadAheadAlways

	// ReadAheadNever has each block read by the call that needs it.
	ReadAheadNever
)

// ahead is a goroutine that reads the next block while the caller works on this
// one. It has two blocks of memory with the caller, and so is one ahead.
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
}

// startAhead lets a goroutine have the source until done is closed. The caller
// has the other block of memory.
func startAhead(s *source, head, block int) *ahead {
	// Each channel has room for both blocks, so that no send ever waits.
	a := &ahead{full: make(chan loaded, 2), empty: make(chan []byte, 2), done: make(chan struct{})}
	a.empty <- make([]byte, head+block)
	go func() {
		defer close(a.done)
		for mem := range a.empty {
			if a.stopped.Load() {
				return
			}
			n, err := s.read(mem[head:])
			a.full <- loaded{mem, n, err}
			if err != nil {
				return
			}
		}
	}()
	return a
}

// take waits for the next block. It must not be called after an error.
func (a *ahead) take() loaded { return <-a.full }

// give hands back memory that is not used any more, one block for each taken.
func (a *ahead) give(mem []byte) { a.empty <- mem }

// stop lets no other Read begin. It must be called once, and nothing given after.
func (a *ahead) stop() {
	a.stopped.Store(true)
	close(a.empty)
}

// wait waits until the Read that is under way has ended.
func (a *ahead) wait() { <-a.done }

// pace finds out whether reading in the background gains. Both the times that
// reads take and those between them are measured, a block each: only the shorter
// of the two can be saved.
type pace struct {
	mode     ReadAhead
	measures bool

	blocks           int
	reading, working time.Duration // sums over blocks
	since            time.Time
}

const (
	// paceBlocks is how many blocks are looked at together.
	paceBlocks = 8

	// worthAhead is what there must be to save in a block. Handing a block to
	// another processor takes some 5 to 10 µs, with its bytes that are no longer
	// in the near cache some 20.
	worthAhead = 50 * time.Microsecond
)

func newPace(mode ReadAhead, regular bool) pace {
	return pace{mode: mode, measures: mode == ReadAheadFiles && regular}
}

// wantsAhead reports whether a goroutine should be started now that so many bytes
// were read.
func (p *pace) wantsAhead(offset int64, block int) bool {
	if p.mode == ReadAheadAlways {
		return offset >= int64(block)
	}
	if p.blocks < paceBlocks {
		return false
	}
	gain := min(p.reading, p.working) / paceBlocks
	p.blocks, p.reading, p.working = 0, 0, 0
	return gain >= worthAhead
}

// reads and hasRead stand before and after a read by the caller.
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
