package crash

import (
	"errors"

	"github.com/holdfast-go/holdfast"
)

// plain is a workload of these tests: it replaces one file again and again. The catalogue stands above.
var plain = &Workload{Name: "plain",
	Targets: func(holdfast.Policy) []Target { return []Target{{Path: "c0", Object: true, Whole: true, Synced: true}} },
	Loss: func(holdfast.Policy) holdfast.Loss {
		return holdfast.Loss{Power: holdfast.Bound{Bytes: holdfast.Unlimited, Time: holdfast.Unlimited}}
	},
	Run: func(r *Run) error {
		for made := 0; r.More(made); made++ {
			n := uint64(r.Number+1)<<32 | uint64(made+1)
			r.Note(Begun, 0, n)
			data := Record{N: n, Size: 700}.Append(nil)
			if err := errors.Join(r.WriteFile("c0.tmp", data, true), r.Rename("c0.tmp", "c0"), r.SyncDir()); err != nil {
				return err
			}
			r.Note(Durable, 0, n)
		}
		return nil
	}}
