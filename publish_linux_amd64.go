//go:build !race

package holdfast

import "sync/atomic"

// lanesWantBarrier says that a lane's owner publishes with a plain store, once the
// other side can bring the fence.
//
// That this store comes after the record's and before the look at the limit is no
// promise of Go's memory model, to which it is a data race, but of two others: the
// compiler keeps stores, calls and atomic operations in their order, since each
// takes the memory that the one before has left; and amd64 keeps stores among
// themselves in their order, and loads in theirs (Intel SDM vol. 3, 9.2.2). A load
// may pass a store that came before it, and that is what the fence is for. The
// race detector is given the atomic stores of publish_other.go.
const lanesWantBarrier = true

// WriteByte accepts c as Write accepts a record of one byte. nil means that c is
// accepted, and under sync=group and sync=each durable; an error that it is not in
// the file, except that under these policies and with no buffer it may be.
func (l *Lane) WriteByte(c byte) (_ error) {
	// This takes all of the compiler's budget for inlining, and is twice as fast for
	// it: one node more and it is a call. So there is one look, behind the store.
	l.buf[l.n] = c
	l.n++
	if l.n >= atomic.LoadInt32(l.byteLimit) {
		return l.writeByteSlow()
	}
	return
}

// publish stores n after all that was stored before. Where the fence is not to be
// had it is an XCHG, which takes as long as taking a lock.
func (l *Lane) publish(n int32) {
	if l.byteLimit == l.limit {
		l.n = n
	} else {
		atomic.StoreInt32(&l.n, n)
	}
}
