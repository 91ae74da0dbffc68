package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestProcessOfEachRound simulates that each process makes a cell faster or slower for as long as it
// lives. With rounds in one process, or in a few, the intervals miss the true value, which is the
// median over all processes. The table is in docs/design/measuring.md.
func TestProcessOfEachRound(t *testing.T) {
	const rounds, noise = 20, 0.05
	n := 2 * runs()
	for _, moved := range []float64{0, 0.02, 0.05} {
		for _, processes := range []int{1, 4, rounds} {
			r := rand.New(rand.NewPCG(31, uint64(processes)))
			median, ratio := 0, 0
			for range n {
				cell := func() (x []float64) {
					process := 0.0
					for round := range rounds {
						if round%(rounds/processes) == 0 {
							process = moved * r.NormFloat64()
						}
						x = append(x, math.Exp(process+noise*r.NormFloat64()))
					}
					return x
				}
				a, b := cell(), cell()
				if s := Summarize(a); s.Low <= 1 && 1 <= s.High {
					median++
				}
				if c := Compare(a, b, 0, Band); c.Low <= 1 && 1 <= c.High {
					ratio++
				}
			}
			covers := func(n2 int) float64 { return float64(n2) / float64(n) }
			t.Logf("| %.0f %% | %d | %.0f %% | %.0f %% |", 100*moved, processes, 100*covers(median), 100*covers(ratio))
			if least := leastCover(); (processes == rounds || moved == 0) && (covers(median) < least || covers(ratio) < least) {
				t.Errorf("%d processes that move by %v: %.3f of the medians' intervals and %.3f of the ratios' cover the truth", processes, moved, covers(median), covers(ratio))
			}
			if processes == 1 && moved == 0.05 && covers(ratio) > 0.7 {
				t.Errorf("one process that moves by %v: %.3f of the intervals cover the truth, so this simulates nothing", moved, covers(ratio))
			}
		}
	}
}
