//go:build !amd64 || race

package holdfast

// Unlock releases the lock. (On arm64 this store is a plain store-release; under
// the race detector it tells the detector of the order.)
func (l *spinlock) Unlock() { l.state.Store(0) }
