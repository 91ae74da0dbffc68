//go:build !race

package spin

// Unlock releases the lock with a plain store: on amd64 every store has release order (Intel SDM
// vol. 3, 9.2.2). A store of sync/atomic is an XCHG, which waits until all earlier stores have
// drained. The function is assembly, so the compiler moves no access past it.
func (m *Mutex) Unlock() { unlock(m) }

// unlock jumps to unlockLater if m.queued is set.
//
//go:noescape
func unlock(m *Mutex)

//lint:ignore U1000 only assembly goes there
func unlockLater(m *Mutex) { m.unlockSlow() }
