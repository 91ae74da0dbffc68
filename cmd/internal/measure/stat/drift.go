package stat

import (
	"math"
	"slices"
)

// Drift reports whether the samples rise or fall with their rounds. It returns the change from the
// first to the last, as a part of the median: 0.1 means that they ended 10 % higher.
//
// Mann and Kendall's test of the order, two-sided at 1 %, decides whether there is a drift; the
// Theil–Sen slope is its size. A shift of less than 5 % is not reported. If there are many rounds, the
// medians of blocks of consecutive rounds replace them.
func Drift(rounds []float64) (shift float64, ok bool) {
	if len(rounds) < VerdictRounds || hasNaN(rounds) {
		return 0, false
	}
	blocks, each := inBlocks(rounds)
	slope, doubt := trend(blocks)
	shift = slope / each * float64(len(rounds)-1) / math.Abs(Quantile(rounds, 0.5))
	return shift, doubt < driftDoubtful && math.Abs(shift) >= driftShift
}

// mostBlocks bounds the samples that trend compares: all pairs of 256 samples take less than a
// millisecond.
const mostBlocks = 256

// inBlocks returns the medians of blocks of consecutive rounds, all of the same length; an incomplete
// last block is left out. Up to mostBlocks rounds are returned unchanged.
func inBlocks(rounds []float64) (blocks []float64, each float64) {
	size := (len(rounds) + mostBlocks - 1) / mostBlocks
	for block := range slices.Chunk(rounds, size) {
		if len(block) == size {
			blocks = append(blocks, Quantile(block, 0.5))
		}
	}
	return blocks, float64(size)
}

// trend returns the median slope over all pairs of rounds. It also returns the
// two-sided probability that a series without a trend is in such an order (normal approximation,
// corrected for continuity and ties).
func trend(x []float64) (slope, doubt float64) {
	var slopes []float64
	score := 0.0
	for i := range x {
		for j := i + 1; j < len(x); j++ {
			slopes = append(slopes, (x[j]-x[i])/float64(j-i))
			score += sign(x[j] - x[i])
		}
	}
	slices.Sort(slopes)
	z := max(0, math.Abs(score)-1) / math.Sqrt(kendallVariance(x))
	return quantile(slopes, 0.5), math.Erfc(z / math.Sqrt2)
}

// kendallVariance returns the variance of Kendall's score for samples in random
// order; each group of t equal samples reduces it by t(t-1)(2t+5).
func kendallVariance(x []float64) float64 {
	term := func(n float64) float64 { return n * (n - 1) * (2*n + 5) }
	sum := term(float64(len(x)))
	equal := map[float64]float64{}
	for _, v := range x {
		equal[v]++
	}
	for _, t := range equal {
		sum -= term(t)
	}
	return sum / 18
}

func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}
