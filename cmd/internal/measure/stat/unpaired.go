package stat

import "slices"

// Unpaired is [Compare] of cells with rounds that don't belong together, without a floor.
func Unpaired(a, b []float64) Comparison { return compareUnpaired(a, b, 0, Band, confidence) }

// compareUnpaired compares two cells with rounds that don't belong together. They come from runs
// with different seeds, plans or machines, and may be of different length. The costs a and b, the
// words and the fields are as in [Compare]. Each side must have [VerdictRounds].
//
// It assumes that each sample is independent of the others. It assumes that the logarithms of b are
// distributed like those of a but for a shift. The estimate is the median of all differences
// between one of b and one of a. The interval is that of Mann and Whitney's test. What all rounds
// of one run suffer together (a hotter day, a fuller disk) is in neither, and looks like a
// difference. So pair the runs that can be paired, and cells of one run always. The interval covers
// the ratio with at least the confidence asked for.
func compareUnpaired(a, b []float64, floor, band, confidence float64) Comparison {
	x, okA := logs(a)
	y, okB := logs(b)
	if !okA || !okB || len(x) == 0 || len(y) == 0 {
		return incomparable()
	}
	return shift(x, y, confidence).comparison(min(len(x), len(y)), floor, band)
}

// shift returns the Hodges–Lehmann estimate of by how much y lies above x.
// The interval covers that with at least the confidence asked for. The n·m differences
// are searched, never listed.
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
