package stat

import (
	"math/rand/v2"
	"testing"
)

// TestCellsOfTwoRunsShareTheDoubt compares runs of the same code: a false word in
// any of the cells must be as rare as in one.
func TestCellsOfTwoRunsShareTheDoubt(t *testing.T) {
	const runs, rounds = 1000, 12
	r := rand.New(rand.NewPCG(5, 5))
	for _, cells := range []int{1, 16} {
		for _, paired := range []bool{true, false} {
			wrong := 0
			for range runs {
				a, b := make([][]float64, cells), make([][]float64, cells)
				for i := range a {
					a[i], b[i] = skewed(r, rounds), skewed(r, rounds)
				}
				for _, c := range CompareRuns(a, b, paired, 0, Band) {
					if c.Verdict == Faster || c.Verdict == Slower {
						wrong++
						break
					}
				}
			}
			if wrong > runs*7/100 { // 5 % and three standard errors
				t.Errorf("%d cells, paired %v: %d of %d runs have a false word", cells, paired, wrong, runs)
			}
		}
	}
}

func TestCellsOfTwoRunsAreComparedEach(t *testing.T) {
	a := [][]float64{count(10), count(12)}
	one := CompareRuns(a[:1], a[:1], true, 0, Band)
	if len(one) != 1 || one[0] != Compare(a[0], a[0], 0, Band) {
		t.Errorf("one cell: %+v", one)
	}
	both := CompareRuns(a, [][]float64{a[1], a[1]}, false, 0, Band)
	if len(both) != 2 || both[0].N != 10 || both[1].N != 12 || both[0].Confidence < 1-0.05/2 {
		t.Errorf("two cells: %+v", both)
	}
	if got := CompareRuns(nil, nil, true, 0, Band); got != nil {
		t.Errorf("no cells: %+v", got)
	}
}
