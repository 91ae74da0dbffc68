package stat

import "math"

// GeometricMeans returns the geometric mean over the cells' costs, round by round: one
// cell that stands for all of them. A change of any cell by one part counts the same in
// it, however long that cell takes. [CompareRuns] of two such is the overall comparison
// of two runs.
//
// It takes the geometric means before any ratio, so it assumes nothing of how the cells of one
// round depend on each other. Each round gives one sample. It returns nil where the cells have
// different numbers of rounds, or a cost is not positive and finite; those comparisons are then not
// proven.
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
