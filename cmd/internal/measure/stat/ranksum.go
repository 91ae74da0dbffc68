package stat

import (
	"math"
	"sync"
)

// exactDifferences bounds the number of differences between two samples for which the distribution of
// Mann and Whitney's U is computed exactly. R changes to the normal approximation at 50 samples a side.
const exactDifferences = 50 * 50

// rankSum returns the largest k whose k-th smallest and k-th largest difference between
// n and m samples enclose the shift. They enclose it with at least the given confidence; rankSum
// returns this coverage too. It returns 0, 0 if there is no such k.
//
// The shift lies below the k-th smallest difference when U (how many of the
// differences, less the shift, are negative) is at most k-1.
func rankSum(n, m int, confidence float64) (k int, coverage float64) {
	if n*m > exactDifferences {
		return rankSumNormal(n, m, confidence)
	}
	tail := 0.0
	for u, p := range rankSumProbabilities(n, m) {
		tail += p
		if 2*tail > 1-confidence {
			break
		}
		k, coverage = u+1, 1-2*tail
	}
	return k, coverage
}

// rankSumProbabilities returns the probability of each value of U for n and m
// samples without ties, if all orders of them are equally likely. It uses Mann and Whitney's
// recurrence: the largest of the n+m samples is one of the n with probability n/(n+m), and then is
// above all m.
//
// The caller must not change the result: it is kept, since all cells of two runs have the same numbers
// of rounds.
func rankSumProbabilities(n, m int) []float64 {
	if p, ok := knownSums.Load([2]int{n, m}); ok {
		return p.([]float64)
	}
	fewer := make([][]float64, m+1) // for i-1 and j samples
	for j := range fewer {
		fewer[j] = []float64{1}
	}
	for i := 1; i <= n; i++ {
		row := [][]float64{{1}}
		for j := 1; j <= m; j++ {
			row = append(row, mixed(fewer[j], row[j-1], i, j))
		}
		fewer = row
	}
	knownSums.Store([2]int{n, m}, fewer[m])
	return fewer[m]
}

// knownSums keeps the results of rankSumProbabilities, by n and m.
var knownSums sync.Map

// mixed is one step of the recurrence: from U without the largest of i samples,
// and without the largest of j, to U of both.
func mixed(without, other []float64, i, j int) []float64 {
	p := make([]float64, i*j+1)
	share := float64(i) / float64(i+j)
	for u, q := range without {
		p[u+j] += share * q
	}
	for u, q := range other {
		p[u] += (1 - share) * q
	}
	return p
}

// rankSumNormal is rankSum by the normal approximation with continuity
// correction.
func rankSumNormal(n, m int, confidence float64) (k int, coverage float64) {
	x, y := float64(n), float64(m)
	deviation := math.Sqrt(x * y * (x + y + 1) / 12)
	z := math.Sqrt2 * math.Erfinv(confidence)
	if k = int(x*y/2 - z*deviation + 0.5); k < 1 {
		return 0, 0
	}
	return k, confidence
}
