package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The critical values of Wilcoxon's signed-rank test, two-sided at 5 %, as every table has them.
// Each is the largest sum that rejects, so k is one more.
func TestSignedRankCriticalValues(t *testing.T) {
	check := func(n, critical int) {
		t.Helper()
		if k, coverage := signedRank(n, confidence); k != critical+1 || coverage < confidence {
			t.Errorf("signedRank(%d) = %d, %v; want %d", n, k, coverage, critical+1)
		}
	}
	check(6, 0)
	check(7, 2)
	check(8, 3)
	check(9, 5)
	check(10, 8)
	check(11, 10)
	check(12, 13)
	check(15, 25)
	check(20, 52)
	check(25, 89)
	check(30, 137)
	check(40, 264)
	check(50, 434)
	for n := range 6 {
		if k, coverage := signedRank(n, confidence); k != 0 || coverage != 0 {
			t.Errorf("signedRank(%d) = %d, %v; want no interval", n, k, coverage)
		}
	}
}

func TestSignedRankProbabilitiesAddUp(t *testing.T) {
	for _, n := range []int{1, 5, 30, exactPairs} {
		sum := 0.0
		for _, p := range signedRankProbabilities(n) {
			sum += p
		}
		if !near(sum, 1) {
			t.Errorf("n = %d: probabilities add up to %v", n, sum)
		}
	}
}

func TestNormalApproximationMeetsTheExactRank(t *testing.T) {
	exact, _ := signedRank(exactPairs, confidence)
	if normal, _ := signedRankNormal(exactPairs, confidence); math.Abs(float64(exact-normal)) > 5 {
		t.Errorf("rank %d exactly, %d by the normal approximation", exact, normal)
	}
}

// Hollander and Wolfe, Nonparametric Statistical Methods, table 3.1 (depression scores; also the
// example of R's ?wilcox.test). The estimate is -0.46, and the interval with 96.1 % is (-0.786,
// -0.010).
func TestHodgesLehmannOfTheTextbook(t *testing.T) {
	x := []float64{1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30}
	y := []float64{0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29}
	difference := make([]float64, len(x))
	for i := range x {
		difference[i] = y[i] - x[i]
	}
	e := hodgesLehmann(difference, confidence)
	if !near(e.centre, -0.46) || !near(e.low, -0.786) || !near(e.high, -0.010) || !near(e.coverage, 1-20.0/512) {
		t.Errorf("got %+v, want -0.46 (-0.786 … -0.010, 0.961)", e)
	}
}

// scaled returns x with each sample multiplied by factor.
func scaled(x []float64, factor float64) []float64 {
	y := make([]float64, len(x))
	for i := range x {
		y[i] = x[i] * factor
	}
	return y
}

func TestVerdicts(t *testing.T) {
	base := count(10)
	check := func(a, b []float64, floor, band float64, want Verdict) {
		t.Helper()
		if got := Compare(a, b, floor, band); got.Verdict != want {
			t.Errorf("%+v, want %q", got, want)
		}
	}
	check(base, base, 0, Band, Same)
	check(base, scaled(base, 1.0499), 0.01, Band, Same)
	check(base, scaled(base, 1.0501), 0.01, Band, Slower)
	check(base, scaled(base, 1/1.0499), 0.01, Band, Same)
	check(base, scaled(base, 1/1.0501), 0.01, Band, Faster)
	check(base, scaled(base, 0.5), 0.01, Band, Faster)
	check(base, scaled(base, 2), 0.01, Band, Slower)

	// A floor above the band makes "same" unprovable, and hides differences below it.
	check(base, base, 0.06, Band, NotProven)
	check(base, scaled(base, 1.19), 0.20, Band, NotProven)
	check(base, scaled(base, 1.21), 0.20, Band, Slower)
	check(base, scaled(base, 1/1.21), 0.20, Band, Faster)
	check(base, base, math.NaN(), Band, NotProven)
	check(base, scaled(base, 2), math.NaN(), Band, NotProven)

	// Few rounds prove only large differences.
	check(base[:9], scaled(base[:9], 1.49), 0, Band, NotProven)
	check(base[:9], base[:9], 0, Band, NotProven)
	check(base[:LargeRounds], scaled(base[:LargeRounds], 1.51), 0, Band, Slower)
	check(base[:LargeRounds], scaled(base[:LargeRounds], 1/1.51), 0, Band, Faster)
	check(base[:LargeRounds], scaled(base[:LargeRounds], 2), 1.1, Band, NotProven)
	check(base[:LargeRounds], scaled(base[:LargeRounds], 2), math.NaN(), Band, NotProven)
	check(base[:LargeRounds-1], scaled(base[:LargeRounds-1], 1.9), 0, Band, NotProven)

	// Without rounds that can be paired nothing is proven.
	check(base, scaled(base[:9], 2), 0, Band, NotProven)
	check(nil, nil, 0, Band, NotProven)
	for _, bad := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		broken := append([]float64{bad}, base[1:]...)
		check(base, broken, 0, Band, NotProven)
		check(broken, base, 0, Band, NotProven)
	}

	// An interval that reaches over both 1 and the band proves nothing.
	wide := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	check(wide, []float64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, 0, Band, NotProven)
}

