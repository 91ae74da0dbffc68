package figure

import (
	"math"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// A Net is a record's cost less the harness: the median of the empty cell of the same load. The error
// of that median is in the intervals.
type Net struct {
	// Subtracted is false if the run has no empty cell for the load: then the harness is in the
	// figures.
	Subtracted bool `json:"subtracted"`

	// Write lasts from the first Write to the return of the last. Durable lasts until the file is
	// closed, after the final flush and sync; it is absent for a policy that never syncs. Both are
	// absent for an open loop, where the rate decides them.
	Write   Summary `json:"write_ns_per_record"`
	Durable Summary `json:"until_durable_ns_per_record"`

	CPU     Summary `json:"cpu_ns_per_record"`     // of the whole process
	Service Summary `json:"service_ns_per_record"` // at a rate: the mean from the call of Write to its return
	Calls   Number  `json:"system_calls_per_record"`
}

// indexed is a run with an index of its cells by name, and of the empty cells by load.
type indexed struct {
	result.Indexed
	cells map[string]int // places in the header, by name
	empty map[Load]result.Cell
}

func index(run result.Run) indexed {
	x := indexed{run.Indexed(), make(map[string]int, len(run.Header.Cells)), map[Load]result.Cell{}}
	for i, c := range slices.Backward(run.Header.Cells) { // of several with the same name the first counts
		x.cells[c.Name] = i
		if c.Empty {
			x.empty[LoadOf(c)] = c
		}
	}
	return x
}

// emptyOf returns the empty cell of a load, if the run has one.
func emptyOf(run indexed, l Load) (result.Cell, bool) {
	if l.Group != "" {
		return result.Cell{}, false // arms are timed from open to close, so no empty cell fits
	}
	l.Cache = "" // it has no file
	c, ok := run.empty[l]
	return c, ok
}

// harnessOf returns the cost of a load's empty cell: the median of its rounds. It is 0 if the run has
// no such cell.
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

// netOf is the summary of values less the harness. The width of the harness's interval is added to its
// interval.
func netOf(values []float64, harness Summary) Summary {
	s := summarize(less(values, harness.Median))
	if s.HasInterval() && harness.HasInterval() {
		s.Low, s.High = s.Low-(harness.High-harness.Median), s.High+(harness.Median-harness.Low)
	}
	return s
}

// costsOf returns a cell's costs round by round, less the harness, as they are compared.
func costsOf(run indexed, name string) []float64 {
	i, ok := run.cells[name]
	if !ok {
		return nil
	}
	l := LoadOf(run.Header.Cells[i])
	return less(l.Costs(run.Rounded(name)), harnessOf(run, l, l.Costs).Median)
}

// withHarness compares net costs three times: with the measured harness, and with both ends of its
// interval. The interval that it returns contains all three intervals. There is a verdict only if all
// three have the same.
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

// with extends the interval to contain another one of the same ratio, made with the harness at one end
// of its interval. The result has no interval if the other has none: the cost may be the harness alone.
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

// untilDurable returns the time of a record until the file was closed, round by round.
func untilDurable(trials []*result.Trial) []float64 {
	return each(trials, perRecord(func(t *result.Trial) float64 { return float64(t.Write + t.Flush + t.Sync + t.Close) }))
}

// LeastDue is the number of times that a period must fall due in a trial, so that the trial shows its
// cost.
const LeastDue = 3

// A Period says how often the longest period of a policy fell due in the trials of a cell.
type Period struct {
	Longest time.Duration `json:"longest_ns"`
	FellDue int           `json:"fell_due"` // in the trial where it was fewest times
	Reached bool          `json:"reached"`  // often enough for a verdict

	// Short is the number of trials that are left out because the period fell due fewer than LeastDue
	// times. FellDue is the median of the other trials. Only paced cells leave trials out, and only
	// fewer than half of them.
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

// fellDue returns how often the longest period of a cell's policy fell due in a trial. It is no more
// than the number of syncs in the results, if they have it.
func fellDue(run indexed, c result.Cell, t *result.Trial) int {
	longest := max(c.Policy.FlushEvery, c.Policy.Sync.Every)
	due := int(t.Write / time.Duration(max(1, len(t.Turns))) / longest)
	if c.Policy.Sync.Every > 0 && run.Header.SchemaVersion >= 3 {
		due = min(due, int(t.SyncsWriting))
	}
	return due
}
