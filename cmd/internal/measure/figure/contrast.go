package figure

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// ErrNothingInCommon reports that two runs share no cell.
var ErrNothingInCommon = errors.New("the two have no cell in common")

// A Contrast is a run B compared with a run A, the earlier one.
type Contrast struct {
	A         Side                 `json:"a"`
	B         Side                 `json:"b"`
	Machines  []machine.Difference `json:"machine_differences,omitempty"`
	Threshold float64              `json:"threshold"` // 0.05 is 5 %; ratios inside are the same
	Floor     Number               `json:"floor"`     // the larger noise of the two runs; absent if one has none

	// Unpaired is the reason why the rounds of the two runs are not paired, or empty.
	//
	// Two rounds with the same number are a pair. They ran the cells in the same order, so the effect
	// of one cell on the next is in both. But they may be hours apart, so the machine's own changes in
	// that time remain.
	Unpaired string `json:"unpaired_because,omitempty"`

	// Between tells how the two runs were made. Moved is the largest movement of the machine between
	// the runs that an interval allows for, as a factor's distance from 1. It is 0 except between two
	// runs. It is measured by the controls if both runs have them.
	Between  Between       `json:"between"`
	Moved    Number        `json:"moved"`
	Controls []ControlMove `json:"controls,omitempty"`

	// Layout is the part by which two builds may differ because the linker put the code elsewhere: a cell whose Writes
	// do not wait for the disk has a word only beyond it. It is 0 except for alternate rounds: controls have the same
	// layout as the cells beside them.
	Layout Number `json:"layout,omitempty"`

	// Disturbed is the reason why there is no verdict, or empty: other programs used more of the CPUs during
	// one run than during the other.
	Disturbed string `json:"no_verdict_because,omitempty"`

	Cells []Change `json:"cells"`

	// Overall and InMemory are geometric means of B/A. Overall is the mean of all cells that are not paced, InMemory
	// of the cells among them that have controls and whose Writes do not wait for the disk. The two means share one
	// half of the 5 % of error, the cells the other half.
	Overall  Comparison `json:"overall"`
	InMemory Comparison `json:"in_memory"` // no ratio: there are fewer than two such cells, or all are

	OnlyA []string `json:"only_in_a,omitempty"`
	OnlyB []string `json:"only_in_b,omitempty"`
}

// Between tells how the runs A and B were made.
type Between string

const (
	Apart       Between = "two runs"
	Alternately Between = "alternate rounds" // each pair in two new processes
	OneRun      Between = "one run"          // compared with itself
)

// A Side is one of the two runs.
type Side struct {
	Name      string    `json:"name"` // as the user calls it
	Program   string    `json:"program"`
	StartedAt time.Time `json:"started_at"`
	Seed      uint64    `json:"seed"`
	Rounds    int       `json:"rounds"`
	Missing   string    `json:"not_complete,omitempty"`
	Floor     Number    `json:"floor"`
	Others    Number    `json:"other_programs_cpus"` // how many CPUs other programs took; absent: not known

	run indexed
}

// Results returns the run's raw data.
func (s Side) Results() result.Run { return s.run.Run }

// NewSide names a run, or returns ErrNoRound.
func NewSide(name string, run result.Run) (Side, error) {
	h := run.Header
	s := Side{Name: name, Program: h.Program, StartedAt: h.StartedAt, Seed: h.Seed, Rounds: run.Rounds(), Missing: run.Mark(), Floor: absent, Others: absent, run: index(run)}
	if s.Rounds == 0 {
		return s, ErrNoRound
	}
	for _, c := range h.Cells {
		if c.Twin != "" {
			floor, others := float64(twinned(s.run, c, stat.Noise)), 0.0
			if s.Floor.Known() {
				others = float64(s.Floor)
			}
			s.Floor = Number(math.Max(floor, others)) // NaN if floor is
		}
	}
	s.Others = othersOf(run)
	return s, nil
}

