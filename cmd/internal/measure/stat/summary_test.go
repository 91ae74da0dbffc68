package stat

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// near reports whether two figures agree to nine digits; NaN agrees with NaN.
func near(a, b float64) bool {
	return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b))
}

// count returns 1, 2, … n in a shuffled order.
func count(n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(i + 1)
	}
	r := rand.New(rand.NewPCG(1, uint64(n)))
	r.Shuffle(n, func(i, j int) { x[i], x[j] = x[j], x[i] })
	return x
}

// R 4: quantile(1:10, c(0, .1, .25, .5, .9, 1)) with its default type 7.
func TestQuantileIsType7(t *testing.T) {
	check := func(samples []float64, p, want float64) {
		t.Helper()
		if got := Quantile(samples, p); !near(got, want) {
			t.Errorf("Quantile(%v, %v) = %v, want %v", samples, p, got, want)
		}
	}
	check(count(10), 0, 1)
	check(count(10), 0.1, 1.9)
	check(count(10), 0.25, 3.25)
	check(count(10), 0.5, 5.5)
	check(count(10), 0.9, 9.1)
	check(count(10), 1, 10)
	check([]float64{7}, 0.99, 7)
	check(nil, 0.5, math.NaN())
	check(count(10), 1.1, math.NaN())
	check(count(10), -0.1, math.NaN())
	check(count(10), math.NaN(), math.NaN())
}

func TestSupportsAsksForTenSamplesBeyond(t *testing.T) {
	check := func(n int64, p float64, want bool) {
		t.Helper()
		if got := Supports(n, p); got != want {
			t.Errorf("Supports(%d, %v) = %v, want %v", n, p, got, want)
		}
	}
	check(19, 0.5, false)
	check(20, 0.5, true)
	check(999, 0.99, false)
	check(1000, 0.99, true)
	check(9999, 0.999, false)
	check(10000, 0.999, true)
	check(1000, 0.01, true)
	check(1<<40, 1, false)
}

// The ranks of the sign test's 95 % interval for the median, as tabulated in
// textbooks (for instance Conover, Practical Nonparametric Statistics). The
// coverage for n = 6, 10, 20 is 1 - 2/64, 1 - 22/1024 and 1 - 43400/1048576.
func TestMedianIntervalRanks(t *testing.T) {
	check := func(n, rank int, coverage float64) {
		t.Helper()
		k, got := medianRank(n)
		if k != rank || coverage != 0 && !near(got, coverage) {
			t.Errorf("medianRank(%d) = %d, %v; want %d, %v", n, k, got, rank, coverage)
		}
	}
	check(0, 0, 0)
	check(1, 0, 0)
	check(5, 0, 0)
	check(6, 1, 1-2.0/64)
	check(8, 1, 1-2.0/256)
	check(9, 2, 1-20.0/512)
	check(10, 2, 1-22.0/1024)
	check(20, 6, 1-43400.0/1048576)
	check(25, 8, 0)
	check(50, 18, 0)
	check(100, 40, 0)
}

// The critical values of the sign test, two-sided at 5 %, as in every table of the binomial
// distribution. Each is the largest count that rejects, so the rank is one more. R's qbinom(0.025, n,
// 0.5) is that rank. The coverage is computed separately in whole numbers.
func TestMedianIntervalIsThatOfTheBinomialTable(t *testing.T) {
	ranks := map[int]int{
		6: 1, 7: 1, 8: 1, 9: 2, 10: 2, 11: 2, 12: 3, 13: 3, 14: 3, 15: 4, 16: 4, 17: 5, 18: 5,
		19: 5, 20: 6, 21: 6, 22: 6, 23: 7, 24: 7, 25: 8, 26: 8, 27: 8, 28: 9, 29: 9, 30: 10,
	}
	for n, rank := range ranks {
		tail := new(big.Int)
		for below := range int64(rank) {
			tail.Add(tail, new(big.Int).Binomial(int64(n), below))
		}
		coverage := 1 - 2*float64(tail.Int64())/float64(int64(1)<<n)
		s := Summarize(count(n))
		if s.Low != float64(rank) || s.High != float64(n+1-rank) || !near(s.Confidence, coverage) {
			t.Errorf("n = %d: %v … %v with %v; want %d … %d with %v", n, s.Low, s.High, s.Confidence, rank, n+1-rank, coverage)
		}
	}
}

