//go:build !amd64 || race

package holdfast

import "sync/atomic"

// Unlock releases the lock: on arm64 by a store-release, which the race detector sees.
func (l *spinlock) Unlock() { storeRelease(&l.state, 0) }

// storeRelease stores v after all earlier stores.
func storeRelease(addr *atomic.Int32, v int32) { addr.Store(v) }
