package figure_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// under returns a cell under a policy.
func under(t *testing.T, name, policy string) result.Cell {
	t.Helper()
	p, err := holdfast.ParsePolicy(policy)
	if err != nil {
		t.Fatal(err)
	}
	c := cell(name)
	c.Policy = p
	return c
}

// TestCostIsThatOfWritingAlone: both cells write in the same time; one syncs for ten times as long at
// the end.
func TestCostIsThatOfWritingAlone(t *testing.T) {
	run := planted(plant{cell: cell("never"), ms: steps(1000, 12)}, plant{cell: under(t, "close", "buffer=64KiB,sync=close"), ms: steps(1000, 12)},
		plant{cell: twinOf("never"), ms: steps(1000, 12)})
	for i := range run.Trials {
		m := &run.Trials[i].Measurement
		m.Write = m.Elapsed
		if run.Trials[i].Cell == "close" {
			m.Sync = 10 * m.Write
			m.Elapsed += m.Sync
		}
	}
	rows := of(t, run).Groups[0].Rows
	if c := rows[1].Cost; c.Verdict != stat.Same || math.Abs(c.Ratio-1) > 0.01 {
		t.Errorf("a sync at the end is in the cost: %+v", c)
	}
	if d, w := rows[1].Net.Durable.Median, rows[1].Net.Write.Median; math.Abs(d/w-11) > 0.01 {
		t.Errorf("until durable takes %v, to write %v", d, w)
	}
	if rows[0].Net.Durable.N != 0 {
		t.Errorf("what is never synced has a time until durable: %+v", rows[0].Net.Durable)
	}
}

// TestCostIsThatOfTheLeastTurn: one of three turns is not disturbed. A trial without turns counts as a
// whole.
func TestCostIsThatOfTheLeastTurn(t *testing.T) {
	run := planted(plant{cell: cell("a"), ms: steps(1000, 12)}, plant{cell: cell("b"), ms: steps(1000, 12)}, plant{cell: twinOf("a"), ms: steps(1000, 12)})
	eachTrial(&run, "b", func(trial *result.Trial) {
		least := trial.Elapsed * 2 / 10
		trial.Turns, trial.Write = []time.Duration{least * 3 / 2, least, trial.Elapsed - least*5/2}, trial.Elapsed
	})
	rows := of(t, run).Groups[0].Rows
	if c := rows[0].Cost; math.Abs(c.Ratio-1/0.6) > 0.01 || c.Verdict != stat.Slower {
		t.Errorf("beside 3 turns, the least with 20 %% of the time, it is %+v", c)
	}
	if w := rows[1].Net.Write.Median; math.Abs(w-0.6*1001e6/1000) > 1e3 {
		t.Errorf("to write takes %v", w)
	}
}

// twinOf returns a cell that repeats one of [cell].
func twinOf(name string) result.Cell {
	c := cell(name + "/again")
	c.Twin = name
	return c
}

// TestHarnessIsSubtracted: the cells take 100 and 40 ms, and the empty cell 20, so the ratio is 80 to
// 20. CPU time and calls are net too.
func TestHarnessIsSubtracted(t *testing.T) {
	empty, slow := cell("empty"), under(t, "slow", "buffer=0")
	empty.Empty = true
	run := planted(plant{cell: cell("a"), ms: steps(40, 12)}, plant{cell: slow, ms: steps(100, 12)},
		plant{cell: twinOf("a"), ms: steps(40, 12)}, plant{cell: empty, ms: steps(20, 12)})
	for i := range run.Trials {
		run.Trials[i].Write = run.Trials[i].Elapsed
	}
	for name, calls := range map[string]int64{"a": 510, "slow": 1010, "empty": 10} {
		run.Trials = append(run.Trials, &result.Trial{Cell: name, Measurement: result.Measurement{Records: 1000, Elapsed: 1, SystemCalls: &result.SystemCalls{Total: calls}}})
	}
	f := of(t, run)
	rows := f.Groups[0].Rows
	if r := rows[1].Cost.Ratio; math.Abs(r-4) > 0.01 || rows[1].Cost.Verdict != stat.Slower {
		t.Errorf("the ratio is %v, want 80 to 20", r)
	}
	if n := rows[0].Net; !n.Subtracted || math.Abs(n.Write.Median-20000) > 1 || math.Abs(n.CPU.Median-10000) > 1 || !near(n.Calls, 0.5) {
		t.Errorf("net %+v", n)
	}
	if settled, ok := figure.Settled(run, 0.02); !ok {
		t.Errorf("not settled: ±%v", settled)
	}
}