// An outlier may be the truth, so every figure includes it: without the last sample, which is spoilt,
// the figure would be another.
func TestOutliersAreCountedAndNeverDropped(t *testing.T) {
	spoil := func(x []float64, factor float64) []float64 {
		y := slices.Clone(x)
		y[len(y)-1] *= factor
		return y
	}
	a := []float64{1, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06, 1.07, 1.08, 1.09, 1.10}
	b := []float64{1.09, 1.08, 1.07, 1.06, 1.05, 1.04, 1.03, 1.02, 1.01, 1, 1.10}
	n := len(a)
	worse := spoil(a, 100)

	s, rest := Summarize(worse), Summarize(worse[:n-1])
	if s.N != n || s.Outliers != 1 || s.Median != 1.05 || s.Confidence == rest.Confidence || s.Median == rest.Median {
		t.Errorf("%+v, without the outlier %+v", s, rest)
	}
	check := func(c, rest Comparison) {
		t.Helper()
		if c.N != n || c.Ratio == rest.Ratio || c.High <= rest.High || c.Confidence == rest.Confidence {
			t.Errorf("%+v, without the outlier %+v", c, rest)
		}
	}
	check(Compare(b, worse, 0, Band), Compare(b[:n-1], worse[:n-1], 0, Band))
	check(compareUnpaired(b, worse, 0, Band, confidence), compareUnpaired(b, worse[:n-1], 0, Band, confidence))

	if Floor(b, worse) == Floor(b[:n-1], worse[:n-1]) {
		t.Error("the floor is that without the outlier")
	}
	if got := GeometricMeans([][]float64{worse})[n-1]; !near(got, 110) {
		t.Errorf("the geometric mean of the outlier is %v", got)
	}
	with, _ := Settled([][][]float64{{b, worse}}, 0.1)
	if without, _ := Settled([][][]float64{{b[:n-1], worse[:n-1]}}, 0.1); with <= without {
		t.Errorf("the widest is %v with the outlier, %v without", with, without)
	}
	if w, _ := Steady(worse); w.Spread < 1 {
		t.Errorf("the window's spread is %v", w.Spread)
	}
}

func TestSummary(t *testing.T) {
	check := func(samples []float64, want Summary) {
		t.Helper()
		got := Summarize(samples)
		same := got.N == want.N && got.Outliers == want.Outliers && near(got.Median, want.Median) &&
			near(got.Low, want.Low) && near(got.High, want.High) && near(got.Confidence, want.Confidence)
		if !same {
			t.Errorf("Summarize(%v) = %+v, want %+v", samples, got, want)
		}
	}
	nan := math.NaN()
	check(nil, Summary{0, nan, nan, nan, 0, 0})
	check([]float64{3}, Summary{1, 3, nan, nan, 0, 0})
	check(count(5), Summary{5, 3, nan, nan, 0, 0})
	check(count(6), Summary{6, 3.5, 1, 6, 0, 1 - 2.0/64})
	check(count(10), Summary{10, 5.5, 2, 9, 0, 1 - 22.0/1024})
	check([]float64{5, 5, 5, 5, 5, 5}, Summary{6, 5, 5, 5, 0, 1 - 2.0/64})
	check([]float64{1, nan, 2}, Summary{3, nan, nan, nan, 0, 0})
	// Quartiles 3.25 and 7.75: the fences stand at -3.5 and 14.5.
	check([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 14.5}, Summary{10, 5.5, 2, 9, 0, 1 - 22.0/1024})
	check([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 14.6}, Summary{10, 5.5, 2, 9, 1, 1 - 22.0/1024})
	check([]float64{-90, 2, 3, 4, 5, 6, 7, 8, 9, 1e9}, Summary{10, 5.5, 2, 9, 2, 1 - 22.0/1024})
}

func TestTooFewSamplesHaveNoInterval(t *testing.T) {
	for n := range 12 {
		if got, want := Summarize(count(n)).HasInterval(), n >= 6; got != want {
			t.Errorf("%d samples: interval %v, want %v", n, got, want)
		}
	}
}

func TestWidthIsHalfOfTheIntervalAsAPart(t *testing.T) {
	if got := (Summary{Median: 10, Low: 9, High: 12}).Width(); !near(got, 0.15) {
		t.Errorf("Width = %v, want 0.15", got)
	}
}

func TestArgumentsStayAsTheyAre(t *testing.T) {
	a, b := count(20), count(20)
	slices.Reverse(b)
	keepA, keepB := slices.Clone(a), slices.Clone(b)
	Summarize(a)
	Quantile(a, 0.3)
	Compare(a, b, 0, Band)
	Floor(a, b)
	Warnings(a)
	compareUnpaired(a, b, 0, Band, confidence)
	GeometricMeans([][]float64{a, b})
	Settled([][][]float64{{a, b}}, 0.1)
	Steady(a)
	if !slices.Equal(a, keepA) || !slices.Equal(b, keepB) {
		t.Error("a function sorted or changed the samples it was given")
	}
}

// skewed draws from a lognormal distribution: like times, with a long upper tail.
func skewed(r *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = math.Exp(0.5 * r.NormFloat64())
	}
	return x
}

// The true median of exp(normal) is 1; the interval must miss it in at most 5 %
// of the runs, whatever their length.
func TestMedianIntervalCoversTheMedian(t *testing.T) {
	const runs = 4000
	r := rand.New(rand.NewPCG(2, 2))
	for _, n := range []int{6, 7, 10, 15, 30} {
		missed := 0
		for range runs {
			if s := Summarize(skewed(r, n)); s.Low > 1 || s.High < 1 {
				missed++
			}
		}
		if missed > runs*6/100 { // 5 % and three standard errors
			t.Errorf("n = %d: missed the median in %d of %d runs", n, missed, runs)
		}
	}
}

func TestSummaryIsAnInterval(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 2000 {
		x := skewed(r, r.IntN(40))
		s := Summarize(x)
		if s.HasInterval() && (s.Low > s.Median || s.Median > s.High || s.Confidence < confidence || s.Confidence >= 1) {
			t.Fatalf("%v: %+v", x, s)
		}
		if s.N != len(x) || s.Outliers > len(x)/2 {
			t.Fatalf("%v: %+v", x, s)
		}
	}
}
