// Package spin has the lock of a Writer.
package spin

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// A Mutex guards a few dozen instructions and is never held during a write, a sync or a wait. In a
// Write of 40 bytes it costs two thirds of a sync.Mutex (figures: docs/design/decisions.md).
//
// A goroutine that does not get it soon queues for the right to spin. So at most one goroutine
// spins for long, and the others are parked. The spinning goroutine never parks, so no wake-up can
// be missed, and Unlock stays a plain store.
//
// A goroutine that got the lock by that right passes the right on in Unlock. That may wake a
// thread, or hand this goroutine's P to another one; both take µs.
type Mutex struct {
	state  atomic.Int32
	queued bool       // the holder has the right to spin; guarded by the lock
	_      [11]byte   // puts queue on another cache line than the fields of a Write
	queue  sync.Mutex // held by the goroutine with the right to spin
}

// A goroutine that finds the lock taken waits for pause loop turns (about a cycle each) before it
// checks the lock again, and does so looks times before it queues. A check takes the lock's cache
// line from the holder, which does dozens of Writes in that time.
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
		// The holder may have lost its processor to this thread, or its thread to this goroutine.
		// Without YieldThread it continues at the kernel's next tick, after ms.
		sys.YieldThread()
		runtime.Gosched()
	}
	m.queued = true
}

// unlockSlow is Unlock for a holder with the right to spin.
func (m *Mutex) unlockSlow() {
	m.queued = false
	m.state.Store(0)
	m.queue.Unlock()
}

// try spins for some µs, and reports whether it took the lock.
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
