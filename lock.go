package holdfast

import (
	"runtime"
	"sync/atomic"
)

// spinlock guards a few dozen instructions and is never held over a write, a sync
// or a wait. It costs a Write of 40 bytes two thirds of what a sync.Mutex does,
// with one goroutine and with 64 (DESIGN.md has the figures).
type spinlock struct{ state atomic.Uint32 }

const (
	// A goroutine that finds the lock taken looks away for minPause loop turns
	// (some cycles each), then for twice as long, up to maxPause, about 1 µs.
	// Looking all the time would take the lock's cache line from the holder,
	// who does several Writes in the time that the line takes to come back.
	minPause = 64
	maxPause = 4096
)

func (l *spinlock) Lock() {
	if !l.state.CompareAndSwap(0, 1) {
		l.lockSlow()
	}
}

func (l *spinlock) lockSlow() {
	for turns := minPause; ; turns *= 2 {
		if turns > maxPause {
			// The holder may have lost its thread: give it this one.
			runtime.Gosched()
			turns = maxPause
		}
		pause(turns)
		if l.state.Load() == 0 && l.state.CompareAndSwap(0, 1) {
			return
		}
	}
}

// pause passes some cycles, about turns of them, without touching memory.
func pause(turns int) {
	for range turns {
	}
}