// A Change is one cell in both runs.
type Change struct {
	Cell result.Cell `json:"cell"` // that of B
	Load Load        `json:"-"`
	A    Summary     `json:"a_ns_per_record"` // see [Load.Costs]
	B    Summary     `json:"b_ns_per_record"`
	Net  bool        `json:"net"` // what measuring takes is subtracted; false where a run has no empty cell

	// Controlled: Cost compares the ratio of the cell's time to its control's time, turn by turn (see
	// [result.Measurement.Controls]). Nothing is scaled or subtracted there: the control has the same harness. Else Cost
	// compares A and B themselves.
	Controlled bool   `json:"controlled"`
	ControlA   Number `json:"a_control_ns_per_record"` // the median
	ControlB   Number `json:"b_control_ns_per_record"`

	// Records is the number of records of a trial in A, if B has another number. The fixed cost of a
	// file is then spread over more records on one side: from a factor of 2 on there is no verdict.
	Records int64 `json:"a_records,omitempty"`

	Cost      Comparison `json:"cost"`          // B/A
	Moved     Number     `json:"machine_moved"` // the farthest of the controls that say something of the cell; absent: there are none
	Regressed bool       `json:"regressed"`

	waits    bool    // its Writes may have waited for the disk
	down, up float64 // standard errors of the ratio's logarithm, due to the harness that was subtracted
}

// Compare compares b with a, cell by cell, or returns ErrNothingInCommon. A cell has
// regressed if it is slower, and the whole interval of its ratio is beyond the
// threshold. The costs are net, and the errors of both harnesses are in the intervals. Twins and empty
// cells are not compared. Together with the controls they show how far the machine moves between two
// runs (see [stat.Moved]); rounds that were run alternately need no such allowance.
func Compare(a, b Side, alternately bool, threshold float64) (Contrast, error) {
	c := Contrast{
		A: a, B: b, Threshold: threshold, Floor: Number(math.Max(float64(a.Floor), float64(b.Floor))),
		Machines: machine.Differences(a.run.Header.Machine, b.run.Header.Machine), Between: Apart,
	}
	h, other := a.run.Header, b.run.Header
	same := a.StartedAt.Equal(b.StartedAt) && reflect.DeepEqual(a.run.Trials, b.run.Trials)
	switch {
	case alternately, !same && h.Alternated != "" && other.Alternated != "" && h.StartedAt.Equal(other.StartedAt) && h.Seed == other.Seed:
		c.Between = Alternately
	case same:
		c.Between = OneRun
	}
	if c.Between == Alternately {
		c.Layout = stat.Layout
	}
	c.Unpaired = c.whyUnpaired()
	c.Disturbed = c.whyDisturbed()
	before, after := c.pair()
	if len(c.Cells) == 0 {
		return c, ErrNothingInCommon
	}
	moved := c.doubts(before, after)
	costs := stat.CompareRuns(before, after, c.Unpaired == "", moved, threshold)
	for i := range c.Cells {
		c.Cells[i].Cost = Comparison{costs[i]}
		if n, m := c.Cells[i].Records, c.Cells[i].Cell.Records; n > 2*m || n > 0 && m > 2*n {
			c.Cells[i].Cost.Verdict = stat.NotProven
		}
	}
	c.sum(before, after, moved)
	c.decide()
	for _, m := range moved {
		c.Moved = max(c.Moved, Number(m.Allowance(1-(1-stat.Confidence)/float64(2*len(c.Cells)))))
	}
	return c, nil
}

// sum fills in the comparisons of all cells together.
func (c *Contrast) sum(before, after [][]float64, moved []stat.Movement) {
	of := func(is func(Change) bool) (a, b [][]float64, m stat.Movement) {
		all := true
		for i, change := range c.Cells {
			if !is(change) {
				continue
			}
			a, b, all = append(a, before[i]), append(b, after[i]), all && change.Controlled
			if moved != nil {
				m = m.Farther(moved[i])
			}
		}
		if moved != nil && all {
			m = stat.Beside() // in a mean of many cells the movement of one cell is small
		}
		return a, b, m
	}
	overall := func(change Change) bool { return change.Cell.Every == 0 }
	if !slices.ContainsFunc(c.Cells, overall) {
		overall = func(Change) bool { return true }
	}
	x, y, m := of(overall)
	c.Overall = Comparison{stat.CompareSums(x, y, c.Unpaired == "", m, c.Threshold)}
	c.InMemory = Comparison{stat.CompareSums(nil, nil, true, m, c.Threshold)}
	if u, v, m := of(func(change Change) bool {
		return overall(change) && change.Controlled && !change.Cell.Policy.Sync.Waits()
	}); 1 < len(u) && len(u) < len(x) {
		c.InMemory = Comparison{stat.CompareSums(u, v, c.Unpaired == "", m, c.Threshold)}
	}
}

