package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestStudentQuantiles compares with the usual tables.
func TestStudentQuantiles(t *testing.T) {
	for _, one := range []struct {
		freedom int
		part, t float64
	}{{1, 0.95, 12.706}, {2, 0.95, 4.303}, {3, 0.95, 3.182}, {4, 0.99, 4.604}, {7, 0.95, 2.365}, {8, 0.998, 4.501}, {10, 0.95, 2.228}, {2, 0.998, 22.327}} {
		if got := studentQuantile(one.freedom, one.part); math.Abs(got-one.t) > 0.001 {
			t.Errorf("%d degrees, %v: %v, want %v", one.freedom, one.part, got, one.t)
		}
	}
}

// TestGrossDifferencesNeedFewRounds: nine cells, and fewer rounds than their intervals need.
func TestGrossDifferencesNeedFewRounds(t *testing.T) {
	r := rand.New(rand.NewPCG(39, 39))
	group := func(rounds int, factors ...float64) (cells [][]float64) {
		for _, f := range factors {
			costs := make([]float64, rounds)
			for i := range costs {
				costs[i] = f * math.Exp(0.05*r.NormFloat64())
			}
			cells = append(cells, costs)
		}
		return cells
	}
	check := func(rounds int, factor float64, want Verdict, far bool) {
		t.Helper()
		for _, f := range []float64{factor, 1.05 * factor} {
			_, found := CompareGroup(group(rounds, 1, f, 1, 1, 1, 1, 1, 1, 1), 0.2, Band)
			if c := found[1]; c.Verdict != want || (c.Far() > 0) != far || c.HasInterval() || want == Slower && !(c.Bound > 1 && c.Bound < 1.1*f) {
				t.Errorf("%d rounds, %v: %+v, %q", rounds, f, c, c.Word())
			}
		}
	}
	for _, rounds := range []int{3, 6, 9, 10} {
		check(rounds, 28700, Slower, true)
		check(rounds, 1.2, NotProven, false)
	}
	check(2, 28700, NotProven, false)
	check(9, 4, Slower, false)
	check(9, 1.8, NotProven, false)
	if c := Compare([]float64{100, 101, 102}, []float64{1, 1, 1}, 0.1, Band); c.Verdict != Faster || c.Word() != "far faster, at least 98x" {
		t.Errorf("%+v, %q", c, c.Word())
	}
	if c := Compare([]float64{1, 1, 1}, []float64{100, 100, 100}, math.NaN(), Band); c.Verdict != NotProven || c.Bound != 0 {
		t.Errorf("the noise is not known: %+v", c)
	}
}

// TestGrossWordsAreNotFalse: a machine on which one round in ten takes up to thirty times as long. A heavy tail is the
// worst case for an interval that assumes normal rounds.
func TestGrossWordsAreNotFalse(t *testing.T) {
	r := rand.New(rand.NewPCG(40, 40))
	for _, rounds := range []int{3, 5, 9} {
		wrong := 0
		const runs = 2000
		for range runs {
			cells := make([][]float64, 9)
			for i := range cells {
				for range rounds {
					x := math.Exp(0.1 * r.NormFloat64())
					if r.Float64() < 0.1 {
						x *= 1 + 29*r.Float64()
					}
					cells[i] = append(cells[i], x)
				}
			}
			_, found := CompareGroup(cells, 0, Band)
			for _, c := range found {
				if c.Verdict == Slower || c.Verdict == Faster {
					wrong++
					break
				}
			}
		}
		if wrong > runs/20 {
			t.Errorf("%d rounds: %d of %d runs have a false word", rounds, wrong, runs)
		}
	}
}

// TestFewRoundsBoundARatio: of three to five rounds it is no larger than Most in 97.5 % of the runs, and a little less
// often by bad luck of the seeds, in each kind of noise.
func TestFewRoundsBoundARatio(t *testing.T) {
	for _, w := range worlds {
		for rounds := 3; rounds < LargeRounds; rounds++ {
			const runs = 2000
			within := 0
			for seed := range runs {
				s := newSimulated(rand.New(rand.NewPCG(uint64(seed), 17)), 1.2)
				s.run(rand.New(rand.NewPCG(uint64(seed), 18)), w.draw, rounds)
				c := Compare(s.a, s.b, 0.1, Band)
				if c.HasInterval() || c.Most == 0 {
					t.Fatalf("%d rounds: %+v", rounds, c)
				}
				if c.Most >= 1.2 {
					within++
				}
			}
			if within < runs*193/200 {
				t.Errorf("%s, %d rounds: %d of %d", w.name, rounds, within, runs)
			}
		}
	}
	x := []float64{1, 1.1, 1.2, 1.3, 1.2, 1.1}
	if c := Compare(x[:2], x[1:3], 0.1, Band); c.Most != 0 {
		t.Errorf("two rounds: %+v", c)
	}
	if c := Compare(x, x, 0.1, Band); c.Most != 0 {
		t.Errorf("an interval: %+v", c)
	}
}
