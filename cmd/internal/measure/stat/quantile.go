package stat

import (
	"math"
	"math/bits"
	"slices"
)

// Quantile returns the p-quantile of the samples, 0 ≤ p ≤ 1, by linear interpolation between the
// order statistics around (n-1)p+1. This is type 7 of Hyndman and Fan, the rule of R, NumPy and
// Excel's PERCENTILE.INC. It is NaN for no samples. Ask [Supports] before printing it as a
// percentile.
func Quantile(samples []float64, p float64) float64 {
	return quantile(order(slices.Clone(samples), p), p)
}

// quantile is Quantile for samples that are ordered for it.
func quantile(ordered []float64, p float64) float64 {
	if len(ordered) == 0 || !(p >= 0 && p <= 1) {
		return math.NaN()
	}
	position := p * float64(len(ordered)-1)
	below := int(position)
	above := min(below+1, len(ordered)-1)
	return ordered[below] + (position-float64(below))*(ordered[above]-ordered[below])
}

// beyondQuantile is the number of samples that must lie beyond a percentile. With ten, the standard
// error of that number is about a third of it.
const beyondQuantile = 10

// Supports reports whether n samples are enough to print the p-quantile: at
// least ten of them must lie beyond it. A p99 needs 1,000 samples.
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

// Median is Quantile(samples, 0.5), but it may change the order of the samples, and needs no memory.
func Median(samples []float64) float64 { return quantile(order(samples, 0.5), 0.5) }

// order moves the samples that the quantiles need to the places that they have in ascending order.
// Sorting a million samples would take about eight times as long.
func order(samples []float64, quantiles ...float64) []float64 {
	if hasNaN(samples) || len(samples) == 0 {
		slices.Sort(samples)
		return samples
	}
	var ranks []int
	for _, p := range quantiles {
		if p >= 0 && p <= 1 {
			below := int(p * float64(len(samples)-1))
			ranks = append(ranks, below, min(below+1, len(samples)-1))
		}
	}
	return arrange(samples, ranks...)
}

// arrange moves the values with these ranks, counted from 0, to their places in ascending order. It changes
// x, which has no NaN, and returns it.
func arrange(x []float64, ranks ...int) []float64 {
	slices.Sort(ranks)
	quicksort(x, 0, ranks, 2*bits.Len(uint(len(x))))
	return x
}

// quicksort sorts only the parts that contain a rank; begin is the place of x[0] in all samples. If its pivots
// turn out badly, it sorts all.
func quicksort(x []float64, begin int, ranks []int, depth int) {
	if len(ranks) == 0 || len(x) < 2 {
		return
	}
	if len(x) <= 16 || depth == 0 {
		slices.Sort(x)
		return
	}
	a, b, c := x[0], x[len(x)/2], x[len(x)-1]
	pivot := max(min(a, b), min(max(a, b), c))
	left, right := 0, len(x)-1
	for left <= right {
		for x[left] < pivot {
			left++
		}
		for pivot < x[right] {
			right--
		}
		if left <= right {
			x[left], x[right] = x[right], x[left]
			left, right = left+1, right-1
		}
	}
	inLeft, _ := slices.BinarySearch(ranks, begin+right+1)
	inRight, _ := slices.BinarySearch(ranks, begin+left)
	quicksort(x[:right+1], begin, ranks[:inLeft], depth-1)
	quicksort(x[left:], begin+left, ranks[inRight:], depth-1)
}