// decide corrects the verdicts that do not follow from the intervals alone.
func (c *Contrast) decide() {
	all := []*Comparison{&c.Overall, &c.InMemory}
	for i := range c.Cells {
		all = append(all, &c.Cells[i].Cost)
	}
	for _, cost := range all {
		switch {
		case c.Between == OneRun: // known without an interval, for which the rounds may be too few
			cost.Verdict = stat.Same
		case c.Disturbed != "":
			cost.Verdict = stat.NotProven
		}
	}
	for i := range c.Cells {
		c.Cells[i].Regressed = c.regressed(c.Cells[i].Cost)
	}
}

// mostApart is the largest difference, in CPUs, between the other programs' CPU use in two runs that still
// allows a verdict. Another program slows a Writer down more than its control: it takes the CPU of the
// Writer's second goroutine.
const mostApart = 0.25

// whyDisturbed returns the reason why two runs can't be compared, or an empty text. Runs with too few rounds
// have no verdict anyway.
func (c *Contrast) whyDisturbed() string {
	enough := min(c.A.Rounds, c.B.Rounds) >= stat.VerdictRounds
	if a, b := c.A.Others, c.B.Others; enough && c.Between == Apart && math.Abs(float64(a-b)) > mostApart {
		return fmt.Sprintf("other programs took %.1f CPUs during A and %.1f during B", a, b)
	}
	return ""
}

// pair finds the cells that are in both runs, and returns their costs less the harness.
func (c *Contrast) pair() (before, after [][]float64) {
	for _, cell := range compared(c.B.run.Run) {
		earlier, ok := find(c.A.run, cell)
		if !ok {
			c.OnlyB = append(c.OnlyB, cell.Name)
			continue
		}
		trialsA, trialsB := c.trials(earlier, cell)
		load := LoadOf(cell)
		costsA, costsB := load.Costs(trialsA), load.Costs(trialsB)
		_, emptyA := emptyOf(c.A.run, load)
		_, emptyB := emptyOf(c.B.run, load)
		harnessA, harnessB := summarize([]float64{0}), summarize([]float64{0})
		if emptyA && emptyB {
			harnessA, harnessB = harnessOf(c.A.run, load, load.Costs), harnessOf(c.B.run, load, load.Costs)
		}
		change := Change{Cell: cell, Load: load, A: netOf(costsA, harnessA), B: netOf(costsB, harnessB), Net: emptyA && emptyB, Moved: absent, ControlA: absent, ControlB: absent}
		change.waits = mayWait(c.A.run, earlier) || mayWait(c.B.run, cell)
		besideA, controlA, okA := beside(earlier, trialsA)
		besideB, controlB, okB := beside(cell, trialsB)
		inBackground := change.waits && !cell.Policy.Sync.Waits() // the control has no syncs in the background
		if change.Controlled = okA && okB && !inBackground && c.Between != Alternately; change.Controlled {
			change.ControlA, change.ControlB = controlA, controlB
			before, after = append(before, besideA), append(after, besideB)
		} else {
			before, after = append(before, less(costsA, harnessA.Median)), append(after, less(costsB, harnessB.Median))
			change.down, change.up = harnessErrors(change.A.Median, change.B.Median, harnessA, harnessB)
		}
		if earlier.Records != cell.Records {
			change.Records = earlier.Records
		}
		c.Cells = append(c.Cells, change)
	}
	for _, cell := range compared(c.A.run.Run) {
		if _, ok := find(c.B.run, cell); !ok {
			c.OnlyA = append(c.OnlyA, cell.Name)
		}
	}
	return before, after
}

