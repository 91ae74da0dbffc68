package stat

import (
	"math"
	"slices"
)

// A Summary describes the samples of one cell.
type Summary struct {
	N        int     // number of samples, outliers included
	Median   float64 // NaN without samples
	Low      float64 // lower end of the interval for the median, or NaN: see HasInterval
	High     float64 // upper end of it
	Outliers int     // number of samples outside Tukey's fences; none is dropped

	// Confidence is the coverage of Low to High, exact for any continuous
	// distribution: at least 0.95, or 0 where there is no interval.
	Confidence float64
}

// HasInterval reports whether Low, High and Confidence are known. Fewer than six samples have no 95 %
// interval for their median: not even from the smallest sample to the largest.
func (s Summary) HasInterval() bool { return s.Confidence > 0 }

// Width returns half the interval's width as a part of the median (0.03 is
// ±3 %), or NaN where there is no interval.
func (s Summary) Width() float64 { return (s.High - s.Low) / 2 / math.Abs(s.Median) }

// Summarize returns the median of the samples with its distribution-free interval: the narrowest pair
// of order statistics, equally far from both ends, that covers the median with at least 95 %. A NaN
// among the samples makes every figure NaN.
func Summarize(samples []float64) Summary {
	s := Summary{N: len(samples), Median: math.NaN(), Low: math.NaN(), High: math.NaN()}
	if hasNaN(samples) {
		return s
	}
	ordered := order(slices.Clone(samples), 0.25, 0.5, 0.75)
	s.Median = quantile(ordered, 0.5)
	s.Outliers = countOutliers(ordered)
	if k, coverage := medianRank(len(ordered)); k > 0 {
		arrange(ordered, k-1, len(ordered)-k)
		s.Low, s.High, s.Confidence = ordered[k-1], ordered[len(ordered)-k], coverage
	}
	return s
}

func hasNaN(samples []float64) bool {
	for _, x := range samples {
		if math.IsNaN(x) {
			return true
		}
	}
	return false
}

// fence is Tukey's 1.5: the number of interquartile ranges beyond a quartile (type 7) from which on a
// sample counts as an outlier.
const fence = 1.5

func countOutliers(ordered []float64) int {
	lower, upper := quantile(ordered, 0.25), quantile(ordered, 0.75)
	reach := fence * (upper - lower)
	count := 0
	for _, x := range ordered {
		if x < lower-reach || x > upper+reach {
			count++
		}
	}
	return count
}

// medianRank returns the largest k whose k-th smallest and k-th largest of n samples
// enclose the median with at least 95 %. It returns that coverage too; or 0, 0 if there
// is no such k.
//
// The median lies below the k-th smallest sample when fewer than k of n fall
// below the median, each with probability ½: Binomial(n, ½) at most k-1.
func medianRank(n int) (k int, coverage float64) {
	// More than 40 standard deviations from the middle, every probability is below the least float.
	tail := 0.0
	for below := max(0, n/2-20*int(math.Sqrt(float64(n))+1)); below < n/2; below++ {
		tail += math.Exp(logChoose(n, below) - float64(n)*math.Ln2)
		if 2*tail > 1-confidence {
			break
		}
		k, coverage = below+1, 1-2*tail
	}
	return k, coverage
}

// logChoose returns the logarithm of the binomial coefficient.
func logChoose(n, k int) float64 {
	all, _ := math.Lgamma(float64(n + 1))
	chosen, _ := math.Lgamma(float64(k + 1))
	rest, _ := math.Lgamma(float64(n - k + 1))
	return all - chosen - rest
}