// TestEachKindHasItsOwnNoise: the twins on the disk differ much, the twins in memory little. So a
// difference of 10 % is proven in memory alone.
func TestEachKindHasItsOwnNoise(t *testing.T) {
	loud := []int{1000, 1500, 900, 1600, 1000, 1400, 800, 1500, 1000, 1300, 900, 1500}
	group, again := under(t, "group", "buffer=64KiB,sync=group"), under(t, "group/again", "buffer=64KiB,sync=group")
	again.Twin = "group"
	f := of(t, planted(plant{cell: cell("a"), ms: steps(1000, 12)}, plant{cell: under(t, "b", "buffer=4KiB"), ms: steps(1100, 12)},
		plant{cell: group, ms: steps(1100, 12)}, plant{cell: twinOf("a"), ms: steps(1001, 12)}, plant{cell: again, ms: loud}))
	rows := f.Groups[0].Rows
	if rows[1].Cost.Verdict != stat.Slower || rows[2].Cost.Verdict != stat.NotProven {
		t.Errorf("in memory %q, on the disk %q", rows[1].Cost.Verdict, rows[2].Cost.Verdict)
	}
	if len(f.Noises) != 2 || !(f.Noises[0].Floor < 0.01) || !(f.Noises[1].Floor > 0.2) || f.Noise.Of != "group" {
		t.Errorf("noises %+v, the largest of %s", f.Noises, f.Noise.Of)
	}
}

// TestNoiseIsTheFarEndOfItsInterval: the centre of these ratios is 1.
func TestNoiseIsTheFarEndOfItsInterval(t *testing.T) {
	twin := []int{1050, 950, 1040, 960, 1060, 945, 1030, 970, 1045, 955, 1050, 951}
	flat := make([]int, 12)
	for i := range flat {
		flat[i] = 1000
	}
	f := of(t, planted(plant{cell: cell("a"), ms: flat}, plant{cell: twinOf("a"), ms: twin}))
	c := stat.Compare(f.Groups[0].Rows[0].Costs, each(twin), 0, 0)
	if want := math.Max(c.High, 1/c.Low) - 1; !near(f.Noise.Floor, want) || want < 0.02 {
		t.Errorf("the noise is %v, want %v", f.Noise.Floor, want)
	}
}

// each returns the costs of plants' times.
func each(ms []int) (costs []float64) {
	for _, n := range ms {
		costs = append(costs, float64(n)*1000)
	}
	return costs
}

