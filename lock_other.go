//go:build !amd64 || race

package holdfast

import "sync/atomic"

// Unlock releases the lock. (On arm64 this store is a plain store-release; the race
// detector learns the order from it.)
func (l *spinlock) Unlock() { storeRelease(&l.state, 0) }

// storeRelease stores v after all earlier stores.
func storeRelease(addr *atomic.Int32, v int32) { addr.Store(v) }
