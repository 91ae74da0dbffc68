//go:build !amd64 || race

package spin

// Unlock releases the lock: on arm64 by a store-release, which the race detector sees.
func (m *Mutex) Unlock() {
	if m.queued {
		m.unlockSlow()
		return
	}
	m.state.Store(0)
}
