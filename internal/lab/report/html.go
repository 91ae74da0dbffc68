package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/lab/chart"
	"github.com/holdfast-go/holdfast/internal/lab/figure"
	"github.com/holdfast-go/holdfast/internal/lab/machine"
	"github.com/holdfast-go/holdfast/internal/lab/result"
)

//go:embed page.html
var pageText string

// A page is what the template shows. It has only texts, made by the same functions as
// those of the terminal's table.
type page struct {
	Title, Question, Mark, Advice string
	Learnt                        string // by a study
	Tables                        []pageTable
	Run                           []machine.Fact
	Losses                        [][]string
	Groups                        []pageGroup
	Parts                         []pagePart // of a run on several file systems: each, and all together
	CostLoss                      []pageChart
	Charts                        []template.HTML
	Notes                         []string
	Doubts                        []string
	Machine                       []machine.Fact
	Method                        []string
}

type pageChart struct {
	Title   string
	Picture template.HTML
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
	CostLoss       []pageChart
	Charts         []template.HTML
	Groups         []pageGroup
	Notes          []string
	Machine        []machine.Fact // what differs from the host
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
	Advised bool
	Cells   []string
}

// HTML writes one page that needs no other file, or returns [figure.ErrNoRound] and writes
// nothing.
func HTML(w io.Writer, run result.Run) error {
	p, err := newPage(run)
	if err != nil {
		return err
	}
	code := func(text string) template.HTML { // what stands between backticks, as HTML has it
		parts := strings.Split(template.HTMLEscapeString(text), "`")
		for i := 1; i+1 < len(parts); i += 2 {
			parts[i] = "<code>" + parts[i] + "</code>"
		}
		return template.HTML(strings.Join(parts, ""))
	}
	t, err := template.New("page").Funcs(template.FuncMap{"code": code}).Parse(pageText)
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
		Run: s.runFacts(), CostLoss: s.costAgainstLoss(), Charts: s.charts(), Notes: s.notes(), Doubts: s.doubts(), Machine: h.Machine, Method: s.method(),
	}
	if s.advised {
		p.Advice = s.adviceLine()
	}
	p.Losses = s.pageLosses()
	for _, g := range s.Groups {
		p.Groups = append(p.Groups, s.groupPage(g))
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
		{Name: "directory", Value: h.Dir},
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

func (s sheet) groupPage(g figure.Group) pageGroup {
	columns, usage, steady := inPage.of(groupColumns, g.Load), inPage.of(usageColumns, g.Load), inPage.of(steadyColumns, g.Load)
	p := pageGroup{Title: title(g.Load), Head: heads(columns, inPage), UsageHead: heads(usage, inPage)}
	if g.Steady {
		p.SteadyHead = heads(steady, inPage)
		for _, r := range steadied(g) {
			p.SteadyRows = append(p.SteadyRows, texts(steady, inPage, r))
		}
	}
	for _, r := range g.Rows {
		p.Rows = append(p.Rows, pageRow{Advised: s.advises(r), Cells: texts(columns, inPage, r)})
		p.UsageRows = append(p.UsageRows, pageRow{Advised: s.advises(r), Cells: texts(usage, inPage, r)})
	}
	return p
}

// charts draws a picture for each size of record: a row for each policy, a dot
// for each number of writers.
func (s sheet) charts() []template.HTML {
	var pictures []template.HTML
	seen := map[int64]bool{}
	for _, of := range s.Groups {
		size := holdfast.Size(of.RecordBytes)
		if seen[of.RecordBytes] {
			continue
		}
		seen[of.RecordBytes] = true
		d := chart.Dots{Title: fmt.Sprintf("records of %v a second, by policy", size), Scale: tick}
		at := map[holdfast.Policy]int{}
		for _, g := range s.Groups {
			if g.RecordBytes != of.RecordBytes || g.Paced {
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

// tick is count without zeros behind the point.
func tick(x float64) string {
	text := count(x)
	unit := unitOf(text)
	number := strings.TrimSuffix(text, unit)
	return strings.TrimSuffix(strings.TrimSuffix(number, ".00"), ".0") + unit
}

// method says how it was measured.
func (s sheet) method() []string {
	return append(s.trialMethod(),
		"Not in the clock: making the records, a garbage collection before the trial, reading the whole file back and checking every byte, removing it, and letting the file system settle. A time counts only if every record of every writer was in the file once, whole and in order.",
		"Every round runs every cell once, in a new order drawn from the seed. A warm-up round comes first; it counts the system calls, which would slow a timed trial down, and is in no other figure.",
		"Policies whose Write does not wait for the disk write the same number of records within a group; those whose Write waits have their own numbers, chosen so that a trial takes a similar time.",
		"The empty cell writes nothing. The median of what it takes is subtracted from the times, CPU times and calls that are compared, and its interval is in theirs. User and system time are told apart in trials of at least 50 ticks of 10 ms, which is how the kernel tells them apart.",
		"A policy with a period is judged on trials in which the period fell due at least three times. At full speed such a trial would write gigabytes, so there are long trials at a moderate rate, beside the policy that never syncs with the same buffer.",
		"The figure is the median with its distribution-free 95 % interval. A percentile is that of all rounds together; beside it is the interval of the single rounds' percentiles, where each has the samples for it. A cost is the Hodges-Lehmann estimate of the ratios of the same rounds; faster, slower and same are said only where the 95 % interval of these ratios and the noise allow it, else it is not proven. No outlier is dropped.",
		"What a crash takes is not measured here: it is what the policy promises.",
	)
}

// trialMethod says what a trial does. It depends on the loads whether records are due at
// a rate, whether there is a file before, and when a trial ends.
func (s sheet) trialMethod() []string {
	lines := []string{"A trial makes a new file, lets the writers append all their records as fast as Write returns, and then calls Flush, Sync (where the policy syncs by time or at close) and Close. The clock runs from the start of the first to the end of the last of these, and is the monotonic one."}
	if s.anyGroup(func(l figure.Load) bool { return l.Cache != "" && l.Cache != result.NewFile }) {
		lines = append(lines, "Where a state of the page cache was asked for, a trial appends to a file that is there already, and before the clock starts it is looked up how many of its pages are in the page cache.")
	}
	if s.anyGroup(func(l figure.Load) bool { return l.Steady }) {
		lines = append(lines, "Where it goes on until it is steady, a trial ends when the throughput of the last five seconds rises or falls by no more than 10 % and spreads by no more than 20 %, and no more gathers in memory.")
	}
	timed := "Where Write waits for the disk each one is timed, else one in 31. A percentile is shown if at least ten timed Writes lie beyond it."
	if s.anyGroup(func(l figure.Load) bool { return l.Open() }) {
		return append(lines, "Where records are due at a rate (an open loop), the time of a Write counts from when its record was due, so that a stall shows in all records that it delays. Else they are the times of writers that go on at once (a closed loop). "+timed)
	}
	return append(lines, "The times of single Writes are service times of writers that go on at once (a closed loop). "+timed)
}
