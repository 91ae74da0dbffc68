package figure

import (
	"math"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/lab/result"
)

// A Net is what a record took, less what it took in the empty cell of the same load and
// round. So the error of the empty cell is in the intervals.
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

// emptyOf returns the cell that writes nothing under a load, if the run has one.
func emptyOf(run result.Run, l Load) (result.Cell, bool) {
	if l.Group != "" {
		return result.Cell{}, false // arms take from open to close
	}
	l.Cache = "" // it has no file
	i := slices.IndexFunc(run.Header.Cells, func(c result.Cell) bool { return c.Empty && LoadOf(c) == l })
	if i < 0 {
		return result.Cell{}, false
	}
	return run.Header.Cells[i], true
}

// less subtracts what the empty cell took in the same round. A round in which nothing is
// left is not known. Without an empty cell all stays as it is.
func less(values []float64, trials []result.Trial, empty []float64, emptyTrials []result.Trial) []float64 {
	if len(emptyTrials) == 0 {
		return values
	}
	net := slices.Clone(values)
	for i, t := range trials {
		at := slices.IndexFunc(emptyTrials, func(e result.Trial) bool { return e.Round == t.Round })
		net[i] = math.NaN()
		if at >= 0 {
			net[i] = values[i] - empty[at]
		}
	}
	return net
}

// costsOf returns the costs by which a cell is compared, round by round, less those of the
// empty cell.
func costsOf(run result.Run, name string) []float64 {
	i := slices.IndexFunc(run.Header.Cells, func(c result.Cell) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	l, trials := LoadOf(run.Header.Cells[i]), run.Rounded(name)
	empty, ok := emptyOf(run, l)
	if !ok {
		return l.Costs(trials)
	}
	others := run.Rounded(empty.Name)
	return less(l.Costs(trials), trials, l.Costs(others), others)
}

func newNet(run result.Run, c result.Cell, trials []result.Trial, costs []float64) Net {
	l := LoadOf(c)
	n := Net{Calls: absent}
	n.Write, n.Durable, n.Service = summarize(nil), summarize(nil), summarize(nil)
	empty, ok := emptyOf(run, l)
	n.Subtracted = ok
	var others []result.Trial
	if ok {
		others = run.Rounded(empty.Name)
	}
	net := func(of func(result.Trial) float64) []float64 {
		return less(each(trials, of), trials, each(others, of), others)
	}
	n.CPU = summarize(net(perRecord(cpu)))
	if l.Open() {
		n.Service = summarize(costs)
	} else {
		n.Write = summarize(costs)
		staged := !slices.ContainsFunc(trials, func(t result.Trial) bool { return t.Write == 0 })
		if c.Group == "" && c.Policy.Sync.Mode != holdfast.SyncNever && staged {
			n.Durable = summarize(net(perRecord(func(t result.Trial) float64 { return float64(t.Write + t.Flush + t.Sync + t.Close) })))
		}
	}
	n.Calls = newCalls(run, c, trials).Observed
	if ok && n.Calls.Known() {
		if own := newCalls(run, empty, others).Observed; own.Known() {
			n.Calls = max(0, n.Calls-own)
		}
	}
	return n
}

// leastDue is how often a period must fall due in a trial for the trial to show its cost.
const leastDue = 3

// A Period says how often the longest period of a policy fell due in the trials of a cell.
type Period struct {
	Longest time.Duration `json:"longest_ns"`
	FellDue int           `json:"fell_due"` // in the trial where it was fewest times
	Reached bool          `json:"reached"`  // often enough for a verdict
}

// Judged reports whether a cell's cost may be judged. A policy without a period has none.
func (p *Period) Judged() bool { return p == nil || p.Reached }

// newPeriod returns nil for a policy without a period. A sync that fell due is one that
// was seen, where the results have their number.
func newPeriod(run result.Run, c result.Cell, trials []result.Trial) *Period {
	p := &Period{Longest: max(c.Policy.FlushEvery, c.Policy.Sync.Every), FellDue: math.MaxInt}
	if p.Longest == 0 || c.Group != "" || len(trials) == 0 {
		return nil
	}
	for _, t := range trials {
		p.FellDue = min(p.FellDue, int(t.Write/p.Longest))
		if c.Policy.Sync.Every > 0 && run.Header.SchemaVersion >= 3 {
			p.FellDue = min(p.FellDue, int(t.SyncsWriting))
		}
	}
	p.Reached = p.FellDue >= leastDue
	return p
}
