package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Hollander and Wolfe, Nonparametric Statistical Methods, table 4.1: permeability
// of the chorioamnion at term and between 12 and 26 weeks. It is also the example
// of R's ?wilcox.test, which gives W = 35 and p = 0.1272 one-sided.
var (
	atTerm  = []float64{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46}
	earlier = []float64{1.15, 0.88, 0.90, 0.74, 1.21}
)

func TestRankSumOfTheTextbook(t *testing.T) {
	w := 0
	for _, x := range atTerm {
		for _, y := range earlier {
			if x > y {
				w++
			}
		}
	}
	p := 0.0
	for _, q := range rankSumProbabilities(len(atTerm), len(earlier))[w:] {
		p += q
	}
	if w != 35 || math.Round(p*1e4) != 1272 {
		t.Errorf("W = %d, p = %.5f; want 35, 0.1272", w, p)
	}
	// For 10 and 5 samples the critical value of U is 8: the ninth of the 50 differences from either
	// end.
	e := shift(earlier, atTerm, confidence)
	if !near(e.centre, 0.305) || !near(e.low, -0.15) || !near(e.high, 0.76) {
		t.Errorf("%+v, want 0.305 (-0.15 … 0.76)", e)
	}
}

// The critical values of Mann and Whitney's U, two-sided at 5 %, as in every table. Each is the largest
// U that rejects, so k is one more.
func TestRankSumCriticalValues(t *testing.T) {
	check := func(n, m, critical int) {
		t.Helper()
		k, coverage := rankSum(n, m, confidence)
		if back, _ := rankSum(m, n, confidence); k != critical+1 || coverage < confidence || back != k {
			t.Errorf("rankSum(%d, %d, confidence) = %d, %v, and %d turned round; want %d", n, m, k, coverage, back, critical+1)
		}
	}
	check(4, 4, 0)
	check(5, 5, 2)
	check(5, 10, 8)
	check(6, 6, 5)
	check(7, 7, 8)
	check(8, 8, 13)
	check(9, 9, 17)
	check(10, 10, 23)
	check(10, 20, 55)
	check(12, 12, 37)
	check(15, 15, 64)
	check(20, 20, 127)
	for _, n := range []int{1, 2, 3} {
		if k, coverage := rankSum(n, 3, confidence); k != 0 || coverage != 0 {
			t.Errorf("rankSum(%d, 3, confidence) = %d, %v; want no interval", n, k, coverage)
		}
	}
	if k, coverage := rankSum(1, exactDifferences+1, confidence); k != 0 || coverage != 0 {
		t.Errorf("rankSum of one sample and many = %d, %v; want no interval", k, coverage)
	}
	for confidence := 0.98; confidence < 0.99; confidence += 1e-5 { // somewhere there the rank becomes 0
		if k, coverage := rankSumNormal(2, exactDifferences, confidence); (k > 0) != (coverage > 0) {
			t.Fatalf("rankSumNormal of confidence %v = %d, %v; rank 0 is no interval", confidence, k, coverage)
		}
	}
}

// All ten orders of 3 and 2 samples by hand. U is 0, 1, 5 and 6 in one each, and 2, 3 and 4 in two
// each.
func TestRankSumProbabilities(t *testing.T) {
	got := rankSumProbabilities(3, 2)
	for u, want := range []float64{.1, .1, .2, .2, .2, .1, .1} {
		if !near(got[u], want) {
			t.Errorf("U = %d has probability %v, want %v", u, got[u], want)
		}
	}
	for _, n := range []int{1, 10, 50} {
		sum := 0.0
		for _, p := range rankSumProbabilities(n, 50) {
			sum += p
		}
		if !near(sum, 1) {
			t.Errorf("%d and 50: probabilities add up to %v", n, sum)
		}
	}
}

func TestNormalRankSumMeetsTheExact(t *testing.T) {
	for _, size := range [][2]int{{50, 50}, {20, 125}, {10, 250}} {
		exact, _ := rankSum(size[0], size[1], confidence)
		if normal, _ := rankSumNormal(size[0], size[1], confidence); math.Abs(float64(exact-normal)) > 6 {
			t.Errorf("%v: rank %d exactly, %d by the normal approximation", size, exact, normal)
		}
	}
}

func TestUnpairedVerdicts(t *testing.T) {
	base := make([]float64, 12)
	for i := range base {
		base[i] = 1 + float64(i)/1000
	}
	check := func(a, b []float64, floor float64, n int, want Verdict) {
		t.Helper()
		if got := compareUnpaired(a, b, floor, Band, confidence); got.Verdict != want || got.N != n {
			t.Errorf("%+v, want %d samples, %q", got, n, want)
		}
	}
	check(base, base, 0, 12, Same)
	check(base, base[:10], 0, 10, Same)
	check(base, scaled(base, 2), 0.01, 12, Slower)
	check(base, scaled(base, 0.5), 0.01, 12, Faster)
	check(base, scaled(base, 1.1), 0.2, 12, NotProven)
	check(base, base, 0.06, 12, NotProven)
	check(base, scaled(base, 2), math.NaN(), 12, NotProven)
	check(base, scaled(base[:9], 1.4), 0, 9, NotProven)
	check(base[:9], scaled(base, 1.4), 0, 9, NotProven)
	check(base[:9], scaled(base, 2), 0, 9, Slower)
	check(base, nil, 0, 0, NotProven)
	check(nil, base, 0, 0, NotProven)
	for _, bad := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		broken := append([]float64{bad}, base[1:]...)
		check(base, broken, 0, 0, NotProven)
		check(broken, base, 0, 0, NotProven)
	}
}

func TestUnpairedIsBlindToOrderAndUnit(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 10))
	for range 300 {
		a, b := skewed(r, 4+r.IntN(12)), skewed(r, 4+r.IntN(12))
		there, back := compareUnpaired(a, b, 0, Band, confidence), compareUnpaired(b, a, 0, Band, confidence)
		if !near(there.Ratio, 1/back.Ratio) || !near(there.Low, 1/back.High) || !near(there.High, 1/back.Low) {
			t.Fatalf("%+v, swapped %+v", there, back)
		}
		shuffled := slices.Clone(scaled(b, 1e9))
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if other := compareUnpaired(scaled(a, 1e9), shuffled, 0, Band, confidence); !near(there.Ratio, other.Ratio) || !near(there.Low, other.Low) {
			t.Fatalf("%+v, in nanoseconds and shuffled %+v", there, other)
		}
		if there.Low > there.Ratio || there.Ratio > there.High {
			t.Fatalf("the ratio lies outside of its interval: %+v", there)
		}
	}
}
