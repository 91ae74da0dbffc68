package holdfast

import (
	"runtime"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// biasedLock is a spinlock that a goroutine which is alone with it is lent for
// itself: it then enters without an atomic instruction, which on amd64 waits until
// all that was copied before is in the cache, and so costs more than the copy of a
// record. Whoever else locks takes the loan back first.
//
// The two sides meet as in Dekker's algorithm: the owner says that he is inside
// and then looks whether the loan still stands; who takes it back ends the loan
// and then looks whether the owner is inside. The fence that the owner lacks
// between his store and his load the other side has the kernel put into every
// running thread of the process (membarrier(2)): 1 µs under the lock, or a dozen
// where other threads run on a virtual machine, once in many thousand Writes. In
// between nothing but two plain stores and a load are paid.
type biasedLock struct {
	spinlock
	loan atomic.Pointer[loan] // nil: everybody locks

	// Guarded by the lock.
	paused   *loan       // the loan of the owner who holds the lock
	met      bool        // somebody else was here since the last full block
	barrier  atomic.Bool // membarrier can be used; set once, without the lock
	calm     int         // blocks that filled fast since then
	patience int         // how many of these it takes to lend
}

// A loan is made for one goroutine and never to another, so that an owner who
// comes late can't speak for the next.
type loan struct {
	region uintptr       // where the owner's stack is; enterLoan knows this place,
	inside atomic.Uint32 // and this one: the owner is between enter and leave
	blocks int           // how many have filled since, guarded by the lock
}

const (
	// firstPatience is that of a Writer whose loan was taken back. The first loan
	// takes one block, or the Writer's first few KiB.
	firstPatience = 4
	// maxLoanPatience bounds what taking back costs where goroutines take turns.
	maxLoanPatience = 1024
)

// enter lets the owner in without the lock, and returns nil to everybody else.
// Its caller must call leave or lockFrom.
func (l *biasedLock) enter() *loan {
	if l.loan.Load() == nil {
		return nil
	}
	return enterLoan(&l.loan)
}

func (n *loan) leave() { storeRelease(&n.inside, 0) }

// Lock takes the lock, and the loan back.
func (l *biasedLock) Lock() {
	l.lockOnly()
	if n := l.loan.Load(); n != nil {
		l.takeBack(n)
	}
}

// lockFrom takes the lock for the owner who has entered. If it is free the loan is
// only paused: nobody else is inside as long as the owner is.
func (l *biasedLock) lockFrom(n *loan) {
	if !l.state.CompareAndSwap(0, 1) {
		n.leave() // first: who has the lock may wait for that
		l.Lock()
		return
	}
	if l.loan.Load() == n {
		l.loan.Store(nil)
		l.paused = n
	}
	n.leave()
}

// lockForGood is Lock for a caller after whom the lock is lent no more. An owner
// needs no fence to give his loan back.
func (l *biasedLock) lockForGood() {
	if n := l.enter(); n != nil {
		l.lockFrom(n)
		l.paused = nil
	} else {
		l.Lock()
	}
}

func (l *biasedLock) lockOnly() {
	if !l.state.CompareAndSwap(0, 1) {
		l.lockSlow()
		l.met = true
	}
}

func (l *biasedLock) takeBack(n *loan) {
	l.loan.Store(nil)
	fence()
	for turns := minPause; n.inside.Load() != 0; turns *= 2 {
		pause(min(turns, maxPause))
		if turns > maxPause {
			runtime.Gosched() // the owner may have lost its thread
			turns = minPause
		}
	}
	l.endLocked(n)
}

// fence has every running thread pass a full barrier. It must have been
// registered.
func fence() {
	if sys.Barrier() != nil {
		panic("holdfast: membarrier failed after it was registered")
	}
}

// endLocked makes the next loan wait longer, unless this one was worth it.
func (l *biasedLock) endLocked(n *loan) {
	l.met = true
	l.patience = min(max(firstPatience, 2*l.patience), maxLoanPatience)
	if n.blocks > l.patience {
		l.patience = firstPatience
	}
}

// lendLocked gives a paused loan back to its owner, or lends to a goroutine that
// has been alone for long enough: to the caller, whose stack is in region.
// fastFull says that a block has filled fast. It reports whether that takes a
// barrier which is not there yet.
func (l *biasedLock) lendLocked(region uintptr, fastFull bool) (wantsBarrier bool) {
	n := l.paused
	l.paused = nil
	switch {
	case n != nil && l.met:
		l.endLocked(n)
	case n != nil:
		if fastFull {
			n.blocks++
		}
		l.loan.Store(n)
		return false
	}
	if !fastFull {
		return false
	}
	l.calm++
	if l.met {
		l.met, l.calm = false, 0
	}
	if region == 0 || l.calm < l.patience {
		return false
	}
	if !l.barrier.Load() {
		return true
	}
	l.calm = 0
	l.loan.Store(&loan{region: region})
	return false
}
