package studytest

import (
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

func TestPlantedRunHasItsRounds(t *testing.T) {
	e := Planted(3, func(arm string, round int, m *result.Measurement) {
		m.Elapsed = Wiggle(1000*float64(len(arm)), round)
	}, "a", "bb")
	if r := e.Ratio("bb", "a", study.Elapsed); e.Rounds() != 3 || r.Ratio != 2 {
		t.Errorf("%d rounds, and a ratio of %v; want 3 and 2", e.Rounds(), r.Ratio)
	}
}
