//go:build !race

package holdfast

import "sync/atomic"

// lanesWantBarrier says that WriteByte publishes with a plain store.
const lanesWantBarrier = true

// WriteByte accepts c as Write accepts a record of one byte. nil means that c is
// accepted, and under sync=group and sync=each durable; an error that it is not in
// the file, except that under these policies and with no buffer it may be.
//
// It fits the compiler's budget for inlining to the last node, which halves its
// time: hence the order of store and look, a loop's worth of reasons in [Lane].
//
// The increment is a plain store. That it comes after the byte's and before the
// look is no promise of Go's memory model, to which this is a data race, but of
// two things: the compiler keeps stores and atomic operations in their order (each
// takes the memory that the one before has left), and amd64 keeps stores in their
// order, and loads (Intel SDM vol. 3, 9.2.2). A load may still pass a store before
// it; what is missing there, the other side's fence puts in. The race detector
// sees the atomic operations of publish_other.go.
func (l *Lane) WriteByte(c byte) (_ error) {
	l.buf[l.n] = c
	l.n++
	if l.n >= atomic.LoadInt32(l.byteLimit) {
		return l.writeByteSlow()
	}
	return
}

// publish stores n after all that was stored before; see WriteByte. An XCHG, which
// the atomic store is, takes as long as a lock does.
func (l *Lane) publish(n int32) {
	if l.byteLimit == l.limit {
		l.n = n
	} else {
		atomic.StoreInt32(&l.n, n)
	}
}
