package stat

import "math"

// Settled is the rule that ends a run. It reports whether every ratio in the run's report is known to ± want (0.03 is 3 %), or is ten or
// more over its whole interval. It also returns the widest half-width, so that a run that ends because its time is up can report the width
// that it reached. Widest is NaN if a ratio has no interval at all.
//
// A group is the cells that are compared with each other, each given as its costs round by round. Each
// cell is compared with the fastest of its group, with the intervals of [CompareGroup]. A cell and its
// twin, which show the noise floor, form a group of their own. At least [VerdictRounds] rounds are
// required, and [GroupRounds] for each group.
//
// Apart from ratios of ten and more, the rule looks at widths only, never at ratios or verdicts. A run
// that continued until a difference shows would sooner or later find one in the same code. The width
// tells how well a ratio is known, not its value, so a stop at a width does not favour any value. The
// remaining effect of optional stopping on the intervals is in the simulations of this package's tests.
//
// A cell that is far slower needs no narrow interval: it has its verdict, which a further round would hardly change.
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
