package stat

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// Kendall's test of 1…10 in order: S = 45, variance 10·9·25/18 = 125, so
// z = 44/√125 = 3.935 and p = 8.3e-5.
func TestTrend(t *testing.T) {
	slope, doubt := trend([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
	if !near(slope, 1) || math.Abs(doubt-8.3e-5) > 1e-6 {
		t.Errorf("slope %v, doubt %v; want 1, 8.3e-5", slope, doubt)
	}
	// With ties: 18·variance = 10·9·25 - 2·(5·4·15).
	if got := kendallVariance([]float64{1, 1, 1, 1, 1, 2, 2, 2, 2, 2}); !near(got, (2250.0-600)/18) {
		t.Errorf("variance with ties = %v", got)
	}
}

func TestDrift(t *testing.T) {
	check := func(rounds []float64, shift float64, want bool) {
		t.Helper()
		got, ok := Drift(rounds)
		if ok != want || want && !near(got, shift) {
			t.Errorf("Drift(%v) = %v, %v; want %v, %v", rounds, got, ok, shift, want)
		}
	}
	rising := func(n int, step float64) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = 1 + step*float64(i-n/2)
		}
		return x
	}
	check(rising(11, 0.01), 0.1, true)
	check(rising(11, -0.01), -0.1, true)
	check(rising(11, 0.0049), 0, false) // a sure drift, but of less than 5 %
	check(rising(9, 0.01), 0, false)    // too few rounds to say
	check([]float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 0, false)
	check([]float64{1, math.NaN(), 3, 4, 5, 6, 7, 8, 9, 10, 11}, 0, false)
}

func TestNoiseIsRarelyADrift(t *testing.T) {
	const runs = 2000
	r := rand.New(rand.NewPCG(8, 8))
	drifts := 0
	for range runs {
		if _, ok := Drift(skewed(r, 12)); ok {
			drifts++
		}
	}
	if drifts > runs*2/100 {
		t.Errorf("%d of %d runs without a drift show one", drifts, runs)
	}
}

func TestWarningsNameTheTroubleAndTheCure(t *testing.T) {
	check := func(rounds []float64, wants ...string) {
		t.Helper()
		got := Warnings(rounds)
		if len(got) != len(wants) {
			t.Fatalf("Warnings(%v) = %v, want %d of them", rounds, got, len(wants))
		}
		for i, w := range got {
			code, words, _ := strings.Cut(wants[i], ": ")
			if w.Code != code || !strings.Contains(w.What, words) || w.Cure == "" {
				t.Errorf("%+v, want code %q, %q in it, and a cure", w, code, words)
			}
		}
	}
	check(nil, "too-few-rounds: only 0 rounds")
	check([]float64{1, 1, 1, 1, 1, 1, 1, 1, 1}, "too-few-rounds: only 9 rounds")
	check([]float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1})
	check([]float64{100, 102, 104, 106, 108, 110, 112, 114, 116, 118}, "drift: drifted by +17 %")
	check([]float64{1, 3, 1, 3, 1, 3, 1, 3, 1, 3}, "wide-interval: ±50 %")
	check([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, "drift: drifted", "wide-interval: ±64 %")
}

func TestTooFewRoundsSaysHowManyAGroupTakes(t *testing.T) {
	check := func(rounds, cells int, what, cure string) {
		t.Helper()
		w, few := TooFewRounds(rounds, cells)
		if few != (what != "") || w.What != what || w.Cure != cure {
			t.Errorf("%d rounds of %d cells: %+v, %v; want %q, %q", rounds, cells, w, few, what, cure)
		}
	}
	check(9, 7, "only 9 rounds: too few for a verdict", "run at least 10 rounds")
	check(6, 2, "only 6 rounds: they prove only differences of more than half", "run at least 10 rounds")
	check(5, 2, "only 5 rounds: too few for a verdict", "run at least 10 rounds")
	check(10, 7, "", "")
	check(10, 8, "only 10 rounds: too few for a verdict among 8 cells", "run at least 11 rounds")
	check(11, 8, "", "")
	check(12, 16, "only 12 rounds: too few for a verdict among 16 cells", "run at least 13 rounds")
}

// Programs read warnings as JSON: its keys are a promise.
func TestWarningAsJSON(t *testing.T) {
	got, err := json.Marshal(Warning{Code: "drift", What: "it drifts", Cure: "anchor it"})
	if want := `{"code":"drift","what":"it drifts","cure":"anchor it"}`; err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}
