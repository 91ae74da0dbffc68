package stat

import (
	"math"
	"slices"
)

// Quantile returns the p-quantile of the samples, 0 ≤ p ≤ 1, by linear interpolation between the
// order statistics around (n-1)p+1. This is type 7 of Hyndman and Fan, the rule of R, NumPy and
// Excel's PERCENTILE.INC. It is NaN for no samples. Ask [Supports] before printing it as a
// percentile.
func Quantile(samples []float64, p float64) float64 {
	return quantile(sorted(samples), p)
}

// quantile is Quantile for samples in ascending order.
func quantile(ordered []float64, p float64) float64 {
	if len(ordered) == 0 || !(p >= 0 && p <= 1) {
		return math.NaN()
	}
	position := p * float64(len(ordered)-1)
	below := int(position)
	above := min(below+1, len(ordered)-1)
	return ordered[below] + (position-float64(below))*(ordered[above]-ordered[below])
}

// beyondQuantile is how many samples must lie on the far side of a percentile. With ten, the
// standard error of that count is about a third of it.
const beyondQuantile = 10

// Supports reports whether n samples are enough to print the p-quantile: at
// least ten of them must lie on its far side. A p99 takes 1,000 samples.
func Supports(n int64, p float64) bool {
	far := min(p, 1-p)
	// The tolerance keeps 1000 × (1 - 0.99) = 9.999… on the right side.
	return float64(n)*far >= beyondQuantile-1e-6
}

func sorted(samples []float64) []float64 {
	ordered := slices.Clone(samples)
	slices.Sort(ordered)
	return ordered
}
