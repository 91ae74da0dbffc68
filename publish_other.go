//go:build !linux || !amd64 || race

package holdfast

import "sync/atomic"

// lanesWantBarrier is false: the owner of a lane publishes with atomic stores, so
// that the order of store and look is that of all atomic operations.
const lanesWantBarrier = false

// WriteByte accepts c as Write accepts a record of one byte. nil means that c is
// accepted, and under sync=group and sync=each durable; an error that it is not in
// the file, except that under these policies and with no buffer it may be.
func (l *Lane) WriteByte(c byte) error {
	l.buf[l.n] = c
	atomic.StoreInt32(&l.n, l.n+1)
	if l.n < atomic.LoadInt32(l.byteLimit) {
		return nil
	}
	return l.writeByteSlow()
}

func (l *Lane) publish(n int32) { atomic.StoreInt32(&l.n, n) }
