package figure

import (
	"math"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// A Net is what a record took, less what it took in the empty cell of the same load: the
// median of that cell's rounds. The error of that median is in the intervals.
type Net struct {
	// Subtracted is false where the run has no empty cell for the load: then the harness
	// is in the figures.
	Subtracted bool `json:"subtracted"`

	// Write is from the first Write to the return of the last, Durable until the file is
	// closed after the final flush and sync. Durable is absent for a policy that never
	// syncs. Both are absent at a rate, where the rate decides them.
	Write   Summary `json:"write_ns_per_record"`
	Durable Summary `json:"until_durable_ns_per_record"`

	CPU     Summary `json:"cpu_ns_per_record"`     // of the whole process
	Service Summary `json:"service_ns_per_record"` // at a rate: the mean from the call of Write to its return
	Calls   Number  `json:"system_calls_per_record"`
}

// indexed is a run in which a cell, and the empty cell of a load, are found at once.
type indexed struct {
	result.Indexed
	cells map[string]int // places in the header, by name
	empty map[Load]result.Cell
}

func index(run result.Run) indexed {
	x := indexed{run.Indexed(), make(map[string]int, len(run.Header.Cells)), map[Load]result.Cell{}}
	for i, c := range slices.Backward(run.Header.Cells) { // of several the first counts
		x.cells[c.Name] = i
		if c.Empty {
			x.empty[LoadOf(c)] = c
		}
	}
	return x
}

// emptyOf returns the cell that writes nothing under a load, if the run has one.
func emptyOf(run indexed, l Load) (result.Cell, bool) {
	if l.Group != "" {
		return result.Cell{}, false // arms take from open to close
	}
	l.Cache = "" // it has no file
	c, ok := run.empty[l]
	return c, ok
}

// harnessOf returns what the empty cell of a load took: the median of its rounds. It is 0
// where the run has no such cell.
func harnessOf(run indexed, l Load, of func([]*result.Trial) []float64) Summary {
	empty, ok := emptyOf(run, l)
	if !ok {
		return summarize([]float64{0})
	}
	return summarize(of(run.Rounded(empty.Name)))
}

// less subtracts x from each cost.
func less(costs []float64, x float64) []float64 {
	net := make([]float64, len(costs))
	for i, c := range costs {
		net[i] = c - x
	}
	return net
}

// netOf is the summary of values less the harness. Its interval is wider by that of the
// harness.
func netOf(values []float64, harness Summary) Summary {
	s := summarize(less(values, harness.Median))
	if s.HasInterval() && harness.HasInterval() {
		s.Low, s.High = s.Low-(harness.High-harness.Median), s.High+(harness.Median-harness.Low)
	}
	return s
}

// costsOf returns the costs by which a cell is compared, round by round, less those of the
// empty cell.
func costsOf(run indexed, name string) []float64 {
	i, ok := run.cells[name]
	if !ok {
		return nil
	}
	l := LoadOf(run.Header.Cells[i])
	return less(l.Costs(run.Rounded(name)), harnessOf(run, l, l.Costs).Median)
}

// withHarness makes a comparison of net costs for the harness that was measured, and for both
// ends of its interval. The interval that it returns has all three in it. A word is that of
// all three.
func withHarness(harness Summary, compare func(more float64) stat.Comparison) Comparison {
	c := compare(0)
	if !harness.HasInterval() {
		return Comparison{c}
	}
	all := Comparison{c}
	for _, end := range []float64{harness.Low, harness.High} {
		all = all.with(compare(end - harness.Median))
	}
	return all
}

// with takes the interval of the same ratio into it, with the harness at another end. It has none if the
// other has none: the harness may be all there is.
func (c Comparison) with(other stat.Comparison) Comparison {
	if c.Most = max(c.Most, other.Most); c.HasInterval() || other.Most == 0 {
		c.Most = 0
	}
	switch {
	case c.Bound > 0 && other.Bound > 0 && c.Verdict == other.Verdict: // the nearer to 1
		if c.Verdict == stat.Slower {
			c.Bound = min(c.Bound, other.Bound)
		} else {
			c.Bound = max(c.Bound, other.Bound)
		}
		return c
	case !c.HasInterval() || !other.HasInterval():
		c.Low, c.High, c.Confidence, c.Verdict, c.Bound = math.NaN(), math.NaN(), 0, stat.NotProven, 0
		return c
	}
	c.Low, c.High = min(c.Low, other.Low), max(c.High, other.High)
	if other.Verdict != c.Verdict {
		c.Verdict = stat.NotProven
	}
	return c
}

func newNet(run indexed, c result.Cell, trials []*result.Trial) Net {
	l := LoadOf(c)
	n := Net{Calls: absent}
	n.Write, n.Durable, n.Service = summarize(nil), summarize(nil), summarize(nil)
	empty, ok := emptyOf(run, l)
	n.Subtracted = ok
	net := func(of func([]*result.Trial) []float64) Summary { return netOf(of(trials), harnessOf(run, l, of)) }
	n.CPU = net(func(trials []*result.Trial) []float64 { return each(trials, perRecord(cpu)) })
	if l.Open() {
		n.Service = net(l.Costs)
	} else {
		n.Write = net(l.Costs)
		staged := !slices.ContainsFunc(trials, func(t *result.Trial) bool { return t.Write == 0 })
		if c.Group == "" && c.Policy.Sync.Mode != holdfast.SyncNever && staged {
			n.Durable = net(untilDurable)
		}
	}
	n.Calls = newCalls(run, c, trials).Observed
	if ok && n.Calls.Known() {
		if own := newCalls(run, empty, run.Rounded(empty.Name)).Observed; own.Known() {
			n.Calls = max(0, n.Calls-own)
		}
	}
	return n
}

// untilDurable returns what a record took until the file was closed, round by round.
func untilDurable(trials []*result.Trial) []float64 {
	return each(trials, perRecord(func(t *result.Trial) float64 { return float64(t.Write + t.Flush + t.Sync + t.Close) }))
}

// LeastDue is how often a period must fall due in a trial for the trial to show its cost.
const LeastDue = 3

// A Period says how often the longest period of a policy fell due in the trials of a cell.
type Period struct {
	Longest time.Duration `json:"longest_ns"`
	FellDue int           `json:"fell_due"` // in the trial where it was fewest times
	Reached bool          `json:"reached"`  // often enough for a verdict

	// Short is how many trials are in no comparison, because the period did not fall due often enough
	// in them. FellDue is that of the others. Only paced cells have such, and fewer than half of them.
	Short int `json:"short_trials,omitempty"`
}

// Judged reports whether a cell's cost may be judged. A policy without a period has none.
func (p *Period) Judged() bool { return p == nil || p.Reached }

// newPeriod returns nil for a policy without a period.
func newPeriod(run indexed, c result.Cell, trials []*result.Trial) *Period {
	p := &Period{Longest: max(c.Policy.FlushEvery, c.Policy.Sync.Every)}
	if p.Longest == 0 || c.Group != "" || len(trials) == 0 {
		return nil
	}
	due := make([]int, len(trials))
	for i, t := range trials {
		due[i] = fellDue(run, c, t)
	}
	slices.Sort(due)
	for c.Every > 0 && due[p.Short] < LeastDue && 2*(p.Short+1) < len(due) {
		p.Short++
	}
	p.FellDue = due[p.Short]
	if p.Reached = p.FellDue >= LeastDue; !p.Reached {
		p.Short, p.FellDue = 0, due[0]
	}
	return p
}

// fellDue returns how often the longest period of a cell's policy fell due in a trial. A sync
// that fell due is one that was seen, where the results have their number.
func fellDue(run indexed, c result.Cell, t *result.Trial) int {
	longest := max(c.Policy.FlushEvery, c.Policy.Sync.Every)
	due := int(t.Write / time.Duration(max(1, len(t.Turns))) / longest)
	if c.Policy.Sync.Every > 0 && run.Header.SchemaVersion >= 3 {
		due = min(due, int(t.SyncsWriting))
	}
	return due
}
