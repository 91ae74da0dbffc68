package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestQuantilesAreThoseOfSortedSamples: a search must find the same values as sorting, to the bit.
func TestQuantilesAreThoseOfSortedSamples(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	check := func(samples []float64) {
		t.Helper()
		ascending := sorted(samples)
		for _, p := range []float64{0, 0.01, 0.25, 0.5, 0.9, 0.999, 1, math.NaN(), 2} {
			if got, want := Quantile(samples, p), quantile(ascending, p); math.Float64bits(got) != math.Float64bits(want) {
				t.Fatalf("the quantile %v of %d samples is %v, want %v", p, len(samples), got, want)
			}
		}
		s := Summarize(samples)
		if k, _ := medianRank(len(samples)); k > 0 && !hasNaN(samples) && (s.Low != ascending[k-1] || s.High != ascending[len(samples)-k] || s.Outliers != countOutliers(ascending)) {
			t.Fatalf("%d samples: %+v", len(samples), s)
		}
		if got, want := Median(slices.Clone(samples)), quantile(ascending, 0.5); math.Float64bits(got) != math.Float64bits(want) {
			t.Fatalf("the median of %d samples is %v, want %v", len(samples), got, want)
		}
	}
	for n := range 300 {
		x := make([]float64, n)
		for _, kinds := range []int{1, 2, 7, math.MaxInt32} {
			for i := range x {
				x[i] = float64(r.IntN(kinds)) / 8
			}
			check(x)
			check(sorted(x))
			slices.Reverse(x)
			check(x)
		}
		if n > 0 {
			x[n/2] = math.NaN()
			check(x)
			x[n/2] = math.Inf(1)
			check(x)
		}
	}
}

// TestMedianRankOfManyIsTheSame: the terms that the sum leaves out are zero.
func TestMedianRankOfManyIsTheSame(t *testing.T) {
	for _, n := range []int{1, 6, 400, 1600, 1601, 10_000, 50_000} {
		tail, wantRank, want := 0.0, 0, 0.0
		for below := 0; below < n/2; below++ {
			tail += math.Exp(logChoose(n, below) - float64(n)*math.Ln2)
			if 2*tail > 1-confidence {
				break
			}
			wantRank, want = below+1, 1-2*tail
		}
		if k, coverage := medianRank(n); k != wantRank || coverage != want {
			t.Errorf("of %d samples the rank is %d with %v, want %d with %v", n, k, coverage, wantRank, want)
		}
	}
}

// BenchmarkQuantile asks for the median of 40,000 samples.
func BenchmarkQuantile(b *testing.B) {
	r := rand.New(rand.NewPCG(7, 8))
	x := make([]float64, 40_000)
	for i := range x {
		x[i] = r.ExpFloat64()
	}
	for b.Loop() {
		Quantile(x, 0.5)
	}
}
