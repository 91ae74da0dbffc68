package figure_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// twinned is a run of the cells a and b, and of a's twin. The rounds differ a little. b takes slowdown
// percent longer than usual.
func twinned(rounds, slowdown int) result.Run {
	slower := cell("b")
	slower.Policy = holdfast.Durable()
	twin := cell("again")
	twin.Twin = "a"
	times := steps(30000, rounds)
	for i := range times {
		times[i] = times[i] * (100 + slowdown) / 100
	}
	run := planted(plant{cell: cell("a"), ms: steps(1000, rounds)}, plant{cell: slower, ms: times}, plant{cell: twin, ms: steps(1000, rounds)})
	run.Header.Seed = 7
	return run
}

func compared(t *testing.T, a, b result.Run) figure.Contrast {
	t.Helper()
	b.Header.StartedAt = b.Header.StartedAt.Add(time.Hour)
	return contrast(t, a, b, false)
}

// contrast compares two runs that were made alternately or apart.
func contrast(t *testing.T, a, b result.Run, alternately bool) figure.Contrast {
	t.Helper()
	var sides [2]figure.Side
	for i, run := range []result.Run{a, b} {
		side, err := figure.NewSide("it", run)
		if err != nil {
			t.Fatal(err)
		}
		sides[i] = side
	}
	c, err := figure.Compare(sides[0], sides[1], alternately, stat.Band)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRegressionIsBeyondTheThreshold(t *testing.T) {
	check := func(slowdown int, verdict stat.Verdict, regressed bool) {
		t.Helper()
		c := contrast(t, twinned(12, 0), twinned(12, slowdown), true)
		b := c.Cells[1]
		if b.Cost.Verdict != verdict || b.Regressed != regressed || c.Regressed() != regressed {
			t.Errorf("%d %%: %+v, regressed %v", slowdown, b, c.Regressed())
		}
		if c.Cells[0].Cost.Verdict != stat.Same || c.Cells[0].Regressed || len(c.Cells) != 2 {
			t.Errorf("%d %%: the other cell is %+v", slowdown, c.Cells[0])
		}
	}
	check(0, stat.Same, false)
	check(4, stat.Same, false)
	check(6, stat.Slower, true)
	check(-6, stat.Faster, false)
}

// TestOverallIsTheGeometricMean: one of two cells takes 21 % longer, so the mean is 10 %.
func TestOverallIsTheGeometricMean(t *testing.T) {
	c := compared(t, twinned(12, 0), twinned(12, 21))
	if math.Abs(c.Overall.Ratio-1.1) > 0.001 || c.Overall.Verdict != stat.Slower {
		t.Errorf("%+v", c.Overall)
	}
}

func TestRunsArePairedIfSeedPlanAndMachineAgree(t *testing.T) {
	check := func(want string, change func(*result.Run)) {
		t.Helper()
		b := twinned(12, 0)
		change(&b)
		c := compared(t, twinned(12, 0), b)
		if !strings.Contains(c.Unpaired, want) || (want == "") != (c.Unpaired == "") {
			t.Errorf("unpaired because %q, want %q", c.Unpaired, want)
		}
		if c.Cells[0].Cost.Ratio != 1 {
			t.Errorf("%q: %+v", want, c.Cells[0].Cost)
		}
	}
	check("", func(*result.Run) {})
	check("seeds differ (7 and 8)", func(r *result.Run) { r.Header.Seed = 8 })
	check("not the same cells", func(r *result.Run) { r.Header.Cells[1].Records++ })
	check("their rounds", func(r *result.Run) { r.Header.Plan.Rounds++ })
	check("their rounds", func(r *result.Run) { r.Header.Plan.Width = 0.05 })
	check("machines differ", func(r *result.Run) { r.Header.Machine = []machine.Fact{{Name: "kernel", Value: "7"}} })
}

// TestPairsAreRoundsOfTheSameNumber gives every round a time of its own, and removes rounds from the
// second run: only pairs by number have the ratio 1.
func TestPairsAreRoundsOfTheSameNumber(t *testing.T) {
	growing := make([]int, 16)
	for i := range growing {
		growing[i] = 1000 << (i % 4)
	}
	twin := cell("again")
	twin.Twin = "a"
	run := planted(plant{cell: cell("a"), ms: growing}, plant{cell: twin, ms: growing})
	lost := run
	lost.Trials = run.Trials[5:]
	c := contrast(t, run, lost, true)
	if c.Unpaired != "" || c.Cells[0].Cost.N != 13 || c.Cells[0].Cost.Low != 1 || c.Cells[0].Cost.High != 1 {
		t.Errorf("%q, %+v", c.Unpaired, c.Cells[0].Cost)
	}
}

func TestLargerNoiseCounts(t *testing.T) {
	noisy := twinned(12, 8)
	eachTrial(&noisy, "again", func(trial *result.Trial) { trial.Elapsed = trial.Elapsed * 110 / 100 })
	for _, c := range []figure.Contrast{compared(t, twinned(12, 0), noisy), compared(t, noisy, twinned(12, 0))} {
		if !near(c.Floor, 0.1) || c.Cells[1].Cost.Verdict != stat.NotProven || c.Regressed() {
			t.Errorf("floor %v, %+v", c.Floor, c.Cells[1])
		}
	}
}

// beside gives each trial of a run a control, by cell, with the time that control returns: in several turns, or
// in one.
func beside(run result.Run, turns int, control func(*result.Trial) time.Duration) result.Run {
	for i := range run.Header.Cells {
		c := &run.Header.Cells[i]
		c.Control = c.Records
		if turns > 1 {
			c.Turns = turns
		}
	}
	for _, trial := range run.Trials {
		m := &trial.Measurement
		m.Write = m.Elapsed
		for range turns {
			if turns > 1 {
				m.Turns = append(m.Turns, m.Write)
			}
			m.Controls = append(m.Controls, control(trial))
		}
		m.Records, m.Elapsed, m.Write = m.Records*int64(turns), m.Elapsed*time.Duration(turns), m.Write*time.Duration(turns)
	}
	return run
}

// TestCellsAreComparedWithTheirControls: in the second run the machine is slower by a half, in some rounds or in all.
// Only a change relative to the controls counts. No cell needs an empty cell for that.
func TestCellsAreComparedWithTheirControls(t *testing.T) {
	run := func(slower, more, turns int) result.Run {
		run := twinned(12, more)
		for _, trial := range run.Trials {
			if trial.Round <= slower {
				trial.Elapsed = trial.Elapsed * 3 / 2
			}
		}
		return beside(run, turns, func(trial *result.Trial) time.Duration {
			if trial.Round <= slower {
				return 3 * time.Second
			}
			return 2 * time.Second
		})
	}
	for _, turns := range []int{1, 6} {
		check := func(what string, a, b result.Run, want float64, verdict stat.Verdict) {
			t.Helper()
			c := compared(t, a, b)
			if !c.Cells[0].Controlled || math.Abs(c.Cells[0].Cost.Ratio-1) > 0.01 || math.Abs(c.Cells[1].Cost.Ratio-want) > 0.01 || c.Cells[1].Cost.Verdict != verdict {
				t.Errorf("%s, %d turns: %+v, want %v", what, turns, c.Cells, want)
			}
		}
		check("no round", run(0, 0, turns), run(0, 0, turns), 1, stat.Same)
		check("most rounds", run(0, 0, turns), run(7, 0, turns), 1, stat.Same)
		check("all rounds", run(0, 0, turns), run(12, 0, turns), 1, stat.Same)
		check("all rounds, and one cell changed", run(0, 0, turns), run(12, 20, turns), 1.2, stat.Slower)
		check("one cell changed, on a machine that was slow before", run(12, 0, turns), run(0, -20, turns), 0.8, stat.Faster)
	}
	c := compared(t, run(0, 0, 1), twinned(12, 0)) // twinned has no controls
	if c.Cells[0].Controlled {
		t.Errorf("compared by the controls of one run: %+v", c.Cells[0])
	}
}

// TestTheSameTimeInEachWriteIsFound: the same added time is a large part of a short Write and a small part of a long
// one, as if the machine had moved each cell by itself. With controls this is told apart; without them it is not
// known.
func TestTheSameTimeInEachWriteIsFound(t *testing.T) {
	run := func(more int, controlled bool) result.Run {
		var plants []plant
		for _, ms := range []int{12000, 1250, 900, 370, 300} {
			plants = append(plants, plant{cell: cell(fmt.Sprint(ms)), ms: steps(ms+more, 12)})
		}
		run := planted(plants...)
		if controlled {
			run = beside(run, 1, func(trial *result.Trial) time.Duration { return time.Second })
		}
		return run
	}
	check := func(controlled bool, want stat.Verdict) {
		t.Helper()
		c := compared(t, run(0, controlled), run(110, controlled))
		for _, short := range c.Cells[3:] {
			if short.Cost.Verdict != want {
				t.Errorf("controlled %v: %+v", controlled, short.Cost)
			}
		}
		if long := c.Cells[0].Cost; long.Verdict == stat.Slower {
			t.Errorf("controlled %v: 1 %% is %+v", controlled, long)
		}
	}
	check(true, stat.Slower)
	check(false, stat.NotProven)
}

// TestCellsInMemoryAreComparedTogether: four cells are 8 % slower each, which no single cell proves.
func TestCellsInMemoryAreComparedTogether(t *testing.T) {
	run := func(more int) result.Run {
		var plants []plant
		for i := range 5 {
			c, ms := cell(fmt.Sprint(i)), 1000
			if i == 4 {
				c.Policy = holdfast.Durable()
			} else {
				ms += more
			}
			plants = append(plants, plant{cell: c, ms: steps(ms, 12)})
		}
		r := rand.New(rand.NewPCG(uint64(more), 7))
		run := planted(plants...)
		for _, trial := range run.Trials {
			trial.Elapsed = time.Duration(float64(trial.Elapsed) * math.Exp(0.05*r.NormFloat64()))
		}
		return beside(run, 1, func(*result.Trial) time.Duration { return time.Second })
	}
	c := compared(t, run(0), run(100))
	if c.InMemory.Verdict != stat.Slower || math.Abs(c.InMemory.Ratio-1.1) > 0.05 || c.InMemory.Low < 1.02 {
		t.Errorf("together %+v", c.InMemory)
	}
	if c = compared(t, run(0), run(1)); c.InMemory.Verdict == stat.Slower {
		t.Errorf("nothing changed: %+v", c.InMemory)
	}
}

// TestNoVerdictBetweenADisturbedRunAndAQuietOne: however clear the ratio is.
func TestNoVerdictBetweenADisturbedRunAndAQuietOne(t *testing.T) {
	run := func(others float64, more int) result.Run {
		run := twinned(12, more)
		run.Header.Machine = []machine.Fact{{Name: "CPUs online", Value: "4"}}
		for _, trial := range run.Trials {
			busy := time.Duration(float64(trial.Elapsed) * (1 + others))
			trial.User, trial.Activity = trial.Elapsed, &machine.Activity{CPUBusy: &busy}
		}
		return run
	}
	check := func(a, b float64, disturbed bool) {
		t.Helper()
		c := compared(t, run(a, 0), run(b, 100))
		if (c.Disturbed != "") != disturbed || (c.Cells[1].Cost.Verdict == stat.Slower) == disturbed || c.Regressed() == disturbed {
			t.Errorf("%v and %v CPUs: %q, %+v", a, b, c.Disturbed, c.Cells[1].Cost)
		}
	}
	check(0, 0, false)
	check(0.2, 0, false)
	check(1.5, 1.4, false)
	check(0, 1.5, true)
	check(1.5, 0, true)
	if c := contrast(t, run(0, 0), run(1.5, 100), true); c.Disturbed != "" {
		t.Errorf("alternate rounds: %q", c.Disturbed)
	}
}

// TestTrialsOfOtherLengthsHaveNoVerdict: a trial of 64 writers has one sync with 64 records, and many with
// 1,000.
func TestTrialsOfOtherLengthsHaveNoVerdict(t *testing.T) {
	check := func(records int64, want stat.Verdict) {
		t.Helper()
		b := twinned(12, 50)
		b.Header.Cells[1].Records = records
		for _, c := range []figure.Contrast{compared(t, twinned(12, 0), b), compared(t, b, twinned(12, 0))} {
			if got := c.Cells[1].Cost.Verdict; got != want && (want == stat.NotProven || got != stat.Faster) {
				t.Errorf("1000 records beside %d: %q", records, got)
			}
		}
	}
	check(1000, stat.Slower)
	check(2000, stat.Slower)
	check(500, stat.Slower)
	check(2001, stat.NotProven)
	check(499, stat.NotProven)
}

// TestMovementBetweenRuns: one of two cells is 12 % slower. A machine may do that between two runs, but
// not within alternate rounds.
func TestMovementBetweenRuns(t *testing.T) {
	a, b := twinned(12, 0), twinned(12, 12)
	if c := contrast(t, a, b, true); !c.Regressed() || c.Between != figure.Alternately || c.Moved != 0 {
		t.Errorf("alternately: %+v", c.Cells[1])
	}
	// Four percent in every round may be where the linker put the code, but not of a sync.
	for policy, want := range map[string]bool{"buffer=64KiB": false, "sync=group": true} {
		x, y := twinned(12, 0), twinned(12, 4)
		for _, run := range []*result.Run{&x, &y} {
			for i := range run.Header.Cells {
				run.Header.Cells[i].Policy = under(t, "", policy).Policy
			}
		}
		sides := [2]figure.Side{}
		for i, run := range []result.Run{x, y} {
			sides[i], _ = figure.NewSide("it", run)
		}
		c, err := figure.Compare(sides[0], sides[1], true, 0.01)
		if err != nil {
			t.Fatal(err)
		}
		if cost := c.Cells[1].Cost; (cost.Verdict == stat.Slower) != want || !(cost.Low > 1.03) {
			t.Errorf("%s, 4 %% in every round: %+v", policy, cost)
		}
	}
	if c := compared(t, a, b); c.Regressed() || c.Between != figure.Apart || !(c.Moved > 0.05) {
		t.Errorf("apart: moved %v, %+v", c.Moved, c.Cells[1])
	}
	if c := compared(t, a, twinned(12, 40)); !c.Regressed() {
		t.Errorf("40 %% apart: %+v", c.Cells[1])
	}
	// A cell that writes nothing takes longer too: it was the machine.
	for i, run := range []*result.Run{&a, &b} {
		c := &run.Header.Cells[2]
		c.Twin, c.Empty = "", true
		eachTrial(run, c.Name, func(trial *result.Trial) { trial.Elapsed += trial.Elapsed * time.Duration(4*i) / 10 })
	}
	if c := compared(t, a, b); !(c.Moved > 0.4) {
		t.Errorf("an empty cell is 40 %% slower: moved %v", c.Moved)
	}
}

// TestRunIsTheSameAsItself: even if its noise is not known.
func TestRunIsTheSameAsItself(t *testing.T) {
	for _, rounds := range []int{12, 2} { // two rounds have no interval
		a := twinned(rounds, 0)
		eachTrial(&a, "again", func(trial *result.Trial) { trial.Elapsed *= time.Duration(1 + trial.Round%3) })
		c := contrast(t, a, a, false)
		if c.Between != figure.OneRun || c.Overall.Verdict != stat.Same {
			t.Errorf("%d rounds: %s, overall %+v", rounds, c.Between, c.Overall)
		}
		for _, cell := range c.Cells {
			if cell.Cost.Verdict != stat.Same {
				t.Errorf("%d rounds: %+v", rounds, cell)
			}
		}
	}
}

func TestCellsOfOneRunOnlyAreListed(t *testing.T) {
	b := twinned(12, 0)
	b.Header.Cells[1].Name = "c"
	for i := range b.Trials {
		if b.Trials[i].Cell == "b" {
			b.Trials[i].Cell = "c"
		}
	}
	c := compared(t, twinned(12, 0), b)
	if len(c.Cells) != 1 || len(c.OnlyA) != 1 || c.OnlyA[0] != "b" || len(c.OnlyB) != 1 || c.OnlyB[0] != "c" {
		t.Errorf("%d cells, only in A %v, only in B %v", len(c.Cells), c.OnlyA, c.OnlyB)
	}
	if c.Unpaired == "" {
		t.Error("other cells are paired")
	}
}

func TestNothingInCommonIsAnError(t *testing.T) {
	a, err := figure.NewSide("a", twinned(3, 0))
	if err != nil {
		t.Fatal(err)
	}
	other := twinned(3, 0)
	for i := range other.Header.Cells {
		other.Header.Cells[i].Writers = 99
	}
	b, err := figure.NewSide("b", other)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := figure.Compare(a, b, false, stat.Band); !errors.Is(err, figure.ErrNothingInCommon) {
		t.Errorf("%v", err)
	}
	other.Trials = nil
	if _, err := figure.NewSide("b", other); !errors.Is(err, figure.ErrNoRound) {
		t.Errorf("%v", err)
	}
}

// TestOpenLoopsWithoutServiceTimesAreComparedByCPUTime: the same elapsed time, twice the CPU time.
func TestOpenLoopsWithoutServiceTimesAreComparedByCPUTime(t *testing.T) {
	run := func(cpu int) result.Run {
		c := cell("a")
		c.Rate = 100
		twin := c
		twin.Name, twin.Twin = "again", "a"
		return planted(plant{c, steps(1000, 12), steps(cpu, 12)}, plant{twin, steps(1000, 12), steps(cpu, 12)})
	}
	c := compared(t, run(500), run(1000))
	if !c.Cells[0].Regressed || math.Abs(c.Cells[0].Cost.Ratio-2) > 0.01 {
		t.Errorf("%+v", c.Cells[0])
	}
}

// controlled gives each round of a run controls of about the given times.
func controlled(run result.Run, write, fdatasync int) result.Run {
	for round := range run.Rounds() {
		d := func(ns int) time.Duration { return time.Duration(ns * (100 + round%3)) }
		run.Controls = append(run.Controls, result.Control{Round: round + 1, Write: d(write), Fdatasync: d(fdatasync)})
	}
	return run
}

func TestControlsSayHowTheMachineMoved(t *testing.T) {
	f := of(t, controlled(twinned(12, 0), 30, 300))
	if len(f.Controls) != 2 || !near(f.Controls[0].Time, 3030) || !near(f.Controls[1].Time, 30300) || !near(f.Controls[0].Spread, 0.01) {
		t.Errorf("%+v", f.Controls)
	}
	if f := of(t, twinned(12, 0)); f.Controls != nil {
		t.Errorf("of a run in one process: %+v", f.Controls)
	}
	// fdatasync(2) takes half as long again: this concerns only the cell that waits for the disk.
	a := controlled(twinned(12, 0), 100, 100)
	slower := twinned(12, 40)
	eachTrial(&slower, "a", func(trial *result.Trial) { trial.Elapsed = trial.Elapsed * 140 / 100 })
	eachTrial(&slower, "again", func(trial *result.Trial) { trial.Elapsed = trial.Elapsed * 140 / 100 })
	c := compared(t, a, controlled(slower, 101, 150))
	if memory, disk := c.Cells[0], c.Cells[1]; memory.Cost.Verdict != stat.Slower || !near(memory.Moved, 0.01) || disk.Cost.Verdict != stat.NotProven || !near(disk.Moved, 0.5) || len(c.Controls) != 2 {
		t.Errorf("%+v\n%+v\n%+v", c.Controls, memory, disk)
	}
	if c := compared(t, a, controlled(slower, 101, 100)); c.Cells[1].Cost.Verdict != stat.Slower {
		t.Errorf("the disk did not move: %+v", c.Cells[1])
	}
	if c := compared(t, a, slower); c.Controls != nil || c.Cells[0].Moved.Known() {
		t.Errorf("only one run has controls: %+v", c.Controls)
	}
}

// TestHarnessIsNoDifference: the second of two runs has a slower harness.
func TestHarnessIsNoDifference(t *testing.T) {
	run := func(cost, harness int) result.Run {
		empty := cell("empty")
		empty.Empty = true
		return planted(plant{cell: cell("a"), ms: steps(cost, 12)}, plant{cell: empty, ms: steps(harness, 12)})
	}
	c := contrast(t, run(3000, 1000), run(3500, 1500), true)
	if change := c.Cells[0]; change.Cost.Verdict != stat.Same || !change.Net || math.Abs(change.A.Median/change.B.Median-1) > 0.001 {
		t.Errorf("%+v", change)
	}
	gross := planted(plant{cell: cell("a"), ms: steps(3500, 12)})
	if change := contrast(t, run(3000, 1000), gross, true).Cells[0]; change.Net || math.Abs(change.Cost.Ratio-3.5/3) > 0.001 {
		t.Errorf("one run has no empty cell: %+v", change)
	}
}

// TestHarnessErrorsAddUpAsSquares: the rounds of the cell hardly vary, and the rounds of both harnesses
// do.
func TestHarnessErrorsAddUpAsSquares(t *testing.T) {
	run := func(cost int, harness ...int) result.Run {
		empty := cell("empty")
		empty.Empty = true
		return planted(plant{cell: cell("a"), ms: steps(cost, 12)}, plant{cell: empty, ms: slices.Repeat(harness, 4)})
	}
	c := contrast(t, run(30000, 8000, 10000, 12000), run(30000, 8000, 10000, 12000), true)
	z := func(confidence float64) float64 { return math.Sqrt2 * math.Erfinv(confidence) }
	third := 1 - 2*79.0/4096 // the third and the tenth of 12 rounds enclose the median
	for _, cost := range []figure.Comparison{c.Cells[0].Cost, c.Overall} {
		want := math.Hypot(math.Log(1.1), math.Log(0.9)) * z(cost.Confidence) / z(third)
		if up, down := math.Log(cost.High), -math.Log(cost.Low); math.Abs(up-want) > 0.002 || math.Abs(down-want) > 0.002 {
			t.Errorf("the interval is %v to %v, want ±%v", -down, up, want)
		}
	}
	// The cost may be the harness alone.
	if c := contrast(t, run(11000, 8000, 10000, 12000), run(30000, 8000, 10000, 12000), true); c.Cells[0].Cost.HasInterval() || c.Cells[0].Cost.Verdict != stat.NotProven {
		t.Errorf("%+v", c.Cells[0].Cost)
	}
}

// TestHarnessErrorIsInTheInterval: a third of each cost is the harness, known only roughly. Comparisons of the same code
// rarely have a verdict.
func TestHarnessErrorIsInTheInterval(t *testing.T) {
	const runs, rounds = 400, 12
	r := rand.New(rand.NewPCG(15, 15))
	run := func() result.Run {
		empty := cell("empty")
		empty.Empty = true
		run := planted(plant{cell: cell("a"), ms: steps(1, rounds)}, plant{cell: empty, ms: steps(1, rounds)})
		draw := func(name string, middle, noise float64) {
			eachTrial(&run, name, func(trial *result.Trial) {
				trial.Elapsed = time.Duration(middle * math.Exp(noise*r.NormFloat64()))
			})
		}
		draw("a", 3e9, 0.03)
		draw("empty", 1e9, 0.2)
		return run
	}
	wrong := 0
	for range runs {
		c := contrast(t, run(), run(), true)
		if word := c.Cells[0].Cost.Verdict; word == stat.Slower || word == stat.Faster {
			wrong++
		}
	}
	if wrong > runs*7/100 { // 5 % and two standard errors
		t.Errorf("%d of %d comparisons of the same code have a false word", wrong, runs)
	}
}

// TestBurstsAreNotJudgedByTheDisk: a burst in turns is over before its first sync. So neither a twin that waits for the
// disk nor fdatasync(2) shows how far the machine moved for it, unless a sync was counted.
func TestBurstsAreNotJudgedByTheDisk(t *testing.T) {
	run := func(slower int, disk time.Duration, syncs int64) result.Run {
		burst, durable, twin, other, again := cell("burst"), cell("durable"), cell("twin"), cell("other"), cell("again")
		burst.Policy = holdfast.Policy{Buffer: 64 * holdfast.KiB, Sync: holdfast.SyncEvery(time.Second)}
		durable.Policy, twin.Policy, twin.Twin, again.Twin = holdfast.Durable(), holdfast.Durable(), "durable", "other"
		burst.Turns, other.Turns, again.Turns = 1, 1, 1
		burst.Control, other.Control, again.Control = burst.Records, burst.Records, burst.Records
		run := controlled(planted(plant{cell: burst, ms: steps(1000+slower, 12)}, plant{cell: durable, ms: steps(9000, 12)},
			plant{cell: twin, ms: steps(13000, 12)}, plant{cell: other, ms: steps(1000, 12)}, plant{cell: again, ms: steps(1000, 12)}), 200, 300*int(disk))
		for i := range run.Trials {
			m := &run.Trials[i].Measurement
			if m.Write = m.Elapsed; run.Trials[i].Cell != "durable" && run.Trials[i].Cell != "twin" {
				m.Controls, m.Turns, m.SyncsWriting = []time.Duration{time.Second}, []time.Duration{m.Write}, syncs
			}
		}
		return run
	}
	check := func(what string, disk time.Duration, syncs int64, want stat.Verdict) {
		t.Helper()
		if c := compared(t, run(0, 1, syncs), run(250, disk, syncs)); c.Cells[0].Cost.Verdict != want {
			t.Errorf("%s: %+v", what, c.Cells[0])
		}
	}
	check("a disk that is only noisy", 1, 0, stat.Slower)
	check("and moves", 2, 0, stat.Slower)
	check("a burst with syncs on a noisy disk", 1, 1, stat.NotProven)
	check("a burst with syncs on a disk that moves", 2, 1, stat.NotProven)
}

// TestWhatMovesWithinARunMayMoveBetweenRuns: from the middle of the first run on, a cell in turns takes longer by a half.
func TestWhatMovesWithinARunMayMoveBetweenRuns(t *testing.T) {
	run := func(first, then int) result.Run {
		run := controlled(planted(plant{cell: cell("a"), ms: slices.Concat(steps(first, 6), steps(then, 6))}), 200, 300)
		run.Header.Cells[0].Turns, run.Header.Cells[0].Control = 1, run.Header.Cells[0].Records
		eachTrial(&run, "a", func(trial *result.Trial) {
			trial.Write, trial.Controls, trial.Turns = trial.Elapsed, []time.Duration{time.Second}, []time.Duration{trial.Elapsed}
		})
		return run
	}
	if c := compared(t, run(1000, 1000), run(1300, 1300)); c.Cells[0].Cost.Verdict != stat.Slower {
		t.Errorf("it does not move: %+v", c.Cells[0].Cost)
	}
	if c := compared(t, run(1000, 1500), run(1700, 1700)); c.Cells[0].Cost.Verdict != stat.NotProven {
		t.Errorf("it moves: %+v", c.Cells[0].Cost)
	}
}

// TestPacedCellsAreCompared: by the time of a Write, without the trials whose period did not fall due.
func TestPacedCellsAreCompared(t *testing.T) {
	run := func(us int) result.Run {
		paced := cell("paced")
		paced.Policy = holdfast.Policy{Buffer: 64 * holdfast.KiB, Sync: holdfast.SyncEvery(time.Second)}
		paced.Rate, paced.Every, paced.Records = 1000, 1, 3300
		r := planted(plant{cell: cell("a"), ms: steps(1000, 12)}, plant{cell: paced, ms: steps(3300, 12)})
		eachTrial(&r, "paced", func(trial *result.Trial) {
			h := result.NewHistogram()
			for range 1000 {
				result.Record(h, time.Duration(us+trial.Round%3)*time.Microsecond)
			}
			service, err := result.NewLatency(h, stat.Supports)
			if err != nil {
				t.Fatal(err)
			}
			trial.Service, trial.Write, trial.SyncsWriting = &service, trial.Elapsed, 3
			if trial.Round == 5 {
				trial.SyncsWriting = 2
			}
		})
		return r
	}
	c := contrast(t, run(100), run(150), true)
	if len(c.Cells) != 2 || c.Cells[1].Cost.N != 11 || c.Cells[1].Cost.Verdict != stat.Slower || math.Abs(c.Cells[1].Cost.Ratio-1.5) > 0.02 {
		t.Errorf("%+v", c.Cells)
	}
	if c.Overall.N != 12 || c.Overall.Ratio != 1 {
		t.Errorf("overall %+v, which is of the cells of all rounds", c.Overall)
	}
}
