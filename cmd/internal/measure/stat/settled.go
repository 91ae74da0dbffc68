package stat

import "math"

// Settled is the rule that ends a run. It reports whether every ratio that the run's report will
// show is known to ± want (0.03 is 3 %), or is ten or more with its whole interval. It also returns the widest half-width, so that a run that
// ends for want of time can say how far it was. Widest is NaN where a ratio has no interval at all.
//
// A group is the cells that are compared with each other, each cell given as its
// costs round by round. Each is set against the fastest of its group, and the
// intervals are those of [CompareGroup]. A cell and its twin, which show the noise
// floor, are a group of their own. At least [VerdictRounds] rounds are asked
// for, and [GroupRounds] of each group.
//
// Below that the rule looks at widths only, never at ratios or verdicts. A run that went on
// until a difference shows would find one in the same code sooner or later. The
// width says how well a ratio is known, not what it is, so ending on it hunts
// for nothing. What optional stopping still costs the intervals is in the
// simulations of this package's tests.
//
// A cell that is far slower needs no narrow interval: it has its word, which a round more would hardly take from it.
func Settled(groups [][][]float64, want float64) (widest float64, ok bool) {
	rounds := math.MaxInt
	for _, g := range groups {
		fastest, comparisons := CompareGroup(g, 0, Band)
		for i, c := range comparisons {
			rounds = min(rounds, len(g[i]))
			if i != fastest && !(c.Low >= far) {
				widest = max(widest, c.Width())
			}
		}
	}
	compared := rounds < math.MaxInt
	return widest, compared && rounds >= VerdictRounds && widest <= want
}
