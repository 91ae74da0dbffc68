package stat

import (
	"math"
	"slices"
)

// LeastPeers is the least number of machines that can be judged by each other. With three, the spread
// of two judges the third, and one of the two may be the odd one.
const LeastPeers = 4

// Peers is the distribution of a figure among similar machines, on a logarithmic scale: its median, and
// its median absolute deviation. A few odd machines among many change neither.
type Peers struct {
	N      int
	Center float64 // the median, as a figure
	MAD    float64 // of the logarithms
}

// PeersOf summarizes a positive figure of some machines.
func PeersOf(figures []float64) Peers {
	logs := make([]float64, len(figures))
	for i, x := range figures {
		logs[i] = math.Log(x)
	}
	slices.Sort(logs)
	center := quantile(logs, 0.5)
	apart := make([]float64, len(logs))
	for i, x := range logs {
		apart[i] = math.Abs(x - center)
	}
	slices.Sort(apart)
	return Peers{N: len(figures), Center: math.Exp(center), MAD: quantile(apart, 0.5)}
}

// Reach returns the factor from the center beyond which one of N similar machines lies with at most
// this chance, in one direction. It is +Inf for fewer than [LeastPeers].
//
// It has one assumption: the tails of the logarithms are no heavier than the tails of a logistic
// distribution with the same MAD. These are heavier than normal tails: with each further MAD the number
// of machines beyond falls to a third. So the distance is the logarithm of the chance to the base 3.
// With few machines the MAD itself is uncertain, and the distance grows as a power of the chance (see
// freedom). TestLikeMachinesAreSeldomOdd has the rates.
func (p Peers) Reach(chance float64) float64 {
	if p.N < LeastPeers {
		return math.Inf(1)
	}
	f := p.freedom()
	mads := f * math.Expm1(-math.Log(chance)/f) / math.Log(3)
	return math.Exp(mads * p.MAD)
}

// freedom is the MAD's counterpart of the degrees of freedom of a standard deviation. It was fitted to
// simulations of 4 to 1,000 machines; with an odd number of machines one is the median itself and shows
// no spread.
func (p Peers) freedom() float64 { return 1.2 * float64(p.N/2) }
