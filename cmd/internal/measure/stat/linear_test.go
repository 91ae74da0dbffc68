package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestSearchedIsListed compares each search with the listing that it replaces, to the last bit.
func TestSearchedIsListed(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	listed := func(list []float64, k int, coverage float64) estimate {
		slices.Sort(list)
		e := estimate{quantile(list, 0.5), math.NaN(), math.NaN(), coverage}
		if k > 0 {
			e.low, e.high = list[k-1], list[len(list)-k]
		}
		return e
	}
	equal := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
	check := func(what string, got, want estimate) {
		t.Helper()
		if !equal(got.centre, want.centre) || !equal(got.low, want.low) || !equal(got.high, want.high) || got.coverage != want.coverage {
			t.Fatalf("%s: searched %v, listed %v", what, got, want)
		}
	}
	draws := map[string]func() float64{
		"normal": r.NormFloat64,
		"ties":   func() float64 { return float64(r.IntN(5)-2) / 10 },
		"zeros":  func() float64 { return math.Copysign(0, float64(r.IntN(2))-0.5) },
		"far":    func() float64 { return math.Copysign(math.Exp(40*r.NormFloat64()), r.NormFloat64()) },
	}
	for name, draw := range draws {
		sample := func(n int) (x []float64) {
			for range n {
				x = append(x, draw())
			}
			return x
		}
		for n := 1; n <= 60; n++ {
			x, y := sample(n), sample(1+r.IntN(60))
			var averages, differences []float64
			for i := range x {
				for _, other := range x[i:] {
					averages = append(averages, (x[i]+other)/2)
				}
				for _, after := range y {
					differences = append(differences, after-x[i])
				}
			}
			k, coverage := signedRank(n, confidence)
			check(name+", Walsh averages", hodgesLehmann(x, confidence), listed(averages, k, coverage))
			k, coverage = rankSum(n, len(y), confidence)
			check(name+", differences", shift(x, y, confidence), listed(differences, k, coverage))
		}
	}
}

// TestAMillionSamples would need 4 TB of memory if the pairs were listed.
func TestAMillionSamples(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a second or two")
	}
	r := rand.New(rand.NewPCG(3, 4))
	a, b := make([]float64, 1_000_000), make([]float64, 1_000_000)
	for i := range a {
		a[i], b[i] = math.Exp(0.05*r.NormFloat64()), 1.1*math.Exp(0.05*r.NormFloat64())
	}
	begun := time.Now()
	for what, c := range map[string]Comparison{
		"paired": Compare(a, b, 0, Band), "unpaired": compareUnpaired(a, b, 0, Band, confidence),
	} {
		if !(c.Low < 1.1 && 1.1 < c.High && c.Width() < 0.001) {
			t.Errorf("%s: %+v", what, c)
		}
	}
	if shift, ok := Drift(a); ok {
		t.Errorf("a drift of %v in what does not drift", shift)
	}
	t.Log(time.Since(begun))
}

// TestDriftOfManyRounds has more rounds than are compared pair by pair.
func TestDriftOfManyRounds(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{mostBlocks, mostBlocks + 1, 10 * mostBlocks, 10*mostBlocks + 7, 100_000} {
		x := make([]float64, n)
		for i := range x {
			x[i] = 100 + 20*float64(i)/float64(n-1) + r.NormFloat64()
		}
		if shift, ok := Drift(x); !ok || math.Abs(shift-20.0/110) > 0.01 {
			t.Errorf("%d rounds: %v, %t", n, shift, ok)
		}
		if blocks, each := inBlocks(x); len(blocks) != n/int(each) {
			t.Errorf("%d rounds: %d blocks of %v", n, len(blocks), each)
		}
	}
}
