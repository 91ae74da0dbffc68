package stat

import (
	"math"
	"slices"
)

// LeastPeers is the least number of machines that can be judged by each other. With three the
// spread of two decides on the third, and one of the two may be the odd one.
const LeastPeers = 4

// Peers is how a figure of like machines is spread, on a logarithmic scale: its median, and its
// median absolute deviation. A few odd machines among many change neither.
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

// Reach returns the factor from the center beyond which one of N like machines lies with at
// most this chance, in one direction. It is +Inf for fewer than [LeastPeers].
//
// It has one assumption: the tails of the logarithms are no heavier than those of a logistic
// distribution with the same MAD. These are heavier than normal ones: each further MAD is
// passed by a third as many machines. So the distance is the logarithm of the chance to the
// base 3. Of few machines the MAD itself is not well known, and the distance grows as a power
// of the chance (see freedom). TestLikeMachinesAreSeldomOdd has the rates.
func (p Peers) Reach(chance float64) float64 {
	if p.N < LeastPeers {
		return math.Inf(1)
	}
	f := p.freedom()
	mads := f * math.Expm1(-math.Log(chance)/f) / math.Log(3)
	return math.Exp(mads * p.MAD)
}

// freedom is to the MAD what the degrees of freedom are to a standard deviation. It was fitted to
// simulations of 4 to 1,000 machines; of an odd number one is the median itself and shows no spread.
func (p Peers) freedom() float64 { return 1.2 * float64(p.N/2) }
