package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/advise"
	"github.com/holdfast-go/holdfast/internal/chart"
	"github.com/holdfast-go/holdfast/internal/figure"
	"github.com/holdfast-go/holdfast/internal/machine"
	"github.com/holdfast-go/holdfast/internal/result"
)

//go:embed page.html
var pageText string

// A page is what the template shows: texts only, made by the same functions as
// those of the terminal's table.
type page struct {
	Title, Question, Mark, Advice string
	Learnt                        string // by a study
	Tables                        []pageTable
	Run                           []machine.Fact
	Losses                        [][]string
	Groups                        []pageGroup
	Parts                         []pagePart // of a run on several file systems: each, and all together
	Charts                        []template.HTML
	Notes                         []string
	Doubts                        []string
	Machine                       []machine.Fact
	Method                        []string
}

// A pageTable is one of a study.
type pageTable struct {
	Title string
	Head  []string
	Rows  [][]string
	Notes []string
}

// A pagePart is what a run on several file systems shows of one of them.
type pagePart struct {
	Title, How     string
	Advice, Learnt string
	Tables         []pageTable
	Charts         []template.HTML
	Groups         []pageGroup
	Notes          []string
	Machine        []machine.Fact // what is other there than on the host
}

type pageGroup struct {
	Title string
	Head  []string
	Rows  []pageRow

	// Where the time of a trial goes, and what else the process used.
	UsageHead  []string
	SteadyHead []string // of long trials only
	SteadyRows [][]string
	UsageRows  []pageRow
}

type pageRow struct {
	Fastest bool
	Cells   []string
}

// HTML writes one page that needs no other file, or returns [figure.ErrNoRound] and writes
// nothing.
func HTML(w io.Writer, run result.Run) error {
	p, err := newPage(run)
	if err != nil {
		return err
	}
	t, err := template.New("page").Parse(pageText)
	if err != nil {
		return err
	}
	var b strings.Builder
	if err := t.Execute(&b, p); err != nil {
		return err
	}
	_, err = io.WriteString(w, b.String())
	return err
}

func newPage(run result.Run) (page, error) {
	if len(run.FileSystems()) > 0 {
		s, err := newSeveral(run)
		if err != nil {
			return page{}, err
		}
		return s.page(), nil
	}
	s, err := newSheet(run)
	if err != nil {
		return page{}, err
	}
	if of, ok := s.studied(); ok {
		return of.page(), nil
	}
	return s.page(), nil
}

func (s sheet) page() page {
	h := s.Run.Header
	p := page{
		Title: "holdfast: " + h.Study, Question: h.Question, Mark: s.Run.Mark(),
		Run: s.runFacts(), Charts: s.charts(), Notes: s.notes(), Doubts: s.doubts(), Machine: h.Machine, Method: s.method(),
	}
	if s.advised {
		p.Advice = s.adviceLine()
	}
	p.Losses = s.pageLosses()
	for _, g := range s.Groups {
		p.Groups = append(p.Groups, groupPage(g))
	}
	return p
}

func (s sheet) pageLosses() (losses [][]string) {
	for _, policy := range s.Policies() {
		loss := policy.Loss()
		losses = append(losses, []string{policy.String(), loss.Process.String(), loss.Power.String()})
	}
	return losses
}

func (s sheet) doubts() []string {
	var lines []string
	for _, w := range s.Warnings {
		lines = append(lines, doubt(w))
	}
	return lines
}

func (s sheet) runFacts() []machine.Fact {
	h := s.Run.Header
	facts := []machine.Fact{
		{Name: "folder", Value: h.Dir},
		{Name: "begun", Value: h.StartedAt.Format(time.RFC1123)},
		{Name: "program", Value: h.Program},
		{Name: "rounds", Value: fmt.Sprintf("%d of %d planned", s.Rounds, h.Plan.Rounds)},
		{Name: "seed of the order", Value: fmt.Sprint(h.Seed)},
	}
	if s.Run.End != nil {
		facts = append(facts, machine.Fact{Name: "took", Value: s.Run.End.Elapsed.Round(time.Second).String()})
	}
	return facts
}

// pageHead is the head of a group's table; the page has room for more columns
// than a terminal.
var pageHead = []string{
	"policy", "records/s", "95 % interval", "cost", "", "MiB/s", "records a trial", "elapsed", "user CPU a record", "system CPU a record",
	"calls a record, observed", "calls by the Writer", "alloca\u00adtions a record", "Write p50", "p99", "p99.9", "longest timed",
}

func groupPage(g figure.Group) pageGroup {
	p := pageGroup{Title: title(g.Load), Head: pageHead, UsageHead: pageUsageHead}
	if g.Steady {
		p.SteadyHead, p.SteadyRows = steadyHeader, steadyRows(g)
	}
	for _, r := range g.Rows {
		p.Rows = append(p.Rows, pageRow{Fastest: r.Fastest, Cells: []string{
			r.Cell.Policy.String(), count(r.Rate.Median), span(r.Rate.Low, r.Rate.High), advise.Times(r.Cost.Comparison), word(r),
			mebibytes(r.Throughput), count(float64(r.Cell.Records)), nanoseconds(float64(r.Elapsed)), nanoseconds(float64(r.PerRecord.User)), nanoseconds(float64(r.PerRecord.System)),
			calls(r.Calls.Observed), calls(r.Calls.Predicted), calls(r.PerRecord.Allocations),
			percentile(r.Latency.P50), percentile(r.Latency.P99), percentile(r.Latency.P999), percentile(r.Latency.Max),
		}})
		p.UsageRows = append(p.UsageRows, usageRow(r))
	}
	return p
}

