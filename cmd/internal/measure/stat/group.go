package stat

import (
	"math"
	"sync"
)

// CompareGroup compares each cell of a group with the fastest, the cell with the smallest median cost.
// It returns the fastest's index, or -1 for no cells, and a comparison for each cell, in their order.
// The fastest is compared with itself. Cells are costs round by round; floor, band and verdicts are as
// in [Compare].
//
// All intervals of a group together hold with at least 95 %. So if nothing differs, at most one run of
// twenty has a false faster or slower, however many cells the group has. The rounds that compare a cell
// with the fastest also decide which cell is the fastest. That cell is the luckiest among equals, so
// any two cells may become the pair. So all k(k-1)/2 pairs of k cells share the 5 % (Bonferroni), and
// not only the k-1 that are returned. Then it does not matter how the fastest was chosen. This assumes
// nothing about the dependence between cells, only what Compare assumes about a pair.
//
// With fewer than [GroupRounds] rounds there are no intervals, and nothing is proven. A cell may have fewer rounds than
// others, the first ones: which cell is the fastest is told by the rounds that all had, and two cells are compared in the
// rounds that both had.
//
// Note: sharing the 5 % among the k-1 pairs alone was tried. Sixteen cells of the same code then have a
// false verdict in 5 % of the runs, if the floor comes from one of them, and in 13 % if it comes from a
// calmer cell. Holm's method would find a little more, but its verdicts don't follow from intervals
// that can be shown.
func CompareGroup(cells [][]float64, floor, band float64) (fastest int, comparisons []Comparison) {
	fastest = cheapest(inCommon(cells))
	confidence := groupConfidence(len(cells))
	comparisons = append(comparisons, make([]Comparison, len(cells))...) // nil for none
	var all sync.WaitGroup
	for i, costs := range cells {
		all.Go(func() {
			n := min(len(cells[fastest]), len(costs))
			comparisons[i] = compare(cells[fastest][:n], costs[:n], floor, band, confidence)
		})
	}
	all.Wait()
	return fastest, comparisons
}

// inCommon returns the first costs of each cell, as many as each has that has any.
func inCommon(cells [][]float64) [][]float64 {
	fewest := math.MaxInt
	for _, costs := range cells {
		if len(costs) > 0 {
			fewest = min(fewest, len(costs))
		}
	}
	var common [][]float64
	for _, costs := range cells {
		common = append(common, costs[:min(len(costs), fewest)])
	}
	return common
}

// GroupRounds returns the least number of rounds for any verdict but [NotProven]
// in a group of the given number of cells: [VerdictRounds] up to seven cells, and a few more for larger
// groups, because their intervals must cover more.
func GroupRounds(cells int) int {
	confidence := groupConfidence(cells)
	for rounds := VerdictRounds; ; rounds++ {
		if k, _ := signedRank(rounds, confidence); k > 0 {
			return rounds
		}
	}
}

// groupConfidence is the coverage of each interval of a group, chosen so that the intervals of all
// pairs together have the confidence of one interval.
func groupConfidence(cells int) float64 {
	pairs := max(1, cells*(cells-1)/2)
	return 1 - (1-confidence)/float64(pairs)
}

// cheapest returns the index of the cell with the smallest median cost, the first of equals. The
// other cells of a group are compared with it. It is -1 for no cells. A cell without a median is the
// fastest only if no cell has one.
func cheapest(cells [][]float64) int {
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
