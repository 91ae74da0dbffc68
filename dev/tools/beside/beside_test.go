// Package beside compares our statistics with benchstat's, on the same samples:
// golang.org/x/perf/benchmath is the library that benchstat judges with. They must agree where both
// have an answer; where rounds are paired, ours should see what benchstat can't.
package beside

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"golang.org/x/perf/benchmath"
)

// sample gives the costs to benchmath, which sorts what it is given.
func sample(costs []float64) *benchmath.Sample {
	return benchmath.NewSample(slices.Clone(costs), &benchmath.DefaultThresholds)
}

// benchstatDiffers reports whether benchstat would print a difference instead of
// "~". It assumes that all samples are independent, and knows no pairs.
func benchstatDiffers(a, b []float64) bool {
	return differsAt(a, b, 1)
}

// differsAt is benchstatDiffers for tests that share benchstat's doubt.
func differsAt(a, b []float64, tests float64) bool {
	c := benchmath.AssumeNothing.Compare(sample(a), sample(b))
	return c.P <= c.Alpha/tests
}

// differs reports whether a comparison of ours proves a difference.
func differs(c stat.Comparison) bool {
	return c.Verdict == stat.Faster || c.Verdict == stat.Slower
}

// draw returns n costs around level with lognormal noise.
func draw(r *rand.Rand, n int, level, noise float64) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = level * math.Exp(noise*r.NormFloat64())
	}
	return x
}

// times multiplies round by round.
func times(x, y []float64) []float64 {
	product := make([]float64, len(x))
	for i := range x {
		product[i] = x[i] * y[i]
	}
	return product
}

// near reports whether two figures agree to twelve digits.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*max(math.Abs(a), math.Abs(b)) }

const runs = 200

// Both take the median with an interval between two order statistics that covers at least 95 %.
// Ours is equally far from both ends, so that the interval of a rate is the inverse of its time's.
// benchstat's interval leaves one sample out at one end where 95 % allow it. Up to 30 samples
// benchstat too counts exactly.
func TestMedianAndIntervalAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for n := 6; n <= 40; n++ {
		x := draw(r, n, 1000, 0.3)
		ours, theirs := stat.Summarize(x), benchmath.AssumeNothing.Summary(sample(x), 0.95)
		if !near(ours.Median, theirs.Center) {
			t.Errorf("n = %d: median %v, benchstat's %v", n, ours.Median, theirs.Center)
		}
		slices.Sort(x)
		low := slices.Index(x, theirs.Lo) - slices.Index(x, ours.Low)
		high := slices.Index(x, ours.High) - slices.Index(x, theirs.Hi)
		if low < 0 || high < 0 || low+high > 1 {
			t.Errorf("n = %d: benchstat's interval begins %d samples higher and ends %d lower", n, low, high)
		}
		if low+high == 0 && n <= 30 && !near(ours.Confidence, theirs.Confidence) {
			t.Errorf("n = %d: the same interval with %v, benchstat's with %v", n, ours.Confidence, theirs.Confidence)
		}
	}
}

// On independent samples CompareRuns, unpaired and without a movement is the same test as
// benchstat's, and gives the same answer every time. Its word on all cells has half of the doubt.
func TestUnpairedIsBenchstatsTest(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	found := 0
	for range runs {
		a := draw(r, 10+r.IntN(11), 1000, 0.1)
		b := draw(r, 10+r.IntN(11), 1000*(1+0.2*r.Float64()), 0.1)
		cells := stat.CompareRuns([][]float64{a}, [][]float64{b}, false, nil, 0)
		ours, theirs := cells[0], differsAt(a, b, 2)
		if differs(ours) != theirs {
			t.Errorf("%v\n%v\nours %+v, benchstat finds a difference: %v", a, b, ours, theirs)
		}
		if theirs {
			found++
		}
	}
	if found < runs/5 || found > runs*4/5 {
		t.Errorf("a difference in %d of %d: these samples hardly tell the two apart", found, runs)
	}
}

// Where the rounds have nothing in common, pairing them gains nothing and costs
// little: both tests come to the same word in nearly all cases.
func TestPairedAgreesOnIndependentSamples(t *testing.T) {
	for _, ratio := range []float64{1, 1.05, 1.2} {
		r := rand.New(rand.NewPCG(3, 3))
		agree := 0
		for range runs {
			a, b := draw(r, 20, 1000, 0.05), draw(r, 20, 1000*ratio, 0.05)
			if differs(stat.Compare(a, b, 0, 0)) == benchstatDiffers(a, b) {
				agree++
			}
		}
		t.Logf("ratio %v: they agree in %d of %d", ratio, agree, runs)
		if agree < runs*90/100 {
			t.Errorf("ratio %v: they agree in %d of %d only", ratio, agree, runs)
		}
	}
}

// A disk that has good and bad minutes, 30 % up or down, and two cells that run
// in each of them. The pairs see a 5 % shift through it; benchstat's test takes
// the minutes for noise.
func TestPairsSeeThroughWhatRoundsShare(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	ours, theirs := 0, 0
	for range runs {
		minutes := draw(r, 20, 1, 0.3)
		a, b := times(draw(r, 20, 1000, 0.01), minutes), times(draw(r, 20, 1050, 0.01), minutes)
		if stat.Compare(a, b, 0.01, 0.01).Verdict == stat.Slower {
			ours++
		}
		if benchstatDiffers(a, b) {
			theirs++
		}
	}
	if ours < runs*99/100 || theirs > runs*5/100 {
		t.Errorf("found a shift of 5 %% in %d of %d, benchstat in %d", ours, runs, theirs)
	}
}

// One code under two names on a disk that slows down by 1 % a round. With all rounds of a before
// all of b, as most benchmarks run, benchstat finds a difference that does not exist, and so would
// we. Interleaved it is gone for both: the order is wrong, and no test mends it afterwards.
func TestDriftFoolsRunsBackToBackOnly(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	drift := make([]float64, 40)
	for i := range drift {
		drift[i] = math.Exp(0.01 * float64(i))
	}
	var backToBack, interleaved, ours int
	for range runs {
		a, b := draw(r, 20, 1000, 0.03), draw(r, 20, 1000, 0.03)
		if benchstatDiffers(times(a, drift[:20]), times(b, drift[20:])) {
			backToBack++
		}
		a, b = times(a, drift[:20]), times(b, drift[:20])
		if benchstatDiffers(a, b) {
			interleaved++
		}
		if differs(stat.Compare(a, b, 0, 0)) {
			ours++
		}
	}
	t.Logf("false differences in %d runs: benchstat %d back to back, %d interleaved; ours %d", runs, backToBack, interleaved, ours)
	if backToBack < runs*95/100 {
		t.Errorf("back to back benchstat is fooled in %d of %d only: the drift is too weak to show anything", backToBack, runs)
	}
	if interleaved > runs*8/100 || ours > runs*8/100 { // 5 % and two standard errors
		t.Errorf("interleaved, %d of %d verdicts are false, benchstat's %d", ours, runs, interleaved)
	}
}