// TestPeriodThatWasNotReachedHasNoVerdict: the cell is neither slower nor the fastest.
func TestPeriodThatWasNotReachedHasNoVerdict(t *testing.T) {
	turns := 0
	check := func(policy string, ms int, syncs int64, version int, due int, want stat.Verdict) {
		t.Helper()
		run := planted(plant{cell: under(t, "p", policy), ms: steps(ms, 12)}, plant{cell: cell("a"), ms: steps(500, 12)}, plant{cell: twinOf("a"), ms: steps(500, 12)})
		run.Header.SchemaVersion = version
		for i := range run.Trials {
			if run.Trials[i].Write = run.Trials[i].Elapsed; run.Trials[i].Cell == "p" {
				run.Trials[i].SyncsWriting = syncs
				run.Trials[i].Turns = slices.Repeat([]time.Duration{run.Trials[i].Write / 2}, turns)
			}
		}
		r := of(t, run).Groups[0].Rows[0]
		if r.Period == nil || r.Period.FellDue != due || r.Period.Reached != (due >= 3) || r.Cost.Verdict != want || r.Fastest {
			t.Errorf("%s in %d ms with %d syncs: %+v, %q, fastest %v", policy, ms, syncs, r.Period, r.Cost.Verdict, r.Fastest)
		}
		if c := r.Cost; math.Abs(c.Ratio-float64(ms)/500) > 0.02 || !c.HasInterval() {
			t.Errorf("the figure is %+v", c)
		}
	}
	turns = 2
	check("buffer=64KiB,flush=300ms,sync=never", 1000, 0, 3, 1, stat.NotProven) // each period falls due once
	turns = 0
	check("buffer=64KiB,sync=1h", 1000, 0, 3, 0, stat.NotProven)
	check("buffer=64KiB,sync=1h", 250, 0, 3, 0, stat.NotProven)
	check("buffer=64KiB,sync=300ms", 1000, 3, 3, 3, stat.Slower)
	check("buffer=64KiB,sync=300ms", 1000, 2, 3, 2, stat.NotProven)
	check("buffer=64KiB,sync=300ms", 1000, 0, 2, 3, stat.Slower) // an older file does not count them
	check("buffer=64KiB,flush=300ms,sync=never", 1000, 0, 3, 3, stat.Slower)
	check("buffer=64KiB,flush=400ms,sync=never", 1000, 0, 3, 2, stat.NotProven)
}

// TestPacedCellsAreComparedWithTheirControl: by the mean time of a Write, less the mean of the empty
// cell, and not with the cheapest cell.
func TestPacedCellsAreComparedWithTheirControl(t *testing.T) {
	service := func(d time.Duration) *result.Latency {
		h := result.NewHistogram()
		result.Record(h, d)
		l, err := result.NewLatency(h, stat.Supports)
		if err != nil {
			t.Fatal(err)
		}
		return &l
	}
	cells := []result.Cell{cell("a"), under(t, "p", "buffer=64KiB,sync=1s"), under(t, "q", "buffer=4KiB,sync=1s"), under(t, "never", "buffer=64KiB"), cell("empty")}
	times := map[string]time.Duration{"p": 300, "q": 100, "never": 150, "empty": 50}
	cells[4].Empty = true
	var plants []plant
	for i, c := range cells {
		if i > 0 {
			c.Every, c.Rate = 1, 1000
		}
		plants = append(plants, plant{cell: c, ms: steps(3500, 12)})
	}
	run := planted(plants...)
	for i := range run.Trials {
		run.Trials[i].Write, run.Trials[i].SyncsWriting, run.Trials[i].Service = run.Trials[i].Elapsed, 3, service(times[run.Trials[i].Cell])
	}
	groups := of(t, run).Groups
	if len(groups) != 2 || !groups[1].Paced {
		t.Fatalf("groups %+v", groups)
	}
	p, q, never := groups[1].Rows[0], groups[1].Rows[1], groups[1].Rows[2]
	if math.Abs(p.Cost.Ratio-2.5) > 0.05 || !p.Period.Reached || never.Cost.Ratio != 1 || !never.Control || never.Fastest {
		t.Errorf("p %+v, never %+v", p.Cost, never.Cost)
	}
	if q.Cost.Ratio > 0 {
		t.Errorf("without a control there is a cost: %+v", q.Cost)
	}
}

