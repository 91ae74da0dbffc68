package spin

import (
	"runtime"
	"sync/atomic"
	"time"
)

// A Relay decides who flushes a full strip of memory: the goroutine that filled it, or another one while
// the first goes on. A strip is handed over only to one that waits for it. To start or wake
// one takes as long as to fill a strip. The lock of the memory guards a Relay.
type Relay struct {
	left         int           // how many more strips may be handed over; below 0, how many to keep
	fill, flush  time.Duration // what the last strip took, and the last one that was kept
	since, ended time.Duration // when the last was full; when the flush of the last one that was kept ended
	waiting      bool          // another goroutine is in Wait
	pending      bool          // the last was handed over
	full         atomic.Bool   // a strip was handed over, or Stop called, since Wait began
}

// After so many strips that were handed over one is kept, which measures anew. After one that
// nobody took in time, or a wait in vain, several are.
const handed, kept = 63, 64

// Hand reports whether a strip is handed over that was full now, if the one before was full at last.
func (r *Relay) Hand(last, now time.Duration) bool {
	r.fill, r.since = now-max(last, r.ended), now
	r.pending = r.waiting && r.left > 0
	if r.pending {
		r.left--
		r.full.Store(true)
	}
	return r.pending
}

// Pending reports whether the last strip was handed over, and is not late.
func (r *Relay) Pending() bool { return r.pending }

// Kept is called when the flush of a strip that was kept has ended, and reports whether another goroutine
// shall wait for the next. It is alone if no other goroutine filled memory meanwhile.
//
// The fill must take from half of the flush to three times as long. If it takes less, the flush
// bounds the whole, and is slower where the strip is in another CPU's cache. If it takes
// more, the wait for strips costs more CPU time than is gained.
func (r *Relay) Kept(now time.Duration, alone bool) bool {
	const least = 8 * time.Microsecond // to hand over takes about two
	r.flush, r.ended = now-r.since, now
	r.left = min(r.left+1, 0)
	if r.left == 0 && alone && r.flush >= least && r.fill >= r.flush/2 && r.fill <= 3*r.flush && runtime.GOMAXPROCS(0) > 1 {
		r.left = handed
	}
	return r.left > 0
}

// Late is called when memory is full and nobody flushes. A strip that was handed over then waits for
// a CPU, and there may be none.
func (r *Relay) Late() {
	if r.pending {
		r.pending, r.left = false, -kept
	}
}

// Wait waits for a while until a strip is handed over or Stop is called, and reports whether one of
// them happened. It releases mu meanwhile. It does not park: to wake it would take the goroutine
// that fills strips 12 to 15 µs.
func (r *Relay) Wait(mu *Mutex) bool {
	const looks = 120 // of more than a µs each
	if r.left <= 0 {
		return false
	}
	r.waiting = true
	r.full.Store(false)
	mu.Unlock()
	for i := 0; i < looks && !r.full.Load(); i++ {
		Pause()
	}
	mu.Lock()
	r.waiting = false
	if !r.full.Load() {
		r.left = -kept
	}
	return r.full.Load()
}

// Stop ends a Wait.
func (r *Relay) Stop() { r.full.Store(true) }
