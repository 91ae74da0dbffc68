// Package spin is the lock of a Writer.
package spin

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// A Mutex guards a few dozen instructions and is never held over a write, a sync
// or a wait. It costs a Write of 40 bytes two thirds of what a sync.Mutex does
// (docs/design/decisions.md has the figures).
//
// A goroutine that does not get it soon queues for the right to try on. So at most one
// goroutine spins for long, however many wait, and the others are parked. The spinning
// goroutine never parks, so no release can be missed, and a release stays a plain store.
//
// A goroutine that got the lock by that right gives the right back when it releases the lock. To give
// it back may wake a thread, or hand this goroutine's P to another one. Both take µs.
type Mutex struct {
	state  atomic.Int32
	queued bool       // the holder has the right; guarded by the lock
	_      [11]byte   // puts queue on another cache line than what a Write touches
	queue  sync.Mutex // held by the goroutine that has the right
}

// A goroutine that finds the lock taken looks away for pause loop turns (about a cycle
// each), and looks so often before it queues. To look takes the lock's cache line from the
// holder, which does dozens of Writes in that time.
const pause, looks = 4096, 2

func (m *Mutex) Lock() {
	if !m.state.CompareAndSwap(0, 1) {
		m.lockSlow()
	}
}

func (m *Mutex) lockSlow() {
	if m.try() {
		return
	}
	m.queue.Lock()
	for !m.try() {
		// The holder may have lost its processor to this very thread, or its thread to this
		// goroutine. Without the first line it gets back at the kernel's next tick, after ms.
		sys.YieldThread()
		runtime.Gosched()
	}
	m.queued = true
}

// unlockSlow is Unlock of a holder that has the right to try on.
func (m *Mutex) unlockSlow() {
	m.queued = false
	m.state.Store(0)
	m.queue.Unlock()
}

// try spins for some µs, and reports whether it has taken the lock.
func (m *Mutex) try() bool {
	for range looks {
		for range pause { // without touching memory
		}
		if m.state.Load() == 0 && m.state.CompareAndSwap(0, 1) {
			return true
		}
	}
	return false
}
