package figure_test

import (
	"encoding/json"
	"errors"
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

// A plant is a cell with the times of its rounds.
type plant struct {
	cell  result.Cell
	ms    []int // elapsed, round by round
	cpuMs []int // user CPU time; empty is half of the elapsed
}

func cell(name string) result.Cell {
	return result.Cell{Name: name, Policy: holdfast.Buffered(64 * holdfast.KiB), RecordBytes: 100, Writers: 1, Records: 1000, LatencyStride: 1}
}

// steps returns n times a little above first, which repeat in turn.
func steps(first, n int) []int {
	times := make([]int, n)
	for i := range times {
		times[i] = first + i%3
	}
	return times
}

// planted makes a complete run of the cells.
func planted(plants ...plant) result.Run {
	run := result.Run{Header: result.Header{SchemaVersion: result.SchemaVersion, Study: "policy", Plan: result.Plan{Rounds: len(plants[0].ms)}}}
	for _, p := range plants {
		run.Header.Cells = append(run.Header.Cells, p.cell)
	}
	for i := range plants[0].ms {
		for _, p := range plants {
			m := result.Measurement{Records: p.cell.Records, Size: p.cell.Records * p.cell.RecordBytes, Elapsed: time.Duration(p.ms[i]) * time.Millisecond}
			m.User = m.Elapsed / 2
			if len(p.cpuMs) > 0 {
				m.User = time.Duration(p.cpuMs[i]) * time.Millisecond
			}
			m.Writer.SystemCalls = 500
			run.Trials = append(run.Trials, &result.Trial{Cell: p.cell.Name, Round: i + 1, Measurement: m})
		}
	}
	run.End = &result.End{State: result.Complete, Rounds: len(plants[0].ms)}
	return run
}

func of(t *testing.T, run result.Run) figure.Figures {
	t.Helper()
	f, err := figure.Of(run)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// near reports whether a figure is the wanted one, except for rounding.
func near(got figure.Number, want float64) bool {
	return math.Abs(float64(got)-want) <= 1e-9*max(1, math.Abs(want))
}

func TestFiguresByHand(t *testing.T) {
	run := planted(plant{cell: cell("a"), ms: []int{1000, 2000, 4000}})
	for i := range run.Trials {
		m := &run.Trials[i].Measurement
		m.System, m.VoluntarySwitches, m.ForcedSwitches, m.MinorFaults, m.MajorFaults = time.Millisecond, 2000, 3000, 4000, 5000
		m.BlocksIn, m.BlocksOut, m.Allocations, m.Allocated = 6000, 7000, 8000, 9000
		m.Open, m.Write, m.Flush, m.Sync, m.Close = 1, m.Elapsed/2, 3, 4, 5
	}
	run.Trials = append(run.Trials, &result.Trial{Cell: "a", Measurement: result.Measurement{
		Records: 1000, Elapsed: 1, SystemCalls: &result.SystemCalls{Total: 50, Writes: 30, Syncs: 10, Source: "ptrace", Records: 100},
	}})
	r := of(t, run).Groups[0].Rows[0]
	check := func(name string, got figure.Number, want float64) {
		t.Helper()
		if !near(got, want) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	check("time", figure.Number(r.Time.Median), 2e6)
	check("to write", figure.Number(r.Net.Write.Median), 1e6)
	check("rate", figure.Number(r.Rate.Median), 1000)
	check("throughput", r.Throughput, 1e5)
	check("elapsed", r.Elapsed, 2e9)
	check("user", r.PerRecord.User, 1e6)
	check("system", r.PerRecord.System, 1000)
	check("CPU", r.PerRecord.CPU, 1001000)
	for i, got := range []figure.Number{
		r.PerRecord.VoluntarySwitches, r.PerRecord.ForcedSwitches, r.PerRecord.MinorFaults, r.PerRecord.MajorFaults,
		r.PerRecord.BlocksIn, r.PerRecord.BlocksOut, r.PerRecord.Allocations, r.PerRecord.Allocated,
	} {
		check(fmt.Sprint("count ", i), got, float64(2+i))
	}
	for i, got := range []figure.Number{r.Stages.Open, r.Stages.Write, r.Stages.Flush, r.Stages.Sync, r.Stages.Close} {
		check(fmt.Sprint("stage ", i), got, []float64{1, 1e9, 3, 4, 5}[i])
	}
	check("calls observed", r.Calls.Observed, 0.5)
	check("writes observed", r.Calls.Writes, 0.3)
	check("syncs observed", r.Calls.Syncs, 0.1)
	check("calls predicted", r.Calls.Predicted, 0.5)
	if r.Calls.Source != "ptrace" || r.Memory != 128*holdfast.KiB || !r.Fastest {
		t.Errorf("source %q, memory %v, fastest %v", r.Calls.Source, r.Memory, r.Fastest)
	}
}

func TestCostIsAgainstTheFastestOfTheLoad(t *testing.T) {
	slow, other, twin := cell("slow"), cell("other"), cell("again")
	slow.Policy, other.Writers, twin.Twin = holdfast.Durable(), 8, "quick"
	f := of(t, planted(
		plant{cell: slow, ms: steps(200, 12)}, plant{cell: cell("quick"), ms: steps(100, 12)},
		plant{cell: other, ms: steps(50, 12)}, plant{cell: twin, ms: steps(101, 12)},
	))
	if len(f.Groups) != 2 || len(f.Groups[0].Rows) != 2 || len(f.Groups[1].Rows) != 1 {
		t.Fatalf("groups %+v", f.Groups)
	}
	rows := f.Groups[0].Rows
	if rows[0].Fastest || !rows[1].Fastest || rows[0].Cost.Verdict != stat.Slower || rows[0].Cost.Ratio < 1.9 || rows[1].Cost.Ratio != 1 {
		t.Errorf("costs %+v and %+v", rows[0].Cost, rows[1].Cost)
	}
	if f.Noise.Of != "quick" || !(f.Noise.Floor > 0.005 && f.Noise.Floor < 0.015) {
		t.Errorf("noise %+v", f.Noise)
	}
}

// Eight cells are 28 pairs, whose intervals hold together from eleven rounds on. With ten, only a gross difference
// has a verdict.
func TestALargeGroupTakesMoreRounds(t *testing.T) {
	run := func(rounds int) figure.Figures {
		var plants []plant
		for i := range 8 {
			c := cell(fmt.Sprint("cell ", i))
			c.Policy = holdfast.Buffered(holdfast.Size(i+1) * holdfast.KiB)
			plants = append(plants, plant{cell: c, ms: steps(100*(i+1), rounds)})
		}
		twin := plants[0]
		twin.cell.Name, twin.cell.Twin = "again", plants[0].cell.Name
		return of(t, planted(append(plants, twin)...))
	}
	few, enough := run(10), run(11)
	if r := few.Groups[0].Rows[7]; few.VerdictRounds() != 11 || r.Cost.Word() != "slower, at least 7.8x" || few.Groups[0].Rows[1].Cost.Verdict != stat.NotProven || r.Cost.HasInterval() {
		t.Errorf("ten rounds: %+v, want %d", r.Cost, few.VerdictRounds())
	}
	tells := func(w figure.Warning) bool { return strings.Contains(w.Cure, "at least 11 rounds") }
	if !slices.ContainsFunc(few.Warnings, tells) || slices.ContainsFunc(enough.Warnings, tells) {
		t.Errorf("warnings %v, with one round more %v", few.Warnings, enough.Warnings)
	}
	if r := enough.Groups[0].Rows[7]; r.Cost.Verdict != stat.Slower || r.Cost.Confidence < 1-0.05/28 {
		t.Errorf("eleven rounds: %+v", r.Cost)
	}
}

// TestOpenLoopWithoutServiceTimesIsComparedByCPUTime: the results are of an older holdfast.
func TestOpenLoopWithoutServiceTimesIsComparedByCPUTime(t *testing.T) {
	a, b := cell("a"), cell("b")
	a.Rate, b.Rate, b.Policy = 5000, 5000, holdfast.Durable()
	twin := a
	twin.Name, twin.Twin = "again", "a"
	f := of(t, planted(plant{a, steps(200, 12), steps(30, 12)}, plant{b, steps(200, 12), steps(60, 12)}, plant{twin, steps(400, 12), steps(30, 12)}))
	rows := f.Groups[0].Rows
	if !f.Groups[0].Open() || !rows[0].Fastest || rows[1].Cost.Verdict != stat.Slower || math.Abs(rows[1].Cost.Ratio-2) > 0.05 || f.Noise.Floor != 0 {
		t.Errorf("%+v", rows)
	}
}

// TestEmptyCellIsTheHarness: it is in no row and no comparison.
func TestEmptyCellIsTheHarness(t *testing.T) {
	empty := cell("empty")
	empty.Empty = true
	f := of(t, planted(plant{cell: cell("a"), ms: steps(100, 12)}, plant{cell: empty, ms: steps(1, 12)}))
	if len(f.Groups) != 1 || len(f.Groups[0].Rows) != 1 || !f.Groups[0].Rows[0].Fastest || f.Trials != 12 {
		t.Errorf("groups %+v, %d trials", f.Groups, f.Trials)
	}
	if len(f.Harness) != 1 || !near(figure.Number(f.Harness[0].Time.Median), 2000) || !near(f.Harness[0].CPU, 1000) {
		t.Errorf("harness %+v", f.Harness)
	}
	if len(f.Policies()) != 1 {
		t.Errorf("policies %v", f.Policies())
	}
}

func TestNoRoundHasNoFigure(t *testing.T) {
	run := planted(plant{cell: cell("a"), ms: steps(100, 2)})
	run.Trials = nil
	if _, err := figure.Of(run); !errors.Is(err, figure.ErrNoRound) {
		t.Errorf("%v", err)
	}
}

func TestAbsentFiguresAreNull(t *testing.T) {
	text, err := json.Marshal(of(t, planted(plant{cell: cell("a"), ms: steps(100, 3)})))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"floor":null`, `"low":null`, `"observed_per_record":null`, `"predicted_per_record":0.5`, `"verdict":"not proven"`, `"rounds":3`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
}

func TestSteadyTrialsAreCounted(t *testing.T) {
	c := cell("a")
	c.Steady = true
	run := planted(plant{cell: c, ms: []int{10, 10}})
	run.Trials[0].Steady = true
	for n := range 6 {
		at := time.Duration(n+1) * time.Second
		run.Trials[0].Samples = append(run.Trials[0].Samples, result.Sample{At: at, Size: 1000, Dirty: int64(n), Writeback: 70, Throttle: 74})
		run.Trials[1].Samples = append(run.Trials[1].Samples, result.Sample{At: at, Size: int64(1000 << n), Dirty: 99})
	}
	s := of(t, run).Groups[0].Rows[0].Steadiness
	if want := (figure.Steadiness{Trials: 2, Steady: 1, First: 1000, Throughput: 1000, After: 6e9, Samples: 12, Throttled: 1, Unwritten: 99}); s == nil || *s != want {
		t.Errorf("%+v, want %+v", s, want)
	}
}

// TestEachFileSystemHasItsOwnNoise: a difference may be beyond the noise of one file system and within
// the noise of another. The noise of the run is the larger one.
func TestEachFileSystemHasItsOwnNoise(t *testing.T) {
	for _, group := range []string{"", "copy"} {
		checkNoise(t, group)
	}
}

// checkNoise plants the cells of a sweep, or the arms of a group.
func checkNoise(t *testing.T, group string) {
	t.Helper()
	on := func(fileSystem string, twinMs int) (plants []plant) {
		a, b, twin := cell("a"), cell("b"), cell("a/again")
		twin.Twin = "a"
		for i, c := range []result.Cell{a, b, twin} {
			c.Group = group
			plants = append(plants, plant{cell: c.Placed(fileSystem), ms: steps([]int{100, 120, twinMs}[i], 12)})
		}
		return plants
	}
	f := of(t, planted(append(on("ext4", 100), on("xfs", 130)...)...))
	if len(f.Groups) != 2 || f.Groups[0].FileSystem != "ext4" || f.Groups[1].FileSystem != "xfs" {
		t.Fatalf("the groups are %+v", f.Groups)
	}
	for i, want := range []stat.Verdict{stat.Slower, stat.NotProven} {
		if got := f.Groups[i].Rows[1].Cost.Verdict; got != want {
			t.Errorf("on %s it is %q, want %q", f.Groups[i].FileSystem, got, want)
		}
	}
	if floor := float64(f.Noise.Floor); floor < 0.25 || floor > 0.35 || f.Noise.Of != "xfs: a" {
		t.Errorf("the noise is %v, of %s", floor, f.Noise.Of)
	}
}
