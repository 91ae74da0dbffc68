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

// twinned is a run of the cells a and b, and of a again. The rounds differ a little. b takes that
// much longer than usual, in percent.
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

// contrast compares two runs that were alternate or apart.
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

// TestOverallIsTheGeometricMean: one cell of two takes 21 % longer, which is 10 %.
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

// TestPairsAreRoundsOfTheSameNumber gives every round a time of its own, and lets
// the second run have lost some: only pairs by number have the ratio 1.
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

// TestTurnsAreComparedWithTurns: as many of each trial as the run with fewer has; older results have none.
func TestTurnsAreComparedWithTurns(t *testing.T) {
	// The n-th turn of each trial takes 1/n of what a trial without turns does.
	inTurns := func(number int) result.Run {
		run := twinned(12, 0)
		for i := range run.Header.Cells {
			run.Header.Cells[i].Turns = number
		}
		for i := range run.Trials {
			m := &run.Trials[i].Measurement
			m.Write = m.Elapsed
			for n := range number {
				m.Turns = append(m.Turns, m.Write/time.Duration(n+1))
			}
			m.Records *= max(1, int64(number))
		}
		return run
	}
	check := func(a, b int) {
		t.Helper()
		c := compared(t, inTurns(a), inTurns(b))
		least := 1001e6 / 1000 / float64(max(1, min(a, b)))
		if c.Cells[1].Cost.Ratio != 1 || math.Abs(c.Cells[0].A.Median-least) > 1 || c.Cells[0].B.Median != c.Cells[0].A.Median {
			t.Errorf("%d turns and %d: %+v", a, b, c.Cells)
		}
	}
	check(0, 0)
	check(4, 4)
	check(0, 4)
	check(4, 2)
}

// TestTurnsAreComparedAtOneSpeed: in some rounds of the second run the CPU is slower by a half, and all that it does is. The
// other cell has no turns, and no loop beside it.
func TestTurnsAreComparedAtOneSpeed(t *testing.T) {
	run := func(slower int, looped bool) result.Run {
		run := twinned(12, 0)
		for i := range run.Trials {
			m := &run.Trials[i].Measurement
			if m.Write = m.Elapsed; run.Trials[i].Cell == "b" {
				continue
			}
			if m.EmptyLoop = time.Millisecond; run.Trials[i].Round <= slower {
				m.Write, m.EmptyLoop = m.Write*3/2, m.EmptyLoop*3/2
			}
			if m.Turns = []time.Duration{m.Write}; !looped {
				m.EmptyLoop = 0
			}
		}
		return controlled(run, 100, 200, 300)
	}
	check := func(what string, a, b result.Run, want float64) {
		t.Helper()
		c := compared(t, a, b)
		if got := c.Cells[0].Cost.Ratio; math.Abs(got-want) > 0.01 || c.Cells[1].Cost.Ratio != 1 {
			t.Errorf("%s: %v, want %v; the other cell %+v", what, got, want, c.Cells[1].Cost)
		}
	}
	check("no round", run(0, true), run(0, true), 1)
	check("most rounds", run(0, true), run(11, true), 1)
	check("all rounds", run(0, true), run(12, true), 1)
	check("all rounds, and nobody saw it", run(0, true), run(12, false), 1.5)
	held := run(0, true) // others held the CPU during the loops of one trial, and not during its turns
	held.Trials[15].EmptyLoop *= 3
	if c := compared(t, run(0, true), held); float64(c.Cells[0].B.Least) < 0.99*float64(c.Cells[0].A.Least) {
		t.Errorf("a disturbed loop is taken for a slow CPU: %+v", c.Cells[0].B)
	}
	c := contrast(t, run(0, true), run(12, true), true)
	if math.Abs(c.Cells[0].Cost.Ratio-1.5) > 0.01 {
		t.Errorf("alternate rounds are scaled: %+v", c.Cells[0].Cost)
	}
}

