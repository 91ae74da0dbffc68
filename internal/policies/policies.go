// Package policies has the cases that tests and proofs of a Writer run: a policy, and the shape of
// the writing calls. There are hundreds of combinations, and most faults need two choices to meet.
// So Pairs returns a few dozen cases that cover every pair of choices.
package policies

import (
	"time"

	"github.com/holdfast-go/holdfast"
)

// A Shape is the way in which a case writes its bytes.
type Shape string

const (
	Small   Shape = "small"   // records smaller than the buffer, or of some bytes without one
	Large   Shape = "large"   // Writes that bypass memory
	Mixed   Shape = "mixed"   // both
	Enqueue Shape = "enqueue" // Enqueue and WaitDurable in place of Write
)

// A Case is one combination of choices.
type Case struct {
	Policy holdfast.Policy
	Shape  Shape
}

// String returns the policy's text and the shape.
func (c Case) String() string { return c.Policy.String() + "/" + string(c.Shape) }

// The choices. Buffers and limits are small: a few hundred bytes reach every limit, and the limit
// of a sync by bytes lies between the two buffers. In an ordinary run the file is no slower than
// the periods.
var (
	flushes = []holdfast.Policy{
		{},
		{FlushEvery: 3 * time.Millisecond},
		{FlushBytes: 40},
		{FlushEvery: 3 * time.Millisecond, FlushBytes: 40},
	}
	syncs = []holdfast.Sync{
		{Mode: holdfast.SyncNever},
		{Mode: holdfast.SyncClose},
		{Mode: holdfast.SyncGroup},
		{Mode: holdfast.SyncEach},
		{Mode: holdfast.SyncPeriodic, Every: 10 * time.Millisecond},
		{Mode: holdfast.SyncPeriodic, Bytes: 200},
		{Mode: holdfast.SyncPeriodic, Every: 10 * time.Millisecond, Bytes: 200},
	}
	buffers = []holdfast.Size{0, 64, 4 * holdfast.KiB}
	shapes  = []Shape{Small, Large, Mixed, Enqueue}
)

// Pairs returns cases that cover every pair of choices that a valid policy can have together. "No
// limits of a flush" is a choice only with a buffer. It is the greedy cover: it always takes the
// first valid combination with the most missing pairs. The order is the same in each run.
func Pairs() (cases []Case) {
	type pair struct{ a, b any }
	var all []Case
	var pairs [][]pair
	for _, flush := range flushes {
		for _, sync := range syncs {
			for _, buffer := range buffers {
				for _, shape := range shapes {
					p := flush
					p.Buffer, p.Sync = buffer, sync
					if p.Validate() != nil {
						continue
					}
					all = append(all, Case{p, shape})
					its := []pair{{sync, buffer}, {sync, shape}, {buffer, shape}}
					if buffer > 0 {
						its = append(its, pair{flush, sync}, pair{flush, buffer}, pair{flush, shape})
					}
					pairs = append(pairs, its)
				}
			}
		}
	}
	seen := map[pair]bool{}
	for {
		best, most := 0, 0
		for i := range all {
			missing := 0
			for _, x := range pairs[i] {
				if !seen[x] {
					missing++
				}
			}
			if missing > most {
				best, most = i, missing
			}
		}
		if most == 0 {
			return cases
		}
		cases = append(cases, all[best])
		for _, x := range pairs[best] {
			seen[x] = true
		}
	}
}
