package advise

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
)

// usual is the buffer of candidates that differ in something else.
const usual = 64 * holdfast.KiB

// Candidates returns the policies that are worth measuring for a need. Their own promises
// are inside its bounds of loss and memory. To show their price, dearer
// ones that lose less are among them. A period leaves room for the sync or flush that is
// in flight when it ends: it is half of what may be lost, or nine tenths. Bytes are half
// of what may be lost, or three quarters; what memory holds comes on top.
func Candidates(n Need) []holdfast.Policy {
	var list []holdfast.Policy
	add := func(b holdfast.Size, s holdfast.Sync) {
		p := n.flushed(holdfast.Policy{Buffer: b, Sync: s})
		memory, limited := n.Term(Memory)
		fits := !limited || int64(2*p.Buffer) <= memory.Limit
		if p.Validate() == nil && n.Covers(p) && fits && !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	half, most := n.periods()
	// Buffers: none, a page, and the sizes of a disk's transfers.
	for _, b := range []holdfast.Size{0, 4 * holdfast.KiB, 16 * holdfast.KiB, 64 * holdfast.KiB, 256 * holdfast.KiB} {
		add(b, half)
	}
	add(usual, most)
	add(usual, holdfast.SyncEvery(time.Second))
	for _, b := range []holdfast.Size{usual, 4 * holdfast.KiB, 0} {
		add(b, group)
	}
	add(0, holdfast.Sync{Mode: holdfast.SyncEach})
	return list
}

var group = holdfast.Sync{Mode: holdfast.SyncGroup}

// fewestBytes is the least loss for which a sync by bytes is a candidate: the usual
// buffers, and as much again.
const fewestBytes = 4 * usual

// periods returns the syncs that a need's loss at a power cut allows.
func (n Need) periods() (half, most holdfast.Sync) {
	t, ok := n.Term(Loss)
	switch {
	case !ok:
		return holdfast.Sync{}, holdfast.Sync{Mode: holdfast.SyncClose}
	case t.Unit == Time && t.Limit >= 10:
		return holdfast.SyncEvery(time.Duration(t.Limit / 2)), holdfast.SyncEvery(time.Duration(t.Limit / 10 * 9))
	case t.Unit == Bytes && t.Limit >= int64(fewestBytes):
		bytes := func(n int64) holdfast.Sync {
			return holdfast.Sync{Mode: holdfast.SyncPeriodic, Bytes: holdfast.Size(n) / holdfast.KiB * holdfast.KiB}
		}
		return bytes(t.Limit / 2), bytes(t.Limit / 4 * 3)
	}
	return group, group
}

// flushed returns p with a period of flushes that keeps the need's loss at the end of
// the process, unless its syncs keep it already.
func (n Need) flushed(p holdfast.Policy) holdfast.Policy {
	t, ok := n.Term(Crash)
	if !ok || t.Unit != Time || t.Limit < 2 || p.Buffer == 0 || p.Loss().Process.None() {
		return p
	}
	half := time.Duration(t.Limit / 2)
	if p.Sync.Every <= 0 || p.Sync.Every > half {
		p.FlushEvery = half
	}
	return p
}
