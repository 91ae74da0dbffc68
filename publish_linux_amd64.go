//go:build !race

package holdfast

// lanesWantBarrier says that a lane's owner publishes with a plain store, by
// spin.StoreRelease and by writeByte, once the other side can do the fence. Both are
// assembly, so the compiler neither sees nor moves the store. The order of stores, and
// that of loads, is kept on amd64 (Intel SDM vol. 3, 9.2.2). But a load may pass an
// earlier store, which the fence prevents.
const lanesWantBarrier = true

// writeByte does what writeByteAtomic does, with a plain store.
//
//go:noescape
func writeByte(l *Lane, c byte) error

// writeByteLater is writeByteSlow for writeByte, which jumps to it.
//
//lint:ignore U1000 only assembly goes there
func writeByteLater(l *Lane, _ byte) error { return l.writeByteSlow() }

// writeByteBeyond is where writeByte jumps to if the buffer is full, which can't be: it
// panics as an index out of range does.
//
//lint:ignore U1000 only assembly goes there
func writeByteBeyond(l *Lane, c byte) error { return l.writeByteAtomic(c) }