// TestShorterPeriodsBoundTheCost: the cell with the shorter period is compared with the control and has no row. The
// interval reaches to the fastest of the long trials.
func TestShorterPeriodsBoundTheCost(t *testing.T) {
	check := func(long time.Duration, high float64, want stat.Verdict) {
		t.Helper()
		cells := []result.Cell{under(t, "long", "buffer=64KiB,sync=1s"), under(t, "short", "buffer=64KiB,sync=100ms"), under(t, "never", "buffer=64KiB"), cell("empty")}
		cells[0].Short, cells[1].StandIn, cells[3].Empty = "short", true, true
		twin := under(t, "again", "buffer=64KiB")
		twin.Twin = "never"
		cells = append(cells, twin)
		var plants []plant
		for i, c := range cells {
			c.Rate, c.Every = 1000, 1
			if i == 0 {
				c.Every = 6
			}
			plants = append(plants, plant{cell: c, ms: steps(3500, 12)})
		}
		run := planted(plants...)
		run.Trials = slices.DeleteFunc(run.Trials, func(t *result.Trial) bool { return t.Cell == "long" && t.Round != 1 && t.Round != 7 })
		times := map[string]time.Duration{"long": long, "short": 200, "never": 200, "again": 200, "empty": 50}
		for _, trial := range run.Trials {
			h := result.NewHistogram()
			result.Record(h, times[trial.Cell])
			l, err := result.NewLatency(h, stat.Supports)
			if err != nil {
				t.Fatal(err)
			}
			trial.Write, trial.SyncsWriting, trial.Service = trial.Elapsed, 3, &l
		}
		rows := of(t, run).Groups[0].Rows
		if len(rows) != 2 || rows[0].BoundBy != 100*time.Millisecond || !rows[0].Period.Reached {
			t.Fatalf("%d rows, the first %+v", len(rows), rows[0])
		}
		if c := rows[0].Cost; c.N != 12 || math.Abs(c.Ratio-1) > 0.02 || math.Abs(c.High-high) > 0.02 || c.Verdict != want {
			t.Errorf("long trials of %v: %+v, want %s up to %v", long, c, want, high)
		}
	}
	check(200, 1, stat.Same)
	check(150, 1, stat.Same)
	check(350, 2, stat.NotProven)
}

// TestUserAndSystemTimeNeedTicks: 50 ticks of 10 ms.
func TestUserAndSystemTimeNeedTicks(t *testing.T) {
	known := func(ms int) bool {
		return of(t, planted(plant{cell: cell("a"), ms: []int{ms, ms, ms}})).Groups[0].Rows[0].PerRecord.User.Known()
	}
	if known(499) || !known(500) {
		t.Errorf("499 ms: %v, 500 ms: %v", known(499), known(500))
	}
}

// TestOneLoudEmptyTrialHidesNothing: the harness is a median, so a round in which the empty
// cell took longer than all others is only an outlier.
func TestOneLoudEmptyTrialHidesNothing(t *testing.T) {
	empty := cell("empty")
	empty.Empty = true
	loud := steps(20, 12)
	loud[4] = 5000
	run := func(emptyMs []int) figure.Comparison {
		return of(t, planted(plant{cell: cell("a"), ms: steps(140, 12)}, plant{cell: under(t, "slow", "buffer=0"), ms: steps(420, 12)},
			plant{cell: twinOf("a"), ms: steps(140, 12)}, plant{cell: empty, ms: emptyMs})).Groups[0].Rows[1].Cost
	}
	if c := run(loud); c.Verdict != stat.Slower || math.Abs(c.Ratio-3.33) > 0.1 {
		t.Errorf("%+v", c)
	}
	wide := []int{20, 130, 20, 130, 20, 130, 20, 130, 20, 130, 20, 130}
	// With a harness between 20 and 130, the ratio is 3.3 to 29.
	if c := run(wide); !(c.Low < 3.4 && c.High > 25) {
		t.Errorf("the harness's error is not in %+v", c)
	}
}

// TestShortTrialsAreLeftOut: one of ten paced trials has two syncs and takes ten times as long.
func TestShortTrialsAreLeftOut(t *testing.T) {
	check := func(short int, reached bool) {
		t.Helper()
		p, control := under(t, "p", "buffer=64KiB,sync=1s"), cell("never")
		p.Every, p.Rate, control.Every, control.Rate = 1, 1000, 1, 1000
		run := planted(plant{cell: p, ms: steps(3500, 12), cpuMs: steps(100, 12)}, plant{cell: control, ms: steps(3500, 12), cpuMs: steps(100, 12)})
		for i := range run.Trials {
			trial := run.Trials[i]
			if trial.Write, trial.SyncsWriting = trial.Elapsed, 3; trial.Cell == "p" && trial.Round <= short {
				trial.SyncsWriting, trial.User = 2, 10*trial.User
			}
		}
		f := of(t, run)
		if told := slices.ContainsFunc(f.Warnings, func(w figure.Warning) bool { return w.Code == "period-missed" }); told != (reached && short > 0) {
			t.Errorf("%d short trials: warnings %+v", short, f.Warnings)
		}
		r := f.Groups[0].Rows[0]
		if r.Period.Reached != reached || reached && (r.Period.Short != short || r.Cost.N != 12-short || math.Abs(r.Cost.Ratio-1) > 0.01) {
			t.Errorf("%d short trials: %+v, %+v", short, r.Period, r.Cost)
		}
	}
	check(0, true)
	check(1, true)
	check(5, true)
	check(6, false)
}

