package stat

import "slices"

// Unpaired is [Compare] for cells whose rounds are not pairs, without a floor.
func Unpaired(a, b []float64) Comparison { return compareUnpaired(a, b, 0, Band, confidence) }

// compareUnpaired compares two cells whose rounds are not pairs. They come from runs with different
// seeds, plans or machines, and may have different lengths. The costs a and b, the verdicts and the
// fields are as in [Compare]. Each side must have [VerdictRounds].
//
// It assumes that the samples are independent, and that the logarithms of b have the same distribution
// as the logarithms of a except for a shift. The estimate is the median of all differences between a
// sample of b and a sample of a, and the interval comes from Mann and Whitney's test. A condition of
// one whole run (a hotter day, a fuller disk) is not in the interval, and looks like a difference. So
// pair runs that can be paired, and always the cells of one run. The interval covers the ratio with at
// least the given confidence.
func compareUnpaired(a, b []float64, floor, band, confidence float64) Comparison {
	x, okA := logs(a)
	y, okB := logs(b)
	if !okA || !okB || len(x) == 0 || len(y) == 0 {
		return incomparable()
	}
	return shift(x, y, confidence).comparison(min(len(x), len(y)), floor, band)
}

// shift returns the Hodges–Lehmann estimate of the shift from x to y. The interval covers it with at
// least the given confidence. The n·m differences are searched without being listed.
func shift(x, y []float64, confidence float64) estimate {
	x, y = sorted(x), sorted(y)
	n, m := len(x), len(y)
	k, coverage := rankSum(n, m, confidence)
	slices.Reverse(x)
	for i := range x {
		x[i] = -x[i]
	}
	p := pairs{rows: x, columns: y, scale: 1, n: n * m}
	return p.estimate(k, coverage)
}
