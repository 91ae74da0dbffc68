package figure

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Priced is a policy whose cost is known.
type Priced struct {
	Row
	Paced bool // Cost comes from paced trials, relative to the same buffer without a sync
}

// Priced returns the policies of a load whose cost is known, the safest first. The cost of a policy
// with a period comes from paced trials with as many writers if the burst was too short for it.
func (f Figures) Priced(g Group) []Priced {
	var policies []Priced
	add := func(r Row, paced bool) {
		known := slices.ContainsFunc(policies, func(p Priced) bool { return p.Cell.Policy == r.Cell.Policy })
		if !known && r.Period.Judged() && r.Cost.Ratio > 0 && !r.Unknown() {
			policies = append(policies, Priced{Row: r, Paced: paced})
		}
	}
	for _, r := range g.Rows {
		add(r, false)
	}
	for _, other := range f.Groups {
		if other.Paced && other.RecordBytes == g.RecordBytes && other.Writers == g.Writers && other.FileSystem == g.FileSystem {
			for _, r := range other.Rows {
				if !r.Control {
					add(r, true)
				}
			}
		}
	}
	slices.SortStableFunc(policies, func(a, b Priced) int {
		return cmp.Or(cmp.Compare(a.loses(), b.loses()), cmp.Compare(a.Cost.Ratio, b.Cost.Ratio))
	})
	return policies
}

// loses returns the time in which a writer wrote the data that a power cut may take, at worst. A bound
// in bytes becomes a time by the measured throughput.
func (p Priced) loses() time.Duration {
	loses, most := p.Cell.Policy.Loss().Power, time.Duration(math.MaxInt64)
	if loses.Time != holdfast.Unlimited {
		most = loses.Time
	}
	if loses.Bytes != holdfast.Unlimited && p.Throughput > 0 {
		most = min(most, time.Duration(float64(loses.Bytes)/float64(p.Throughput)*float64(time.Second)))
	}
	return most
}
