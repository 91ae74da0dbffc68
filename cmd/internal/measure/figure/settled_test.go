package figure_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
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

// TestNothingIsNeededWhereTheAnswerIsPlain: by scripted times. A factor of three in ten wild rounds is decided, ten percent in wild ones
// is not, and equal ones are if they are known well enough. The time of each cell has to be known too.
func TestNothingIsNeededWhereTheAnswerIsPlain(t *testing.T) {
	wild := []int{1000, 1400, 1100, 1500, 1050, 1350, 1200, 1450, 1150, 1300, 1250, 1400}
	times := func(of []int, percent int) (all []int) {
		for _, ms := range of {
			all = append(all, ms*percent/100)
		}
		return all
	}
	mirrored := slices.Clone(wild)
	slices.Reverse(mirrored)
	policies := []holdfast.Policy{holdfast.Buffered(64 * holdfast.KiB), holdfast.Unbuffered(), holdfast.Buffered(holdfast.MiB)}
	run := func(rounds int, all ...[]int) result.Run {
		var plants []plant
		for i, ms := range append(all, all[0]) {
			c := cell(fmt.Sprint("cell", i))
			if i == len(all) {
				c.Twin = "cell0"
			} else {
				c.Policy = policies[i]
			}
			plants = append(plants, plant{cell: c, ms: ms[:rounds]})
		}
		return planted(plants...)
	}
	check := func(what string, run result.Run, want bool) {
		t.Helper()
		if needs, ok := figure.Needs(run, 0.17); (ok && len(needs) == 0) != want {
			t.Errorf("%s: needed are %+v, %v", what, needs, ok)
		}
	}
	check("three times, ten rounds", run(10, wild, times(mirrored, 300)), true)
	check("three times, nine rounds", run(9, wild, times(mirrored, 300)), false)
	check("ten percent", run(12, wild, times(mirrored, 110)), false)
	check("ten percent that is known", run(12, wild, times(wild, 110)), true)
	check("the same", run(12, wild, wild), true)
	check("one of two is not decided", run(12, wild, times(mirrored, 110), times(mirrored, 3000)), false)
	if _, ok := figure.Settled(run(12, wild, times(mirrored, 300)), 0.10); ok {
		t.Error("the rule of widths ends a run whose ratios are known to ±20 %")
	}

	// The upper bound of a period's cost is known well enough, or not.
	paced := func(part int) result.Run {
		cells := []result.Cell{under(t, "period", "buffer=64KiB,sync=100ms"), under(t, "never", "buffer=64KiB"), under(t, "again", "buffer=64KiB")}
		cells[2].Twin = "never"
		plants := []plant{{cell: cell("burst"), ms: wild}, {cell: cell("burst again"), ms: wild}}
		plants[1].cell.Twin = "burst"
		for _, c := range cells {
			c.Rate, c.Every = 1000, 1
			plants = append(plants, plant{cell: c, ms: steps(500, len(wild))})
		}
		run := planted(plants...)
		for _, trial := range run.Trials {
			sign, isPaced := map[string]int{"period": 1, "never": -1, "again": -1}[trial.Cell]
			if !isPaced {
				continue
			}
			h := result.NewHistogram()
			result.Record(h, time.Duration(2000+part*sign*(trial.Round%3-1)))
			l, err := result.NewLatency(h, stat.Supports)
			if err != nil {
				t.Fatal(err)
			}
			trial.Write, trial.SyncsWriting, trial.Service = trial.Elapsed, 3, &l
		}
		return run
	}
	check("a period that costs 2 % at most", paced(20), true)
	check("a period that may cost 29 %", paced(500), false)
}
