package advise

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
)

// usual is the buffer of candidates that differ in another setting.
const usual = 64 * holdfast.KiB

// Candidates returns the policies to measure for a need, the most wanted first. Their own promises are
// inside the need's bounds of loss and memory. The list is short, because each policy takes seconds to
// measure: two buffer sizes and no buffer, and the two policies that lose nothing. A period is half of
// the allowed loss, which leaves room for the sync or flush in flight at its end. It is a second at
// most, so that it falls due often enough during the measurement.
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
	half := n.period()
	add(usual, half)
	add(usual, group)
	add(4*holdfast.KiB, half)
	add(0, half)
	add(4*holdfast.KiB, group) // where memory is short
	add(0, group)
	add(0, holdfast.Sync{Mode: holdfast.SyncEach})
	return list
}

var group = holdfast.Sync{Mode: holdfast.SyncGroup}

// fewestBytes is the least loss for which a sync by bytes is a candidate: twice the two buffers of
// usual size.
const fewestBytes = 4 * usual

// period returns the sync that the need's limit of loss at a power cut allows.
func (n Need) period() holdfast.Sync {
	t, ok := n.Term(Loss)
	switch {
	case !ok:
		return holdfast.Sync{}
	case t.Unit == Time && t.Limit >= 2:
		return holdfast.SyncEvery(min(time.Second, time.Duration(t.Limit/2)))
	case t.Unit == Bytes && t.Limit >= int64(fewestBytes):
		return holdfast.Sync{Mode: holdfast.SyncPeriodic, Bytes: holdfast.Size(t.Limit/2) / holdfast.KiB * holdfast.KiB}
	}
	return group
}

// flushed returns p with a period of flushes that keeps the need's loss at the end of
// the process, unless its syncs keep it already.
func (n Need) flushed(p holdfast.Policy) holdfast.Policy {
	t, ok := n.Term(Crash)
	if !ok || t.Unit != Time || t.Limit < 2 || p.Buffer == 0 || p.Loss().Process.None() {
		return p
	}
	half := min(time.Second, time.Duration(t.Limit/2))
	if p.Sync.Every <= 0 || p.Sync.Every > half {
		p.FlushEvery = half
	}
	return p
}
