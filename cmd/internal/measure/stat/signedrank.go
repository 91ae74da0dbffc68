package stat

import (
	"math"
	"sync"
)

// exactPairs is the largest number of pairs for which the signed-rank distribution is computed exactly
// (R changes to the normal approximation at 50).
const exactPairs = 200

// signedRank returns the largest k whose k-th smallest and k-th largest Walsh average
// of n pairs enclose the centre. They enclose it with at least the given confidence; signedRank returns
// this coverage too. It returns 0, 0 if there is no such k.
//
// The centre lies below the k-th smallest average when the signed-rank statistic
// (the sum of the ranks with a positive sign) is at most k-1.
func signedRank(n int, confidence float64) (k int, coverage float64) {
	if n > exactPairs {
		return signedRankNormal(n, confidence)
	}
	tail := 0.0
	for sum, p := range signedRankProbabilities(n) {
		tail += p
		if 2*tail > 1-confidence {
			break
		}
		k, coverage = sum+1, 1-2*tail
	}
	return k, coverage
}

// knownProbabilities keeps the results of signedRankProbabilities, by n: all cells of a run have the
// same number of rounds.
var knownProbabilities sync.Map

// signedRankProbabilities returns the probability of each value of the statistic for n pairs
// without ties. Each rank 1…n is added to the sum with probability ½. The caller must not change
// them.
func signedRankProbabilities(n int) []float64 {
	if p, ok := knownProbabilities.Load(n); ok {
		return p.([]float64)
	}
	p := make([]float64, n*(n+1)/2+1)
	p[0] = 1
	top := 0
	for rank := 1; rank <= n; rank++ {
		top += rank
		for sum := top; sum >= 0; sum-- {
			p[sum] /= 2
			if sum >= rank {
				p[sum] += p[sum-rank] / 2
			}
		}
	}
	knownProbabilities.Store(n, p)
	return p
}

// signedRankNormal is signedRank by the normal approximation with continuity
// correction.
func signedRankNormal(n int, confidence float64) (k int, coverage float64) {
	m := float64(n)
	mean := m * (m + 1) / 4
	deviation := math.Sqrt(m * (m + 1) * (2*m + 1) / 24)
	z := math.Sqrt2 * math.Erfinv(confidence)
	return int(mean - z*deviation + 0.5), confidence
}
