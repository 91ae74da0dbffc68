package stat

import (
	"cmp"
	"math"
	"slices"
)

// Spearman returns the correlation of the ranks of two samples of the same things, from -1 for the
// reverse order to 1 for the same (Spearman's rho). Ties share the mean of their ranks. It is NaN for
// fewer than three, or if one sample is all ties.
func Spearman(x, y []float64) float64 {
	if len(x) != len(y) || len(x) < 3 {
		return math.NaN()
	}
	a, b := ranks(x), ranks(y)
	mean := float64(len(x)+1) / 2
	var xy, xx, yy float64
	for i := range a {
		dx, dy := a[i]-mean, b[i]-mean
		xy, xx, yy = xy+dx*dy, xx+dx*dx, yy+dy*dy
	}
	return xy / math.Sqrt(xx*yy)
}

// ranks returns the rank of each sample, from 1.
func ranks(x []float64) []float64 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(x[a], x[b]) })
	ranks := make([]float64, len(x))
	for i := 0; i < len(order); {
		end := i + 1
		for end < len(order) && x[order[end]] == x[order[i]] {
			end++
		}
		for _, at := range order[i:end] {
			ranks[at] = float64(i+1+end) / 2
		}
		i = end
	}
	return ranks
}