// pageUsageHead is the head of a group's second table.
var pageUsageHead = []string{
	"policy", "open", "write", "flush", "sync", "close", "buffers in memory", "voluntary switches a record", "involuntary switches",
	"minor faults", "major faults", "blocks read", "blocks written", "allocated bytes a record",
}

func usageRow(r figure.Row) pageRow {
	row := pageRow{Fastest: r.Fastest, Cells: []string{r.Cell.Policy.String()}}
	for _, stage := range []figure.Number{r.Stages.Open, r.Stages.Write, r.Stages.Flush, r.Stages.Sync, r.Stages.Close} {
		row.Cells = append(row.Cells, nanoseconds(float64(stage)))
	}
	row.Cells = append(row.Cells, r.Memory.String())
	u := r.PerRecord
	for _, n := range []figure.Number{u.VoluntarySwitches, u.ForcedSwitches, u.MinorFaults, u.MajorFaults, u.BlocksIn, u.BlocksOut, u.Allocated} {
		row.Cells = append(row.Cells, calls(n))
	}
	return row
}

// charts draws a picture for each size of record: a row for each policy, a dot
// for each number of writers.
func (s sheet) charts() []template.HTML {
	var pictures []template.HTML
	for _, size := range s.sizes() {
		d := chart.Dots{Title: fmt.Sprintf("records of %v a second, by policy", size), Scale: tick}
		at := map[holdfast.Policy]int{}
		for _, g := range s.Groups {
			if g.RecordBytes != int64(size) {
				continue
			}
			d.Series = append(d.Series, fmt.Sprintf("%v records/s, %s", size, plural(g.Writers, "writer")))
			for _, r := range g.Rows {
				i, ok := at[r.Cell.Policy]
				if !ok {
					i = len(d.Rows)
					at[r.Cell.Policy] = i
					d.Rows = append(d.Rows, chart.Row{Label: r.Cell.Policy.String()})
				}
				d.Rows[i].Points = append(d.Rows[i].Points, chart.Point{
					Series: len(d.Series) - 1, Value: r.Rate.Median, Low: r.Rate.Low, High: r.Rate.High,
				})
			}
		}
		pictures = append(pictures, d.SVG())
	}
	return pictures
}

// sizes returns the sizes of records, each once.
func (s sheet) sizes() []holdfast.Size {
	var sizes []holdfast.Size
	seen := map[int64]bool{}
	for _, g := range s.Groups {
		if !seen[g.RecordBytes] {
			seen[g.RecordBytes] = true
			sizes = append(sizes, holdfast.Size(g.RecordBytes))
		}
	}
	return sizes
}

// method says how it was measured.
func (s sheet) method() []string {
	return append(s.trialMethod(),
		"Not in the clock: making the records, a garbage collection before the trial, reading the whole file back and checking every byte, removing it, and letting the file system settle. A time counts only if every record of every writer was in the file once, whole and in order.",
		"Every round runs every cell once, in a new order drawn from the seed. A warm-up round comes first; it counts the system calls, which would slow a timed trial down, and is in no other figure.",
		"Policies whose Write does not wait for the disk write the same number of records within a group; those whose Write waits have their own numbers, chosen so that a trial takes a similar time.",
		"The figure is the median with its distribution-free 95 % interval. A cost is the Hodges-Lehmann estimate of the ratios of the same rounds; faster, slower and same are said only where the 95 % interval of these ratios and the noise allow it, else it is not proven. No outlier is dropped.",
		"What a crash takes is not measured here: it is what the policy promises.",
	)
}

// trialMethod says what a trial does: the loads tell whether records are due at a
// rate, whether there is a file before, and when a trial ends.
func (s sheet) trialMethod() []string {
	lines := []string{"A trial makes a new file, lets the writers append all their records as fast as Write returns, and then calls Flush, Sync (where the policy syncs by time or at close) and Close. The clock runs from the start of the first to the end of the last of these, and is the monotonic one."}
	if s.anyGroup(func(l figure.Load) bool { return l.Cache != "" && l.Cache != result.NewFile }) {
		lines = append(lines, "Where a state of the page cache was asked for, a trial appends to a file that is there already, and before the clock starts it is looked up how many of its pages are in the page cache.")
	}
	if s.anyGroup(func(l figure.Load) bool { return l.Steady }) {
		lines = append(lines, "Where it goes on until it is steady, a trial ends when the throughput of the last five seconds rises or falls by no more than 10 % and spreads by no more than 20 %, and no more gathers in memory.")
	}
	timed := "Where Write waits for the disk each one is timed, else one in 31. A percentile is shown if at least ten timed Writes lie beyond it."
	if s.anyGroup(func(l figure.Load) bool { return l.ByCPU() }) {
		return append(lines, "Where records are due at a rate (an open loop), the time of a Write counts from when its record was due, so that a stall shows in all records that it delays. Else they are the times of writers that go on at once (a closed loop). "+timed)
	}
	return append(lines, "The times of single Writes are service times of writers that go on at once (a closed loop). "+timed)
}
