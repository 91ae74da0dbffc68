package figure_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

// TestSettledLooksAtWhatIsShown: at the ratios of each load and at the twins, but not across loads and
// not at the empty cell.
func TestSettledLooksAtWhatIsShown(t *testing.T) {
	wild := []int{1000, 9000, 2000, 8000, 3000, 7000, 4000, 6000, 1500, 8500, 2500, 7500}
	calm := steps(1000, len(wild))
	empty, twin := cell("empty"), cell("again")
	empty.Empty, twin.Twin = true, "a"
	elsewhere := cell("elsewhere")
	elsewhere.Writers = 64
	check := func(what string, run result.Run, want bool) {
		t.Helper()
		if widest, ok := figure.Settled(run, 0.01); ok != want || ok && widest > 0.01 {
			t.Errorf("%s: settled is %v, the widest ±%v", what, ok, widest)
		}
	}
	pair := []plant{{cell: cell("a"), ms: calm}, {cell: cell("b"), ms: calm}}
	with := func(more plant) result.Run { return planted(append(pair[:2:2], more)...) }
	check("two calm cells", planted(pair...), true)
	check("a wild cell", with(plant{cell: cell("c"), ms: wild}), false)
	check("a wild twin", with(plant{cell: twin, ms: wild}), false)
	check("a wild cell that writes nothing", with(plant{cell: empty, ms: []int{10, 90, 20, 80, 30, 70, 40, 60, 15, 85, 25, 75}}), true)
	check("a wild cell alone under another load", with(plant{cell: elsewhere, ms: wild}), true)

	farSlower := make([]int, len(wild))
	for i, ms := range wild {
		farSlower[i] = 20 * ms
	}
	check("a wild cell that is far slower", with(plant{cell: cell("c"), ms: farSlower}), true)

	// A paced cell does not count for the width, but it must have had its trials.
	paced := cell("paced")
	paced.Every = 2
	for rounds, want := range map[int]bool{figure.PacedRounds - 1: false, figure.PacedRounds: true} {
		run := with(plant{cell: paced, ms: wild})
		run.Trials = slices.DeleteFunc(run.Trials, func(t *result.Trial) bool { return t.Cell == "paced" && (t.Round%2 == 0 || t.Round/2 >= rounds) })
		check(fmt.Sprintf("%d paced trials", rounds), run, want)
	}

	paced.Short = "shorter" // which has the trials
	run := with(plant{cell: paced, ms: wild})
	run.Trials = slices.DeleteFunc(run.Trials, func(t *result.Trial) bool { return t.Cell == "paced" && t.Round != 1 })
	run.Header.Cells[2].Every = 100
	check("one long trial of a cell whose cost another bounds", run, true)

	few := planted(pair...)
	few.Trials = few.Trials[:2*9]
	if widest, ok := figure.Settled(few, 1); ok || !(widest >= 0) {
		t.Errorf("nine rounds: %v, %v", widest, ok)
	}
}