// TestClockThatGoesInSteps: of 100 Writes that do nothing 95 take no time and 5 a step of the
// clock. So a time shorter than a step, such as a sync's, is not known.
func TestClockThatGoesInSteps(t *testing.T) {
	const step = 500 * time.Microsecond
	latency := func(steps int) result.Latency {
		h := result.NewHistogram()
		for n := range 100 {
			result.Record(h, map[bool]time.Duration{true: step}[n < steps])
		}
		l, err := result.NewLatency(h, stat.Supports)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	empty, sync := cell("empty"), under(t, "sync", "sync=group")
	empty.Empty = true
	run := planted(plant{cell: cell("a"), ms: steps(100, 12)}, plant{cell: sync, ms: steps(200, 12)}, plant{cell: empty, ms: steps(20, 12)})
	for name, steps := range map[string]int{"a": 1, "sync": 40, "empty": 5} {
		eachTrial(&run, name, func(trial *result.Trial) { trial.Latency = latency(steps) })
	}
	f := of(t, run)
	if at := f.Harness[0].Clock.Round(10 * time.Microsecond); at != step { // the histogram has times to 1 %
		t.Errorf("the clock is known to %v, want %v", at, step)
	}
	for _, w := range f.Warnings {
		if w.Code == "fast-sync" {
			t.Errorf("a sync that the clock can't time: %+v", w)
		}
	}
}

// TestPricedHasThePacedTrialsOfItsOwnWriters, and none whose cost is not known.
func TestPricedHasThePacedTrialsOfItsOwnWriters(t *testing.T) {
	priced := func(trials int) (paced []int) {
		var plants []plant
		for _, writers := range []int{1, 2} {
			c := under(t, fmt.Sprint("never", writers), "buffer=64KiB")
			c.Writers = writers
			plants = append(plants, plant{cell: c, ms: steps(1000, 12)})
		}
		for _, policy := range []string{"buffer=64KiB,sync=100ms", "buffer=64KiB"} {
			c := under(t, "paced "+policy, policy)
			c.Rate, c.Every = 1000, 12/trials
			plants = append(plants, plant{cell: c, ms: steps(500, 12)})
		}
		run := planted(plants...)
		run.Trials = slices.DeleteFunc(run.Trials, func(one *result.Trial) bool {
			return strings.HasPrefix(one.Cell, "paced") && (one.Round-1)%(12/trials) != 0
		})
		for _, trial := range run.Trials {
			h := result.NewHistogram()
			result.Record(h, 200)
			l, err := result.NewLatency(h, stat.Supports)
			if err != nil {
				t.Fatal(err)
			}
			trial.Write, trial.SyncsWriting = trial.Elapsed, 3
			if strings.HasPrefix(trial.Cell, "paced") {
				trial.Service = &l
			}
		}
		f := of(t, run)
		for _, g := range f.Groups {
			for _, p := range f.Priced(g) {
				if p.Paced && !g.Paced {
					paced = append(paced, g.Writers)
				}
			}
		}
		return paced
	}
	if got := priced(12); !slices.Equal(got, []int{1}) {
		t.Errorf("the trials of one writer are in the groups of %v", got)
	}
	if got := priced(2); len(got) > 0 {
		t.Errorf("two trials have a cost in the groups of %v", got)
	}
}
