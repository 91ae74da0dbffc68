package stat

import (
	"math"
	"testing"
)

func TestSpearmanIsTheOrderAlone(t *testing.T) {
	check := func(x, y []float64, want float64) {
		t.Helper()
		got := Spearman(x, y)
		if math.IsNaN(want) != math.IsNaN(got) || math.Abs(got-want) > 1e-12 {
			t.Errorf("%v and %v: %v, want %v", x, y, got, want)
		}
	}
	check([]float64{1, 2, 3, 4}, []float64{1, 100, 1e6, 1e9}, 1)
	check([]float64{1, 2, 3, 4}, []float64{9, 7, 5, 3}, -1)
	// 1 - 6*sum(d²)/(n(n²-1)) with d = 0 1 1 0.
	check([]float64{1, 2, 3, 4}, []float64{1, 3, 2, 4}, 0.8)
	// Ties share a rank: 1, 2.5, 2.5, 4.
	check([]float64{1, 2, 2, 4}, []float64{1, 2, 3, 4}, 4.5/math.Sqrt(4.5*5))
	check([]float64{1, 2}, []float64{1, 2}, math.NaN())
	check([]float64{1, 1, 1}, []float64{1, 2, 3}, math.NaN())
	check([]float64{1, 2, 3}, []float64{1, 2}, math.NaN())
}