func TestFewPairsHaveARatioWithoutAnInterval(t *testing.T) {
	c := Compare([]float64{1, 1, 1}, []float64{2, 2, 2}, 0, Band)
	if !near(c.Ratio, 2) || c.HasInterval() || !math.IsNaN(c.Low) || !math.IsNaN(c.High) || c.N != 3 {
		t.Errorf("got %+v, want a ratio of 2 and no interval", c)
	}
}

func TestComparisonWidth(t *testing.T) {
	check := func(c Comparison, want float64) {
		t.Helper()
		if got := c.Width(); !near(got, want) {
			t.Errorf("width of %+v is %v, want %v", c, got, want)
		}
	}
	check(Comparison{Low: 1 / 1.03, High: 1.03}, 0.03)
	check(Comparison{Low: 2 / 1.03, High: 2 * 1.03}, 0.03)
	check(Comparison{Low: 1, High: 1}, 0)
	check(Compare(count(5), count(5), 0, Band), math.NaN())
	check(Compare(nil, nil, 0, Band), math.NaN())
	check(Comparison{}, math.NaN())
}

func TestFloorIsTheGap(t *testing.T) {
	check := func(a, b []float64, want float64) {
		t.Helper()
		if got := Floor(a, b); !near(got, want) {
			t.Errorf("Floor(%v, %v) = %v, want %v", a, b, got, want)
		}
	}
	check(count(10), count(10), 0)
	check(count(10), scaled(count(10), 1.03), 0.03)
	check(scaled(count(10), 1.03), count(10), 0.03)
	check([]float64{1}, []float64{1.5}, 0.5)
	check(nil, nil, math.NaN())
	check([]float64{1}, []float64{0}, math.NaN())
}

func TestUnseenIsTheFarEndOnEitherSide(t *testing.T) {
	for _, c := range []Comparison{{Low: 0.5, High: 1.1}, {Low: 0.9, High: 2}} {
		if got := c.Unseen(); !near(got, 1) {
			t.Errorf("%+v: %v, want 1", c, got)
		}
	}
}

func TestNoiseIsTheFarEndOfTheGap(t *testing.T) {
	check := func(a, b []float64, want float64) {
		t.Helper()
		if got := Noise(a, b); !near(got, want) {
			t.Errorf("Noise(%v, %v) = %v, want %v", a, b, got, want)
		}
	}
	check(count(10), count(10), 0)
	check(count(10), scaled(count(10), 1.03), 0.03)
	check([]float64{1, 1, 1}, []float64{1.1, 1 / 1.2, 1}, 0.2) // too few for an interval: the worst round

	// Two cells that differ by chance have the ratio 1.00x, known only within this noise.
	loud := []float64{1, 2, 1, 2, 1, 2, 1, 2, 1, 2}
	c := Compare(loud, []float64{2, 1, 2, 1, 2, 1, 2, 1, 2, 1}, 0, Band)
	if !near(c.Ratio, 1) {
		t.Fatal(c)
	}
	check(loud, []float64{2, 1, 2, 1, 2, 1, 2, 1, 2, 1}, c.Unseen())
	check(nil, nil, math.NaN())
}

