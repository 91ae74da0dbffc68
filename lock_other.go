//go:build !amd64 || race

package holdfast

import "sync/atomic"

// Unlock releases the lock. (On arm64 this store is a plain store-release; under
// the race detector it tells the detector of the order.)
func (l *spinlock) Unlock() { storeRelease(&l.state, 0) }

// storeRelease stores v after all that was stored before.
func storeRelease(addr *atomic.Uint32, v uint32) { addr.Store(v) }