// TestTheSameTimeInEachWriteIsFound: it is much of a short Write and little of a long one, as if the machine had moved
// each cell for itself. Cells in turns do not move so; of others that can't be told.
func TestTheSameTimeInEachWriteIsFound(t *testing.T) {
	run := func(more int, inTurns bool) result.Run {
		var plants []plant
		for _, ms := range []int{12000, 1250, 900, 370, 300} {
			plants = append(plants, plant{cell: cell(fmt.Sprint(ms)), ms: steps(ms+more, 12)})
		}
		run := controlled(planted(plants...), 100, 200, 300)
		for i := range run.Trials {
			m := &run.Trials[i].Measurement
			if m.Write = m.Elapsed; inTurns {
				m.EmptyLoop, m.Turns = time.Millisecond, []time.Duration{m.Write}
			}
		}
		for i := range run.Header.Cells {
			if inTurns {
				run.Header.Cells[i].Turns = 1
			}
		}
		return run
	}
	check := func(inTurns bool, want stat.Verdict) {
		t.Helper()
		c := compared(t, run(0, inTurns), run(110, inTurns))
		for _, short := range c.Cells[3:] {
			if short.Cost.Verdict != want {
				t.Errorf("in turns %v: %+v", inTurns, short.Cost)
			}
		}
		if long := c.Cells[0].Cost; long.Verdict == stat.Slower {
			t.Errorf("in turns %v: 1 %% is %+v", inTurns, long)
		}
	}
	check(true, stat.Slower)
	check(false, stat.NotProven)
}

// TestTrialsOfOtherLengthsHaveNoVerdict: a cell of 64 writers and 64 records is one sync, of 1,000 records many.
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