// beside returns the ratio of a cell's time to its control's time for each round: the median of the trial's turns, each divided by
// the control that followed it. It also returns the control's time for a record. ok is false if a trial has no control.
func beside(cell result.Cell, trials []*result.Trial) (ratios []float64, control Number, ok bool) {
	var controls []float64
	for _, t := range trials {
		turns := t.Turns
		if len(turns) == 0 {
			turns = []time.Duration{t.Write}
		}
		if cell.Control <= 0 || len(t.Controls) != len(turns) {
			return nil, absent, false
		}
		records, all := float64(t.Records)/float64(len(turns)), make([]float64, len(turns))
		for i, turn := range turns {
			per := float64(t.Controls[i]) / float64(cell.Control)
			controls, all[i] = append(controls, per), float64(turn)/records/per
		}
		ratios = append(ratios, stat.Median(all))
	}
	return ratios, Number(stat.Median(controls)), len(trials) > 0
}

// harnessErrors returns the standard errors of the logarithm of b/a that come from the harnesses: toward a smaller
// ratio, and toward a larger one. The two harnesses were measured independently, so the squares of their errors add
// up.
func harnessErrors(a, b float64, harnessA, harnessB Summary) (down, up float64) {
	move := func(net, by float64, harness Summary) float64 {
		z := 1.0 // too few rounds for an interval: their range is one standard error
		if harness.HasInterval() {
			z = math.Sqrt2 * math.Erfinv(harness.Confidence)
		}
		if !(by < net) {
			return math.Inf(1)
		}
		return math.Abs(math.Log1p(-by/net)) / z
	}
	down = math.Hypot(move(a, harnessA.Lower()-harnessA.Median, harnessA), move(b, harnessB.Upper()-harnessB.Median, harnessB))
	up = math.Hypot(move(a, harnessA.Upper()-harnessA.Median, harnessA), move(b, harnessB.Lower()-harnessB.Median, harnessB))
	return down, up
}

// mayWait reports whether Writes of a cell may have waited for the disk. A trial in turns is over before the first sync
// starts, unless it counted a sync while it wrote.
func mayWait(run indexed, c result.Cell) bool {
	return waitsForDisk(c) && slices.ContainsFunc(run.Rounded(c.Name), func(t *result.Trial) bool { return len(t.Turns) == 0 || t.SyncsWriting > 0 })
}

// doubts returns the uncertainty of each cell that does not come from its rounds: how far the machine may have moved,
// and the errors of the harnesses. It is nil if the two were measured in one run, with one harness.
func (c *Contrast) doubts(before, after [][]float64) []stat.Movement {
	if c.Between == OneRun {
		return nil
	}
	doubts := c.movements(before, after)
	if doubts == nil {
		doubts = make([]stat.Movement, len(c.Cells))
	}
	for i, change := range c.Cells {
		if doubts[i] = doubts[i].Less(change.down, change.up); c.InLayout(change) {
			doubts[i] = doubts[i].Built()
		}
	}
	return doubts
}

// InLayout reports whether the layout of the code may be all that differs between the two sides of a cell. A sync takes a thousand
// times as long as what a layout changes.
func (c Contrast) InLayout(change Change) bool {
	return c.Layout > 0 && !change.Cell.Policy.Sync.Waits()
}

// movements returns for each cell how far the machine may have moved. Cells without controls use the
// cells of the same load and kind, if there are enough. It is nil unless the two were run apart.
func (c *Contrast) movements(before, after [][]float64) (moved []stat.Movement) {
	if c.Between != Apart {
		return nil
	}
	a, b := c.A.run, c.B.run
	c.Controls = controlMoves(c.A, c.B)
	for i, kind := range c.Cells {
		if kind.Controlled {
			seen := append(twinsBeside(a, kind), twinsBeside(b, kind)...)
			moved = append(moved, stat.Beside(append(seen, halves(before[i]), halves(after[i]))...))
			continue
		}
		c.Cells[i].Moved = c.farthest(kind)
		controls := emptyMoves(a, b)
		if len(c.Controls) > 0 {
			controls = nil
			for _, m := range c.Controls {
				if kind.waits || !m.waits {
					controls = append(controls, m.moved)
				}
			}
		}
		x, y := c.alike(kind, before, after)
		moved = append(moved, stat.Moved(x, y, c.Unpaired == "", append(twins(a, kind), twins(b, kind)...), controls))
	}
	return moved
}

