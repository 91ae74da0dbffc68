package advise

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
)

// buffers are those that are worth a look: none, a page, and what a disk's
// transfers are made of.
func buffers() []holdfast.Size {
	return []holdfast.Size{0, 4 * holdfast.KiB, 16 * holdfast.KiB, 64 * holdfast.KiB, 256 * holdfast.KiB}
}

// usual is the buffer with which what varies besides the buffer is tried.
const usual = 64 * holdfast.KiB

// Candidates returns the policies that are worth measuring for a need: those
// whose own promise is inside its bounds of loss and memory, and dearer ones that
// lose less, for their price. A period leaves room for the sync or flush that is
// in flight when it ends: it is half of what may be lost, or nine tenths.
func Candidates(n Need) []holdfast.Policy {
	var list []holdfast.Policy
	add := func(b holdfast.Size, s holdfast.Sync) {
		p := n.flushed(holdfast.Policy{Buffer: b, Sync: s})
		if p.Validate() == nil && n.Covers(p) && n.holds(p) && !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	half, most := n.periods()
	for _, b := range buffers() {
		add(b, half)
	}
	add(usual, most)
	add(usual, holdfast.Sync(time.Second))
	for _, b := range []holdfast.Size{usual, 4 * holdfast.KiB, 0} {
		add(b, holdfast.SyncGroup)
	}
	add(0, holdfast.SyncEach)
	return list
}

// periods returns the syncs that a need's loss at a power cut allows.
func (n Need) periods() (half, most holdfast.Sync) {
	t, ok := n.Term(Loss)
	switch {
	case !ok:
		return holdfast.SyncNever, holdfast.SyncClose
	case t.Unit == Time && t.Limit >= 10:
		return holdfast.Sync(t.Limit / 2), holdfast.Sync(t.Limit / 10 * 9)
	}
	return holdfast.SyncGroup, holdfast.SyncGroup
}

// flushed returns p with the bound by time that a need's loss at the end of the
// process asks for, where its syncs do not keep it already.
func (n Need) flushed(p holdfast.Policy) holdfast.Policy {
	t, ok := n.Term(Crash)
	if !ok || t.Unit != Time || t.Limit < 2 || p.Buffer == 0 || p.Loss().Process.None() {
		return p
	}
	half := time.Duration(t.Limit / 2)
	if p.Sync <= 0 || time.Duration(p.Sync) > half {
		p.FlushEvery = half
	}
	return p
}

// holds reports whether p's buffers are inside the need's memory.
func (n Need) holds(p holdfast.Policy) bool {
	t, ok := n.Term(Memory)
	return !ok || int64(2*p.Buffer) <= t.Limit
}
