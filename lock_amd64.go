//go:build !race

package holdfast

import "sync/atomic"

// Unlock releases the lock with a plain store: on amd64 every store releases
// (Intel SDM vol. 3, 9.2.2), while the sync/atomic store is an XCHG, which waits
// for all stores before it to drain. Being assembly, the call also keeps the
// compiler from moving anything past it.
func (l *spinlock) Unlock() { storeRelease(&l.state, 0) }

// storeRelease stores v after all that was stored before.
//
//go:noescape
func storeRelease(addr *atomic.Uint32, v uint32)
