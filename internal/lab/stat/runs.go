package stat

// CompareRuns compares the cells of one run with those of another: a[i] and b[i]
// are the costs of the i-th cell, round by round: paired as in [Compare], or not,
// where the runs have different seeds, plans or machines, and then the two may be
// of different length. It returns a comparison for each cell.
//
// All intervals hold together with at least 95 %: they share the 5 % (Bonferroni).
// So where nothing differs, one pair of runs in twenty has a false faster or
// slower at most, however many cells there are. That is of what changes from round
// to round; what changed between the two runs is in no interval.
func CompareRuns(a, b [][]float64, paired bool, floor, band float64) []Comparison {
	confidence := 1 - (1-confidence)/float64(max(1, len(a)))
	var comparisons []Comparison
	for i := range a {
		one := compareUnpaired
		if paired {
			one = compare
		}
		comparisons = append(comparisons, one(a[i], b[i], floor, band, confidence))
	}
	return comparisons
}
