package stat

import (
	"math"
	"sync"
)

// CompareGroup compares each cell of a group with the fastest, the one with the smallest median
// cost. It returns the fastest's index, or -1 for no cells, and a comparison for each cell, in
// their order. The fastest is compared with itself. Cells are costs round by round; floor, band and
// words are those of [Compare].
//
// All intervals of a group hold together with at least 95 %. So if nothing differs, a group has a
// false faster or slower in at most one run of twenty, however many cells it has. The rounds that
// compare a cell with the fastest also decide which one is the fastest. It is the luckiest of its
// like, and so any two cells may turn out to be the pair. So all k(k-1)/2 pairs of k cells share
// the 5 % (Bonferroni), and not only the k-1 that are returned. Then it does not matter how the
// fastest was chosen. This assumes nothing of how cells depend on each other, only what Compare
// assumes of a pair.
//
// Fewer than [GroupRounds] rounds have no intervals, and prove nothing.
//
// Note: sharing among the k-1 alone was tried. Sixteen cells of the same code then have a false
// word in 5 % of the runs, with the floor of one of them. With that of a calmer cell it is 13 %.
// Holm's method would find a little more, but its words don't follow from intervals that can be
// shown.
func CompareGroup(cells [][]float64, floor, band float64) (fastest int, comparisons []Comparison) {
	fastest = cheapest(cells)
	confidence := groupConfidence(len(cells))
	comparisons = append(comparisons, make([]Comparison, len(cells))...) // nil for none
	var all sync.WaitGroup
	for i, costs := range cells {
		all.Go(func() { comparisons[i] = compare(cells[fastest], costs, floor, band, confidence) })
	}
	all.Wait()
	return fastest, comparisons
}

// GroupRounds returns the least number of rounds for any verdict but [NotProven]
// in a group of so many cells: [VerdictRounds] up to seven cells, and a few more
// for larger groups: their intervals must cover more.
func GroupRounds(cells int) int {
	confidence := groupConfidence(cells)
	for rounds := VerdictRounds; ; rounds++ {
		if k, _ := signedRank(rounds, confidence); k > 0 {
			return rounds
		}
	}
}

// groupConfidence is the coverage of each interval of a group with which those of
// all its pairs hold together with the confidence of one.
func groupConfidence(cells int) float64 {
	pairs := max(1, cells*(cells-1)/2)
	return 1 - (1-confidence)/float64(pairs)
}

// cheapest returns the index of the cell with the smallest median cost, the first of equals. The
// others of a group are compared with it. It is -1 for no cells. A cell without a median is the
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