// TestMovementBetweenRuns: a cell of two is 12 % slower, which a machine may do between two runs
// and not within alternate rounds.
func TestMovementBetweenRuns(t *testing.T) {
	a, b := twinned(12, 0), twinned(12, 12)
	if c := contrast(t, a, b, true); !c.Regressed() || c.Between != figure.Alternately || c.Moved != 0 {
		t.Errorf("alternately: %+v", c.Cells[1])
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

// TestRunIsTheSameAsItself, even if it knows nothing of its noise.
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

// controlled gives each round of a run controls that take so long.
func controlled(run result.Run, loop, write, fdatasync int) result.Run {
	for round := range run.Rounds() {
		d := func(ns int) time.Duration { return time.Duration(ns * (100 + round%3)) }
		run.Controls = append(run.Controls, result.Control{Round: round + 1, Loop: d(loop), Write: d(write), Fdatasync: d(fdatasync)})
	}
	return run
}

func TestControlsSayHowTheMachineMoved(t *testing.T) {
	f := of(t, controlled(twinned(12, 0), 3, 30, 300))
	if len(f.Controls) != 3 || !near(f.Controls[0].Time, 303) || !near(f.Controls[2].Time, 30300) || !near(f.Controls[1].Spread, 0.01) {
		t.Errorf("%+v", f.Controls)
	}
	if f := of(t, twinned(12, 0)); f.Controls != nil {
		t.Errorf("of a run in one process: %+v", f.Controls)
	}
	// fdatasync(2) takes half as long again: that is about the cell that waits for the disk.
	a := controlled(twinned(12, 0), 100, 100, 100)
	slower := twinned(12, 40)
	eachTrial(&slower, "a", func(trial *result.Trial) { trial.Elapsed = trial.Elapsed * 140 / 100 })
	eachTrial(&slower, "again", func(trial *result.Trial) { trial.Elapsed = trial.Elapsed * 140 / 100 })
	c := compared(t, a, controlled(slower, 100, 101, 150))
	if memory, disk := c.Cells[0], c.Cells[1]; memory.Cost.Verdict != stat.Slower || !near(memory.Moved, 0.01) || disk.Cost.Verdict != stat.NotProven || !near(disk.Moved, 0.5) || len(c.Controls) != 3 {
		t.Errorf("%+v\n%+v\n%+v", c.Controls, memory, disk)
	}
	if c := compared(t, a, controlled(slower, 100, 101, 100)); c.Cells[1].Cost.Verdict != stat.Slower {
		t.Errorf("the disk did not move: %+v", c.Cells[1])
	}
	if c := compared(t, a, slower); c.Controls != nil || c.Cells[0].Moved.Known() {
		t.Errorf("only one run has controls: %+v", c.Controls)
	}
}

// TestHarnessIsNoDifference: of two runs the second one has a harness that takes longer.
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

// TestHarnessErrorsAddUpAsSquares: the rounds of the cell hardly vary, and those of both harnesses do.
func TestHarnessErrorsAddUpAsSquares(t *testing.T) {
	run := func(cost int, harness ...int) result.Run {
		empty := cell("empty")
		empty.Empty = true
		return planted(plant{cell: cell("a"), ms: steps(cost, 12)}, plant{cell: empty, ms: slices.Repeat(harness, 4)})
	}
	c := contrast(t, run(30000, 8000, 10000, 12000), run(30000, 8000, 10000, 12000), true)
	z := func(confidence float64) float64 { return math.Sqrt2 * math.Erfinv(confidence) }
	third := 1 - 2*79.0/4096 // the third and the tenth of 12 rounds enclose the median
	want := math.Hypot(math.Log(1.1), math.Log(0.9)) * z(c.Cells[0].Cost.Confidence) / z(third)
	for _, cost := range []figure.Comparison{c.Cells[0].Cost, c.Overall} {
		if up, down := math.Log(cost.High), -math.Log(cost.Low); math.Abs(up-want) > 0.002 || math.Abs(down-want) > 0.002 {
			t.Errorf("the interval is %v to %v, want ±%v", -down, up, want)
		}
	}
	// The harness may be all there is.
	if c := contrast(t, run(11000, 8000, 10000, 12000), run(30000, 8000, 10000, 12000), true); c.Cells[0].Cost.HasInterval() || c.Cells[0].Cost.Verdict != stat.NotProven {
		t.Errorf("%+v", c.Cells[0].Cost)
	}
}

// TestHarnessErrorIsInTheInterval: a third of each cost is a harness that is badly known. Few comparisons of the same code
// have a false word.
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
// disk nor fdatasync(2) says how far the machine moved for it, unless a sync was seen.
func TestBurstsAreNotJudgedByTheDisk(t *testing.T) {
	run := func(slower int, disk time.Duration, syncs int64) result.Run {
		burst, durable, twin, other, again := cell("burst"), cell("durable"), cell("twin"), cell("other"), cell("again")
		burst.Policy = holdfast.Policy{Buffer: 64 * holdfast.KiB, Sync: holdfast.SyncEvery(time.Second)}
		durable.Policy, twin.Policy, twin.Twin, again.Twin = holdfast.Durable(), holdfast.Durable(), "durable", "other"
		burst.Turns, other.Turns, again.Turns = 1, 1, 1
		run := controlled(planted(plant{cell: burst, ms: steps(1000+slower, 12)}, plant{cell: durable, ms: steps(9000, 12)},
			plant{cell: twin, ms: steps(13000, 12)}, plant{cell: other, ms: steps(1000, 12)}, plant{cell: again, ms: steps(1000, 12)}), 100, 200, 300*int(disk))
		for i := range run.Trials {
			m := &run.Trials[i].Measurement
			if m.Write = m.Elapsed; run.Trials[i].Cell != "durable" && run.Trials[i].Cell != "twin" {
				m.EmptyLoop, m.Turns, m.SyncsWriting = time.Millisecond, []time.Duration{m.Write}, syncs
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

// TestWhatMovesWithinARunMayMoveBetweenRuns: in the middle of the first run a cell in turns begins to take longer by a half.
func TestWhatMovesWithinARunMayMoveBetweenRuns(t *testing.T) {
	run := func(first, then int) result.Run {
		run := controlled(planted(plant{cell: cell("a"), ms: slices.Concat(steps(first, 6), steps(then, 6))}), 100, 200, 300)
		run.Header.Cells[0].Turns = 1
		eachTrial(&run, "a", func(trial *result.Trial) {
			trial.Write, trial.EmptyLoop, trial.Turns = trial.Elapsed, time.Millisecond, []time.Duration{trial.Elapsed}
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

// TestPacedCellsAreCompared, by the time of a Write, without the trials in which the period did not fall due.
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
