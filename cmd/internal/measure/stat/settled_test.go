package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

// jittered returns n costs that vary around level by the given part. A ratio to steady costs then has
// an interval of about ± that part.
func jittered(n int, level, part float64) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = level * math.Exp(math.Log1p(part)*float64(1-2*(i%2)))
	}
	return x
}

func TestSettled(t *testing.T) {
	check := func(groups [][][]float64, want, widest float64, ok bool) {
		t.Helper()
		if got, settled := Settled(groups, want); settled != ok || !near(got, widest) {
			t.Errorf("Settled(…, %v) = %v, %v; want %v, %v", want, got, settled, widest, ok)
		}
	}
	calm, noisy, noisier := jittered(10, 1, 0), jittered(10, 2, 0.03), jittered(10, 3, 0.06)
	// The interval of ten ratios ±3 % reaches from the ninth smallest to the
	// ninth largest of their Walsh averages: 15 of 55 are -3 %, 15 are +3 %.
	check([][][]float64{{calm, noisy}}, 0.0301, 0.03, true)
	check([][][]float64{{calm, noisy}}, 0.0299, 0.03, false)
	// Every ratio counts: in any place of the group, in any group.
	check([][][]float64{{calm, noisy, noisier}}, 0.0301, 0.06, false)
	check([][][]float64{{noisier, calm, noisy}}, 0.0301, 0.06, false)
	check([][][]float64{{calm, noisy}, {calm, noisier}}, 0.0301, 0.06, false)
	check([][][]float64{{calm, noisier}, {calm, noisy}}, 0.0601, 0.06, true)
	// A cell is compared with the fastest: noisier against noisy, which share their jitter, would be ±3
	// %.
	check([][][]float64{{noisy, calm, noisier}}, 0.0301, 0.06, false)

	short := func(n int) [][][]float64 { return [][][]float64{{calm[:n], calm[:n]}} }
	check(short(9), 1, 0, false)
	check(short(10), 1, 0, true)
	check(short(5), 1, math.NaN(), false)
	check([][][]float64{{calm, noisy}, {calm[:5], calm[:5]}, {calm, calm}}, 1, math.NaN(), false)
	check([][][]float64{{calm, noisy[:9]}}, 1, 0.03, false)
	check([][][]float64{{calm[:9], calm[:9]}, {calm, calm}}, 1, 0, false) // the least number of rounds counts
	check([][][]float64{{calm, noisy}}, math.NaN(), 0.03, false)
	check([][][]float64{{calm}}, 0, 0, true)
	check([][][]float64{{}}, 1, 0, false)
	check(nil, 1, 0, false)
}

// The rule's answer does not depend on the size of a difference: when a run ends does not depend on its
// result.
func TestSettledSeesWidthsOnly(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for range 200 {
		a, b := skewed(r, 12), skewed(r, 12)
		if cheapest([][]float64{a, b}) != 0 {
			a, b = b, a
		}
		alike, _ := Settled([][][]float64{{a, b}}, 0.1)
		apart, _ := Settled([][][]float64{{a, scaled(b, 3)}}, 0.1)
		if !near(alike, apart) {
			t.Fatalf("widest %v with a difference, %v without", apart, alike)
		}
	}
}

// A word is decided if an interval that is half as wide again has it too.
func TestDecidedHasSlack(t *testing.T) {
	check := func(low, high, floor float64, want bool) {
		t.Helper()
		c := estimate{(math.Log(low) + math.Log(high)) / 2, math.Log(low), math.Log(high), 0.95}.comparison(12, floor, Band)
		if got := c.Decided(floor); got != want {
			t.Errorf("%v (%v-%v) beyond %v: decided is %v", c.Verdict, low, high, floor, got)
		}
	}
	check(1.6, 2.5, 0, true)
	check(1.02, 2.5, 0, false) // slower, and hardly
	check(1.02, 1.03, 0, true)
	check(1.6, 2.5, 0.5, false) // the floor takes the slack
	check(1.6, 2.5, math.NaN(), false)
	check(0.5, 0.6, 0.1, true)
	check(0.5, 0.9, 0, false)
	check(0.99, 1.01, 0.01, true)   // the same
	check(0.96, 1.045, 0.01, false) // the same, and hardly
	check(0.8, 1.3, 0.01, false)    // not proven
	check(12, 40, 0.3, true)
	if c := (Comparison{N: 4, Verdict: Slower, Bound: 9}); c.Decided(0) {
		t.Error("a word without an interval is decided")
	}
}
