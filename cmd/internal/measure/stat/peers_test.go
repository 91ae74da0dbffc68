package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestPeers(t *testing.T) {
	p := PeersOf([]float64{8, 1, 2, 4, 1e9})
	if p.N != 5 || math.Abs(p.Center-4) > 1e-9 || math.Abs(p.MAD-math.Log(2)) > 1e-9 {
		t.Errorf("%+v, want the center 4 and the MAD log 2, whatever the last is", p)
	}
	for n, want := range map[int]bool{LeastPeers - 1: true, LeastPeers: false} {
		if got := math.IsInf((Peers{N: n, MAD: 0.1}).Reach(0.01), 1); got != want {
			t.Errorf("%d peers are not judged: %v, want %v", n, got, want)
		}
	}
	if got := (Peers{N: 4}).Reach(0.01); got != 1 {
		t.Errorf("peers that are all the same reach %v, want 1", got)
	}
	if few, many := (Peers{N: 4, MAD: 0.1}).Reach(1e-4), (Peers{N: 1000, MAD: 0.1}).Reach(1e-4); few <= many {
		t.Errorf("4 peers reach %v, and 1,000 %v: the spread of few is not well known", few, many)
	}
}

// distributions are distributions of the logarithms of similar machines' figures.
var distributions = map[string]func(*rand.Rand) float64{
	"normal":   func(r *rand.Rand) float64 { return r.NormFloat64() },
	"logistic": func(r *rand.Rand) float64 { u := r.Float64(); return math.Log(u / (1 - u)) },
}

// TestLikeMachinesAreSeldomOdd makes groups of equal machines. In at most one group of twenty is a
// machine beyond the bound, for groups of any size.
func TestLikeMachinesAreSeldomOdd(t *testing.T) {
	for name, draw := range distributions {
		for _, n := range []int{4, 5, 6, 9, 10, 15, 30, 100, 1000} {
			r := rand.New(rand.NewPCG(1, uint64(n)))
			groups, odd := min(20_000, 400_000/n), 0
			figures := make([]float64, n)
			for range groups {
				for i := range figures {
					figures[i] = math.Exp(0.1 * draw(r))
				}
				p := PeersOf(figures)
				reach := p.Reach(0.05 / float64(n))
				for _, x := range figures {
					if x > p.Center*reach {
						odd++
						break
					}
				}
			}
			rate := float64(odd) / float64(groups)
			t.Logf("%s, %d machines: %.4f of %d groups have an odd one", name, n, rate, groups)
			if rate > 0.05+3*math.Sqrt(0.05/float64(groups)) {
				t.Errorf("%s, %d machines: %.4f of %d groups have an odd one, of at most 0.05", name, n, rate, groups)
			}
		}
	}
}
