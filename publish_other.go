//go:build !linux || !amd64 || race

package holdfast

// lanesWantBarrier is false: owners of lanes publish with atomic stores.
const lanesWantBarrier = false

func writeByte(l *Lane, c byte) error { return l.writeByteAtomic(c) }
