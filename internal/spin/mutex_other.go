//go:build !amd64 || race

package spin

import "sync/atomic"

// Unlock releases the lock: on arm64 by a store-release, which the race detector sees.
func (m *Mutex) Unlock() {
	if m.queued {
		m.unlockSlow()
		return
	}
	StoreRelease(&m.state, 0)
}

// StoreRelease stores v after all earlier stores.
func StoreRelease(addr *atomic.Int32, v int32) { addr.Store(v) }
