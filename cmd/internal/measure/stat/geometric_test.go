package stat

import (
	"math"
	"testing"
)

func TestGeometricMeans(t *testing.T) {
	check := func(cells [][]float64, want ...float64) {
		t.Helper()
		got := GeometricMeans(cells)
		if len(got) != len(want) {
			t.Fatalf("GeometricMeans(%v) = %v, want %v", cells, got, want)
		}
		for i := range want {
			if !near(got[i], want[i]) {
				t.Errorf("GeometricMeans(%v) = %v, want %v", cells, got, want)
			}
		}
	}
	check([][]float64{{1, 4, 9}, {4, 1, 4}}, 2, 2, 6)
	check([][]float64{{1, 2}, {10, 20}, {100, 200}}, 10, 20)
	check([][]float64{{3, 5}}, 3, 5)
	check([][]float64{{1e300, 1e-300}, {1e300, 1e-300}}, 1e300, 1e-300)
	check(nil)
	check([][]float64{{}, {}})
	check([][]float64{{1, 2}, {1}})
	check([][]float64{{}, {1}})
	for _, bad := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		check([][]float64{{1, 2}, {1, bad}})
	}
}

// One cell twice as fast and one twice as slow are no change over all, whatever their costs. One of
// two cells 21 % slower is 10 % over all.
func TestOverallComparison(t *testing.T) {
	fast, slow := count(10), scaled(count(10), 1000)
	before := GeometricMeans([][]float64{fast, slow})
	check := func(fastFactor, slowFactor, ratio float64, word Verdict) {
		t.Helper()
		after := GeometricMeans([][]float64{scaled(fast, fastFactor), scaled(slow, slowFactor)})
		if c := Compare(before, after, 0, Band); !near(c.Ratio, ratio) || c.Verdict != word || c.N != 10 {
			t.Errorf("%+v, want %v, %s", c, ratio, word)
		}
	}
	check(2, 0.5, 1, Same)
	check(1.21, 1, 1.1, Slower)
	check(1, 1.21, 1.1, Slower)
	check(1, 1/1.21, 1/1.1, Faster)
	if c := Compare(before, nil, 0, Band); c.Verdict != NotProven || !math.IsNaN(c.Ratio) {
		t.Errorf("%+v, want no ratio", c)
	}
}
