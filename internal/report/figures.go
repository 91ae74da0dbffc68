package report

import (
	"errors"
	"fmt"
	"math"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/advise"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/stat"
)

// ErrNoRound says that a run has nothing that a figure could be made of.
var ErrNoRound = errors.New("no round is whole")

// figures are all numbers of a report, made out of a run in one place.
type figures struct {
	run      result.Run
	rounds   int
	groups   []group
	floor    float64     // NaN where it was not measured
	twin     result.Cell // the one that was run twice
	outliers int
	trials   int
	doubts   []string
	advice   advise.Advice
	advised  bool
}

// A group is the cells that are compared with each other: one load, all policies.
type group struct {
	recordBytes int64
	writers     int
	rows        []row
}

// A row is one cell.
type row struct {
	cell    result.Cell
	rate    stat.Summary    // records a second
	cost    stat.Comparison // with the fastest of the group
	fastest bool

	mibs    float64 // a second
	elapsed float64 // of a trial, nanoseconds; this and the next are medians
	user    float64 // nanoseconds a record
	system  float64
	seen    float64 // system calls a record, NaN where they were not observed
	known   float64 // those that the Writer itself counts, likewise
	latency result.Latency
	costs   []float64 // elapsed nanoseconds a record, round by round

	allocations float64 // in a trial
}

func newFigures(run result.Run) (figures, error) {
	f := figures{run: run, rounds: run.Rounds(), floor: math.NaN()}
	if f.rounds == 0 {
		return f, ErrNoRound
	}
	for _, c := range run.Header.Cells {
		trials := run.Rounded(c.Name)
		f.trials += len(trials)
		if c.Twin != "" {
			f.twin = c
			f.floor = stat.Floor(result.Costs(run.Rounded(c.Twin)), result.Costs(trials))
			continue
		}
		r, err := newRow(run, c, trials)
		if err != nil {
			return f, err
		}
		f.add(r)
	}
	for i := range f.groups {
		f.groups[i].compare(f.floor)
	}
	f.doubts = f.findDoubts()
	f.advice, f.advised = advise.Choose(f.forAdvice())
	return f, nil
}

func newRow(run result.Run, c result.Cell, trials []result.Trial) (row, error) {
	var rates, mibs, elapsed, user, system, known, allocations []float64
	for _, t := range trials {
		n := float64(t.Records)
		rates = append(rates, n/t.Elapsed.Seconds())
		mibs = append(mibs, float64(t.Size)/(1<<20)/t.Elapsed.Seconds())
		elapsed = append(elapsed, float64(t.Elapsed))
		user = append(user, float64(t.User)/n)
		system = append(system, float64(t.System)/n)
		known = append(known, float64(t.Writer.SystemCalls)/n)
		allocations = append(allocations, float64(t.Allocations))
	}
	latency, err := result.MergeLatency(trials, stat.Supports)
	r := row{
		cell: c, rate: stat.Summarize(rates), costs: result.Costs(trials),
		mibs: median(mibs), elapsed: median(elapsed), user: median(user), system: median(system),
		seen: math.NaN(), known: median(known), latency: latency, allocations: median(allocations),
	}
	if t, ok := run.Counted(c.Name); ok {
		r.seen = float64(t.SystemCalls.Total) / float64(t.Records)
	}
	return r, err
}

func median(samples []float64) float64 { return stat.Quantile(samples, 0.5) }

// add puts the row into its group.
func (f *figures) add(r row) {
	f.outliers += r.rate.Outliers
	for i, g := range f.groups {
		if g.recordBytes == r.cell.RecordBytes && g.writers == r.cell.Writers {
			f.groups[i].rows = append(g.rows, r)
			return
		}
	}
	f.groups = append(f.groups, group{recordBytes: r.cell.RecordBytes, writers: r.cell.Writers, rows: []row{r}})
}

// compare sets the costs of the group's rows against the fastest of them.
func (g group) compare(floor float64) {
	costs := make([][]float64, len(g.rows))
	for i, r := range g.rows {
		costs[i] = r.costs
	}
	best := stat.Fastest(costs)
	g.rows[best].fastest = true
	for i := range g.rows {
		g.rows[i].cost = stat.Compare(g.rows[best].costs, g.rows[i].costs, floor, stat.Band)
	}
}

func (f figures) forAdvice() []advise.Group {
	var groups []advise.Group
	for _, g := range f.groups {
		a := advise.Group{RecordBytes: g.recordBytes, Writers: g.writers}
		for _, r := range g.rows {
			a.Rows = append(a.Rows, advise.Row{Policy: r.cell.Policy, Cost: r.cost})
		}
		groups = append(groups, a)
	}
	return groups
}

// findDoubts returns the warnings about the samples.
func (f figures) findDoubts() []string {
	if f.cautious() {
		w := stat.Warnings(make([]float64, f.rounds))[0]
		return []string{w.What + "; " + w.Cure}
	}
	var found []string
	for _, g := range f.groups {
		for _, r := range g.rows {
			for _, w := range stat.Warnings(r.costs) {
				found = append(found, fmt.Sprintf("%s, %s: %s; %s", r.cell.Policy, plural(r.cell.Writers, "writer"), w.What, w.Cure))
			}
		}
	}
	return found
}

// policies returns the policies of the run, each once, in their order.
func (f figures) policies() []holdfast.Policy {
	var list []holdfast.Policy
	seen := map[holdfast.Policy]bool{}
	for _, c := range f.run.Header.Cells {
		if !seen[c.Policy] {
			seen[c.Policy] = true
			list = append(list, c.Policy)
		}
	}
	return list
}

// title tells the group from the others.
func (g group) title() string {
	return fmt.Sprintf("%s records, %s", holdfast.Size(g.recordBytes), plural(g.writers, "writer"))
}

// word is the verdict on the row's cost.
func (r row) word() string {
	if r.fastest {
		return "fastest"
	}
	return string(r.cost.Verdict)
}

// noise says how large the noise is.
func (f figures) noise() string {
	if math.IsNaN(f.floor) {
		return "not measured"
	}
	return fmt.Sprintf("%.1f %% between two runs of the same thing under two names (%s, %s)",
		f.floor*100, f.twin.Policy, plural(f.twin.Writers, "writer"))
}
