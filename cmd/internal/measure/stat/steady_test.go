package stat

import (
	"math"
	"testing"
)

func TestSteady(t *testing.T) {
	check := func(samples []float64, want Window, ok bool) {
		t.Helper()
		got, steady := Steady(samples)
		if steady != ok || !near(got.Mean, want.Mean) || !near(got.Spread, want.Spread) || !near(got.Slope, want.Slope) {
			t.Errorf("Steady(%v) = %+v, %v; want %+v, %v", samples, got, steady, want, ok)
		}
	}
	nan := math.NaN()
	check([]float64{5, 5, 5, 5, 5}, Window{5, 0, 0}, true)
	// Spread: 20 % is inside, more is not. The line is level.
	check([]float64{90, 110, 100, 110, 90}, Window{100, 0.20, 0}, true)
	check([]float64{89.9, 110.1, 100, 110.1, 89.9}, Window{100, 0.202, 0}, false)
	// Slope: ±10 % over the window is inside, more is not.
	check([]float64{95, 97.5, 100, 102.5, 105}, Window{100, 0.10, 0.10}, true)
	check([]float64{105, 102.5, 100, 97.5, 95}, Window{100, 0.10, -0.10}, true)
	check([]float64{94.8, 97.4, 100, 102.6, 105.2}, Window{100, 0.104, 0.104}, false)
	check([]float64{105.2, 102.6, 100, 97.4, 94.8}, Window{100, 0.104, -0.104}, false)
	// By hand: deviations -2…2 times 1, 2, 3, 4, 15 less 5 add up to 30; 30/10·4.
	check([]float64{1, 2, 3, 4, 15}, Window{5, 2.8, 12.0 / 5}, false)
	// Only the latest five count.
	check([]float64{900, 1, 5, 5, 5, 5, 5}, Window{5, 0, 0}, true)
	check([]float64{5, 5, 5, 5, 5, 50}, Window{14, 45.0 / 14, 36.0 / 14}, false)
	check([]float64{5, 5, 5, 5}, Window{nan, nan, nan}, false)
	check(nil, Window{nan, nan, nan}, false)
	for _, bad := range []float64{0, -1, nan, math.Inf(1)} {
		check([]float64{5, 5, bad, 5, 5}, Window{nan, nan, nan}, false)
		check([]float64{bad, 5, 5, 5, 5, 5}, Window{5, 0, 0}, true)
	}
}