// twinsBeside compares cells of a run with their twins, each relative to its control. It takes only cells that wait for
// the disk if the given cell does, and only cells that don't if it doesn't.
func twinsBeside(run indexed, kind Change) (found []stat.Comparison) {
	for _, c := range run.Header.Cells {
		if c.Twin == "" || c.Policy.Sync.Waits() != kind.Cell.Policy.Sync.Waits() {
			continue
		}
		original := c
		original.Name = c.Twin
		x, _, okX := beside(original, run.Rounded(c.Twin))
		y, _, okY := beside(c, run.Rounded(c.Name))
		if okX && okY {
			found = append(found, stat.Compare(x, y, 0, stat.Band))
		}
	}
	return found
}

// alike returns the costs of the cells that a movement of the machine affects in the same way as the
// given cell.
func (c *Contrast) alike(kind Change, before, after [][]float64) (a, b [][]float64) {
	for _, like := range []func(Change) bool{
		func(other Change) bool { return sameKind(other.Cell, kind.Cell) && other.Load == kind.Load },
		func(other Change) bool { return sameKind(other.Cell, kind.Cell) },
		func(Change) bool { return true },
	} {
		a, b = nil, nil
		for i, other := range c.Cells {
			if !other.Controlled && like(other) {
				a, b = append(a, before[i]), append(b, after[i])
			}
		}
		if len(a) >= fewLike {
			break
		}
	}
	return a, b
}

// fewLike: the spread of fewer cells tells little of the machine's movement.
const fewLike = 4

// sameKind reports whether a movement of the machine affects two cells alike: both or neither wait for the disk, and
// both or neither are paced.
func sameKind(a, b result.Cell) bool {
	return waitsForDisk(a) == waitsForDisk(b) && a.Every > 0 == (b.Every > 0)
}

// twins compares the cells of a run with their twins: the cells of the same kind, or all if there are
// none.
func twins(run indexed, kind Change) (found []stat.Comparison) {
	for _, same := range []bool{true, false} {
		for _, c := range run.Header.Cells {
			if c.Twin == "" || same && (mayWait(run, c) != kind.waits || c.Every > 0 != (kind.Cell.Every > 0)) {
				continue
			}
			load := LoadOf(c)
			found = append(found, stat.Compare(load.Costs(run.Rounded(c.Twin)), load.Costs(run.Rounded(c.Name)), 0, stat.Band))
		}
		if len(found) > 0 {
			break
		}
	}
	return found
}

// halves compares the later rounds of a cell with the earlier ones. A change within one run may also happen between
// two runs.
func halves(costs []float64) stat.Comparison {
	middle := len(costs) / 2
	return stat.Unpaired(costs[:middle], costs[middle:])
}

// emptyMoves compares the cells that write nothing, b with a: they run no code of a Writer. They stand
// in for controls in runs without controls.
func emptyMoves(a, b indexed) (moves []stat.Comparison) {
	for _, c := range b.Header.Cells {
		if c.Empty && a.empty[LoadOf(c)].Name == c.Name {
			costs := LoadOf(c).Costs
			moves = append(moves, stat.Unpaired(costs(a.Rounded(c.Name)), costs(b.Rounded(c.Name))))
		}
	}
	return moves
}

// Regressed reports whether a cell, or all cells together, got slower by more than the threshold.
func (c Contrast) Regressed() bool {
	return c.regressed(c.Overall) || c.regressed(c.InMemory) || slices.ContainsFunc(c.Cells, func(change Change) bool { return change.Regressed })
}

func (c Contrast) regressed(cost Comparison) bool {
	return cost.Verdict == stat.Slower && cost.Low > 1+c.Threshold
}

