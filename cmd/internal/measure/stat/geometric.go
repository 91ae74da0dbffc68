package stat

import "math"

// GeometricMeans returns the geometric mean of the cells' costs, round by round: one cell that
// represents all of them. A change of any cell by the same part has the same effect on it, however long
// that cell takes. [CompareRuns] of two such cells is the overall comparison of two runs.
//
// It takes the geometric means before any ratio, so it assumes nothing about the dependence between the
// cells of one round. Each round gives one sample. It returns nil if the cells have different numbers
// of rounds, or a cost is not positive and finite; those comparisons are then not proven.
func GeometricMeans(cells [][]float64) []float64 {
	var means []float64
	for i, costs := range cells {
		l, ok := logs(costs)
		if !ok || i > 0 && len(l) != len(means) {
			return nil
		}
		if i == 0 {
			means = make([]float64, len(l))
		}
		for round, x := range l {
			means[round] += x / float64(len(cells))
		}
	}
	for round, x := range means {
		means[round] = math.Exp(x)
	}
	return means
}
