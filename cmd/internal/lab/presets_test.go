package lab

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/sweep"
)

// TestPresetsProveAFactorOfTwo: each runs the rounds for it within its time, under 10 % of noise.
func TestPresetsProveAFactorOfTwo(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	draw := func(rounds int, cost float64) (x []float64) {
		for range rounds {
			x = append(x, cost*math.Exp(0.10*r.NormFloat64()))
		}
		return x
	}
	found := func(rounds int, compare func() stat.Comparison) {
		t.Helper()
		proven := 0
		for range 100 {
			if compare().Verdict == stat.Slower {
				proven++
			}
		}
		if proven < 80 {
			t.Errorf("%d rounds prove 2x in %d of 100 runs", rounds, proven)
		}
	}
	for _, p := range []study.Preset{study.Quick(), study.Default(), study.Full()} {
		found(p.Rounds, func() stat.Comparison { // the usual policies are one group
			cells := [][]float64{draw(p.Rounds, 1)}
			for range len(sweep.Policies()) - 1 {
				cells = append(cells, draw(p.Rounds, 2))
			}
			_, comparisons := stat.CompareGroup(cells, 0.10, stat.Band)
			return comparisons[1]
		})
		for _, s := range Studies() {
			m, _, missing := s.Matrix(study.Choice{Preset: p})
			if len(m.Cells) == 0 {
				t.Logf("%s can't be run here: %s", s.Name, missing[0].Why)
				continue
			}
			one := m.Estimate() / time.Duration(m.Rounds+1)
			rounds := min(m.Rounds, int(m.Limit/one)-1) // after the warm-up
			if rounds < stat.LargeRounds {
				t.Errorf("%s, %s: %d rounds in %v", s.Name, p.Name, rounds, m.Limit)
				continue
			}
			found(rounds, func() stat.Comparison { return stat.Compare(draw(rounds, 1), draw(rounds, 2), 0.10, stat.Band) })
		}
	}
}