// compared returns the cells of a run that are compared.
func compared(run result.Run) []result.Cell {
	return slices.DeleteFunc(slices.Clone(run.Header.Cells), func(c result.Cell) bool { return c.Empty || c.Twin != "" })
}

// find returns the cell of a run that does the same as a cell of the other run.
func find(run indexed, like result.Cell) (result.Cell, bool) {
	at, ok := run.cells[like.Name]
	if !ok {
		return result.Cell{}, false
	}
	c := run.Header.Cells[at]
	return c, !c.Empty && c.Twin == "" && c.Policy == like.Policy && LoadOf(c) == LoadOf(like)
}

// whyUnpaired returns the first reason why rounds of the same number can't be paired.
func (c Contrast) whyUnpaired() string {
	a, b := c.A.run.Header, c.B.run.Header
	switch {
	case len(c.Machines) > 0:
		return "the machines differ"
	case a.Seed != b.Seed:
		return fmt.Sprintf("the seeds differ (%d and %d), so the cells ran in another order", a.Seed, b.Seed)
	case !slices.Equal(a.Cells, b.Cells):
		return "the plans differ: not the same cells with the same records"
	case a.Plan.Rounds != b.Plan.Rounds || a.Plan.Width != b.Plan.Width:
		return "the plans differ in their rounds"
	case len(c.pairs()) == 0:
		return "no round is whole in both"
	}
	return ""
}

// pairs returns the numbers of the rounds that are whole in both runs.
func (c Contrast) pairs() []int {
	numbers := func(run indexed) []int {
		return roundsWith(run.Rounded(run.Header.Cells[0].Name), func(*result.Trial) bool { return true })
	}
	other := numbers(c.B.run) // in order
	return slices.DeleteFunc(numbers(c.A.run), func(round int) bool { return !isIn(other, round) })
}

// isIn reports whether the sorted rounds contain a round.
func isIn(rounds []int, round int) bool {
	_, ok := slices.BinarySearch(rounds, round)
	return ok
}

// without returns the trials for which is returns false. It copies the list, because a run's index
// keeps the original.
func without(trials []*result.Trial, is func(*result.Trial) bool) []*result.Trial {
	return slices.DeleteFunc(slices.Clone(trials), is)
}

// trials returns the trials of a cell in both runs. If the rounds are paired, the two trials of a pair
// have the same index. A paced trial whose period did not fall due is left out.
func (c Contrast) trials(earlier, cell result.Cell) (before, after []*result.Trial) {
	before, after = c.A.run.Rounded(earlier.Name), c.B.run.Rounded(cell.Name)
	if cell.Every > 0 && max(cell.Policy.FlushEvery, cell.Policy.Sync.Every) > 0 {
		before = without(before, func(t *result.Trial) bool { return fellDue(c.A.run, earlier, t) < LeastDue })
		after = without(after, func(t *result.Trial) bool { return fellDue(c.B.run, cell, t) < LeastDue })
	}
	if c.Unpaired == "" {
		all := func(*result.Trial) bool { return true }
		inA, inB := roundsWith(before, all), roundsWith(after, all)
		before = without(before, func(t *result.Trial) bool { return !isIn(inB, t.Round) })
		after = without(after, func(t *result.Trial) bool { return !isIn(inA, t.Round) })
	}
	return before, after
}

// farthest returns the largest movement of the controls that matter for a cell, as a factor's distance
// from 1, or absent.
func (c Contrast) farthest(cell Change) Number {
	most := absent
	for _, m := range c.Controls {
		if by := Number(math.Expm1(math.Abs(math.Log(m.moved.Ratio)))); (cell.waits || !m.waits) && !(most >= by) {
			most = by
		}
	}
	return most
}

// controlMoves returns the movement of each control, if both runs have controls.
func controlMoves(a, b Side) (moves []ControlMove) {
	if len(a.Results().Controls) == 0 || len(b.Results().Controls) == 0 {
		return nil
	}
	for _, c := range controls {
		moved := stat.Unpaired(c.times(a.run.Run), c.times(b.run.Run))
		moves = append(moves, ControlMove{c.name, Number(moved.Ratio), moved, c.waits})
	}
	return moves
}
