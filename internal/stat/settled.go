package stat

import "math"

// Settled is the rule that ends a run: it reports whether every ratio that the
// run's report will show is known to ± want (0.03 is 3 %), and the half-width of
// the one that is known worst, so that a run that ends for want of time can say
// how far it was. Widest is NaN where a ratio has no interval at all.
//
// A group is the cells that are compared with each other, each cell given as its
// costs round by round: each is set against the [Fastest] of its group. A cell
// and its twin, whose gap is the noise floor, are a group of their own.
// At least [VerdictRounds] rounds are asked for.
//
// The rule looks at widths only, never at ratios or verdicts. A run that went on
// until a difference shows would find one in the same code sooner or later; the
// width says how well a ratio is known, not what it is, so ending on it hunts
// for nothing. What optional stopping still costs the intervals is in the
// simulations of this package's tests.
func Settled(groups [][][]float64, want float64) (widest float64, ok bool) {
	rounds := math.MaxInt
	for _, g := range groups {
		fastest := Fastest(g)
		for i, costs := range g {
			rounds = min(rounds, len(costs))
			if i == fastest {
				continue
			}
			widest = max(widest, Compare(g[fastest], costs, 0, Band).Width())
		}
	}
	compared := rounds < math.MaxInt
	return widest, compared && rounds >= VerdictRounds && widest <= want
}

// Fastest returns the index of the cell with the smallest median cost, the first
// of equals: the one that the others of a group are compared with. It is -1 for
// no cells; a cell whose costs have no median is fastest only among its like.
//
// The fastest of many is also the luckiest of them: compared with it, cells as
// fast as it look slower a little too often, the more so the more there are.
// TestSameCodeUnderManyNames says how often.
func Fastest(cells [][]float64) int {
	best, least := -1, math.Inf(1)
	for i, costs := range cells {
		m := Summarize(costs).Median
		if math.IsNaN(m) {
			m = math.Inf(1)
		}
		if best < 0 || m < least {
			best, least = i, m
		}
	}
	return best
}