// noisy draws the costs of n rounds of two cells whose times differ by a factor.
// Each round has a common factor, each sample a skewed noise, and one in twenty is an outlier of up to
// three times.
func noisy(r *rand.Rand, n int, factor, noise float64) (a, b []float64) {
	sample := func() float64 {
		x := math.Exp(noise * r.NormFloat64())
		if r.IntN(20) == 0 {
			x *= 1 + 2*r.Float64()
		}
		return x
	}
	for range n {
		mood := math.Exp(0.3 * r.NormFloat64())
		a = append(a, mood*sample())
		b = append(b, mood*sample()*factor)
	}
	return a, b
}

func TestSwappingTheCellsInvertsTheComparison(t *testing.T) {
	mirror := map[Verdict]Verdict{Faster: Slower, Slower: Faster, Same: Same, NotProven: NotProven}
	r := rand.New(rand.NewPCG(4, 4))
	for range 1000 {
		a, b := noisy(r, 6+r.IntN(20), 0.8+0.4*r.Float64(), 0.05)
		there, back := Compare(a, b, 0.01, Band), Compare(b, a, 0.01, Band)
		if !near(there.Ratio, 1/back.Ratio) || !near(there.Low, 1/back.High) || !near(there.High, 1/back.Low) || there.Verdict != mirror[back.Verdict] {
			t.Fatalf("%+v, swapped %+v", there, back)
		}
		if there.Low > there.Ratio || there.Ratio > there.High {
			t.Fatalf("the ratio lies outside of its interval: %+v", there)
		}
	}
}

func TestTheUnitDoesNotMatter(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 500 {
		a, b := noisy(r, 12, 1.1, 0.05)
		seconds, nanoseconds := Compare(a, b, 0.01, Band), Compare(scaled(a, 1e9), scaled(b, 1e9), 0.01, Band)
		if !near(seconds.Ratio, nanoseconds.Ratio) || seconds.Verdict != nanoseconds.Verdict {
			t.Fatalf("%+v in seconds, %+v in nanoseconds", seconds, nanoseconds)
		}
	}
}

// The same code under two names: a verdict of faster or slower is false. At most
// 5 % may be. The floor of the run's own A/A arm takes most of these away.
func TestSameCodeIsRarelyFasterOrSlower(t *testing.T) {
	const runs = 2000
	for _, n := range []int{10, 12, 20} {
		r := rand.New(rand.NewPCG(6, uint64(n)))
		bare, floored := 0, 0
		wrong := func(v Verdict) int {
			if v == Faster || v == Slower {
				return 1
			}
			return 0
		}
		for range runs {
			a, a2 := noisy(r, n, 1, 0.05)
			floor := Floor(a, a2)
			a, b := noisy(r, n, 1, 0.05)
			bare += wrong(Compare(a, b, 0, Band).Verdict)
			floored += wrong(Compare(a, b, floor, Band).Verdict)
		}
		t.Logf("%d rounds: %d of %d verdicts false without a floor, %d with it", n, bare, runs, floored)
		if bare > runs*65/1000 { // 5 % and three standard errors
			t.Errorf("%d rounds: %d of %d verdicts are false without a floor", n, bare, runs)
		}
		if floored > runs*5/100 {
			t.Errorf("%d rounds: %d of %d verdicts are false", n, floored, runs)
		}
	}
}

// With 2 % of noise, and an outlier that stays in every tenth pair, 20 rounds find a
// planted 10 % nine times in ten. They never take it for the opposite or for nothing.
func TestPlantedDifferenceIsFound(t *testing.T) {
	const runs = 500
	r := rand.New(rand.NewPCG(7, 7))
	found := map[Verdict]int{}
	for range runs {
		a, a2 := noisy(r, 20, 1, 0.02)
		floor := Floor(a, a2)
		a, b := noisy(r, 20, 1.10, 0.02)
		found[Compare(a, b, floor, Band).Verdict]++
	}
	t.Logf("%v", found)
	if found[Slower] < runs*90/100 {
		t.Errorf("found a planted 10 %% in %d of %d runs", found[Slower], runs)
	}
	if found[Faster]+found[Same] > 0 {
		t.Errorf("took a planted 10 %% for faster or the same: %v", found)
	}
}
