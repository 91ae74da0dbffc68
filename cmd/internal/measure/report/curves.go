package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/advise"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/chart"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/page"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// drawn adds a plot to charts if it shows something.
func drawn(charts []page.Chart, p chart.Plot, caption string) []page.Chart {
	if svg := p.SVG(); svg != "" {
		charts = append(charts, page.Chart{Picture: svg, Caption: caption})
	}
	return charts
}

// marked returns the attributes by which a page finds the figures of a mark.
func marked(r figure.Row) []chart.Attr {
	return []chart.Attr{{Name: "key", Value: r.Cell.Name}, {Name: "label", Value: r.Cell.Policy.String()}}
}

// byBuffer draws the records a second and the CPU time of a record against the size of the buffer.
// Policies that differ only in the buffer share a line.
func (s sheet) byBuffer(g figure.Group) (charts []page.Chart) {
	var names []string
	sizes := map[string][]figure.Row{}
	for _, r := range g.Rows {
		_, rest, _ := strings.Cut(r.Cell.Policy.String(), ",")
		if r.Cell.Policy.Buffer == 0 || !r.Period.Judged() {
			continue // a logarithmic scale has no 0
		}
		if sizes[rest] == nil {
			names = append(names, rest)
		}
		sizes[rest] = append(sizes[rest], r)
	}
	const fewSizes = 4 // fewer make no curve
	draw := func(what, unit string, of func(figure.Row) figure.Summary, text func(float64) string) chart.Plot {
		p := chart.Plot{
			Title: fmt.Sprintf("%s by the size of the buffer: %s", what, title(g.Load)),
			X:     chart.Axis{Name: "buffer", Scale: chart.Log2, Format: chart.Bytes}, Y: chart.Axis{Name: unit, Format: text},
		}
		for look, name := range names {
			line := chart.Series{Name: name, As: chart.Points | chart.Line | chart.Band, Look: look}
			rows := slices.SortedFunc(slices.Values(sizes[name]), func(a, b figure.Row) int { return int(a.Cell.Policy.Buffer - b.Cell.Policy.Buffer) })
			if len(rows) < fewSizes {
				continue
			}
			for _, r := range rows {
				v := of(r)
				line.Marks = append(line.Marks, chart.Mark{X: float64(r.Cell.Policy.Buffer), Y: v.Median, Low: v.Low, High: v.High, Title: text(v.Median) + " " + unit, Data: marked(r)})
			}
			p.Series = append(p.Series, line)
		}
		return p
	}
	rate := draw("records a second", "records/s", func(r figure.Row) figure.Summary { return r.Rate }, tick)
	best := 0.0
	for _, line := range rate.Series {
		for _, m := range line.Marks {
			best = max(best, m.Y)
		}
	}
	rate.Regions = []chart.Region{{OnY: true, From: best * 0.95, To: best, Label: "within 5 % of the best"}}
	charts = drawn(charts, rate, "Lines join medians, areas are 95 % intervals. In the shaded part the medians are within 5 % of the highest one. A smaller buffer there is as good, as far as this run tells.")
	return drawn(charts, draw("CPU time of a record", "CPU a record", func(r figure.Row) figure.Summary { return r.Net.CPU }, nanoseconds), "")
}

// latencies draws the time of a Write, up to the 99.99 % quantile. For an open loop it draws the time
// since the record was due beside the time of the call.
func (s sheet) latencies(g figure.Group) (charts []page.Chart) {
	p := chart.Plot{
		Title: "how long a Write takes: " + title(g.Load), Height: smallTall, Legend: chart.Nowhere,
		X: chart.Axis{Name: "part of all Writes", Scale: chart.Nines}, Y: chart.Axis{Name: "at most", Scale: chart.Log, Format: nanoseconds},
	}
	looks := s.looks()
	for _, r := range s.telling(g) {
		add := func(what string, as chart.Form, of func(*result.Trial) *result.Latency) {
			all, err := result.Pool(s.Rounded(r.Cell.Name), of)
			if err != nil || all.TotalCount() == 0 {
				return
			}
			line := chart.Series{Name: r.Cell.Policy.String() + what, As: as, Look: looks[r.Cell.Policy], Size: 0.7}
			for _, share := range []float64{0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999} {
				if share > 0 && !stat.Supports(all.TotalCount(), share) {
					continue
				}
				at := float64(all.ValueAtPercentile(100 * share))
				line.Marks = append(line.Marks, chart.Mark{X: share, Y: at, Title: fmt.Sprintf("%g %% take at most %s", 100*share, nanoseconds(at)), Data: marked(r)})
			}
			p.Series = append(p.Series, line)
		}
		if !g.Open() {
			add("", chart.Points|chart.Line, func(t *result.Trial) *result.Latency { return &t.Latency })
			continue
		}
		add(", response", chart.Points|chart.Line, func(t *result.Trial) *result.Latency { return &t.Latency })
		add(", service", chart.Line, func(t *result.Trial) *result.Latency { return t.Service })
	}
	caption := ""
	if g.Open() {
		caption = "Lines with points count from when a record was due, lines without points from the call to its return."
	}
	return keyed(policyKeys, drawn(charts, p, caption))
}

// smallTall is the height of a picture that stands beside others.
const smallTall = 260

// The lines of the legend that all pictures of a page share.
const (
	writerKeys = "writers"
	policyKeys = "policies"
	stageKeys  = "stages"
)

// keyed sets the line of the legend that charts need when one is saved alone.
func keyed(keys string, charts []page.Chart) []page.Chart {
	for i := range charts {
		charts[i].Keys = keys
	}
	return charts
}

// looks returns the look of each policy in the pictures of latency, the same in all of them.
func (s sheet) looks() map[holdfast.Policy]int {
	looks := map[holdfast.Policy]int{}
	for _, g := range s.Groups {
		for _, r := range s.telling(g) {
			if _, ok := looks[r.Cell.Policy]; !ok {
				looks[r.Cell.Policy] = len(looks)
			}
		}
	}
	return looks
}

// legend returns the lines of the legend that the charts need.
func (s sheet) legend(charts []page.Chart) (lines []page.Keys) {
	add := func(title string, series []chart.Series) {
		if !slices.ContainsFunc(charts, func(c page.Chart) bool { return c.Keys == title }) {
			return
		}
		line := page.Keys{Title: title}
		for _, one := range series {
			line.Keys = append(line.Keys, page.Key{Name: one.Name, Mark: one.Key()})
		}
		lines = append(lines, line)
	}
	add(writerKeys, s.writers())
	looks := s.looks()
	policies := make([]chart.Series, len(looks))
	for policy, look := range looks {
		policies[look] = chart.Series{Name: advise.Name(policy), As: chart.Points | chart.Line, Look: look, Size: 0.7}
	}
	add(policyKeys, policies)
	add(stageKeys, stageSeries())
	return lines
}

// telling are the rows of a group that tell most: the advised one, and the cheapest of each loss at a
// power cut, few enough for one picture.
func (s sheet) telling(g figure.Group) (rows []figure.Row) {
	most := 4 // more curves are not told apart at a glance
	if g.Open() {
		most /= 2
	}
	losses := map[string]bool{}
	order := slices.SortedStableFunc(slices.Values(g.Rows), func(a, b figure.Row) int {
		rank := func(r figure.Row) float64 {
			if s.advises(r) {
				return 0
			}
			return r.Cost.Ratio
		}
		return cmp.Compare(rank(a), rank(b))
	})
	for _, r := range order {
		if loss := r.Cell.Policy.Loss().Power.String(); !losses[loss] && len(rows) < most {
			losses[loss] = true
			rows = append(rows, r)
		}
	}
	return rows
}

// stages draws the part of a trial's time that each stage takes.
func (s sheet) stages(g figure.Group) []page.Chart {
	p := chart.Plot{
		Title: "where the time of a trial goes: " + title(g.Load), Stacked: true, Beside: true, Legend: chart.Nowhere,
		X: chart.Axis{Name: "% of a trial", High: 100}, Y: chart.Axis{Categories: []string{}},
	}
	p.Series = stageSeries()
	for _, r := range g.Rows {
		all := float64(r.Stages.Open + r.Stages.Write + r.Stages.Flush + r.Stages.Sync + r.Stages.Close)
		if !(all > 0) {
			continue
		}
		for i, part := range stageParts() {
			took := float64(part.of(r.Stages))
			p.Series[i].Marks = append(p.Series[i].Marks, chart.Mark{
				X: 100 * took / all, Y: float64(len(p.Y.Categories)), Title: fmt.Sprintf("%s: %s, %.0f %% of a trial", part.name, nanoseconds(took), 100*took/all), Data: marked(r),
			})
		}
		p.Y.Categories = append(p.Y.Categories, advise.Name(r.Cell.Policy))
	}
	return keyed(stageKeys, drawn(nil, p, ""))
}

// A stagePart is a part of a trial's time.
type stagePart struct {
	name string
	of   func(figure.Stages) figure.Number
}

func stageParts() []stagePart {
	return []stagePart{
		{"write", func(s figure.Stages) figure.Number { return s.Write }},
		{"flush", func(s figure.Stages) figure.Number { return s.Flush }},
		{"sync", func(s figure.Stages) figure.Number { return s.Sync }},
		{"open and close", func(s figure.Stages) figure.Number { return s.Open + s.Close }},
	}
}

func stageSeries() (series []chart.Series) {
	for look, part := range stageParts() {
		series = append(series, chart.Series{Name: part.name, As: chart.Bars, Look: look})
	}
	return series
}

// agesOf draws the promises of policies with a period, and the greatest age that a byte reached before
// it was durable.
func (s sheet) agesOf(g figure.Group) []page.Chart {
	p := chart.Plot{
		Title: "loss promised beside loss observed: " + title(g.Load), Beside: true,
		X: chart.Axis{Name: "age of the oldest byte that a power cut takes, in periods", Format: study.Times}, Y: chart.Axis{Categories: []string{}},
		Series: []chart.Series{{Name: "its period", As: chart.Points}, {Name: "and the longest sync", As: chart.Points, Look: 1}, {Name: "observed, at most", As: chart.Points, Look: 2}},
	}
	for _, r := range g.Rows {
		bound := r.Cell.Policy.Loss().Power.Time
		if bound == holdfast.Unlimited || bound <= 0 || r.Oldest <= 0 || !r.Period.Judged() {
			continue
		}
		for i, d := range []time.Duration{bound, bound + r.LongestSync, r.Oldest} {
			p.Series[i].Marks = append(p.Series[i].Marks, chart.Mark{X: float64(d) / float64(bound), Y: float64(len(p.Y.Categories)), Title: p.Series[i].Name + ": " + nanoseconds(float64(d)), Data: marked(r)})
		}
		p.Y.Categories = append(p.Y.Categories, advise.Name(r.Cell.Policy))
	}
	return drawn(nil, p, "A policy promises its period and the sync in flight. What was observed is no proof: `holdfast prove` cuts the power.")
}

// overRounds draws the costs of each round relative to their median: of all cells together, and of the
// cells that were run twice.
func (s sheet) overRounds() []page.Section {
	p := chart.Plot{
		Title: "the rounds, one after the other", X: chart.Axis{Name: "round"}, Y: chart.Axis{Name: "times the median of all rounds"},
		Regions: []chart.Region{{OnY: true, From: 1, To: 1}},
	}
	const mostMarks = 1000 // of a line; with more rounds, several rounds share a mark
	last := s.Run.LastRound()
	together := 1 + last/mostMarks
	line := func(name string, of map[int][]float64) {
		series := chart.Series{Name: name, As: chart.Points | chart.Line, Look: len(p.Series), Size: 0.8}
		for round := 0; round <= last; round += together {
			if ratios := of[round]; len(ratios) > 0 {
				middle, rounds := stat.Median(ratios), fmt.Sprint("round ", round)
				if together > 1 {
					rounds = fmt.Sprintf("rounds %d to %d", max(1, round), min(round+together-1, last))
				}
				series.Marks = append(series.Marks, chart.Mark{X: float64(round), Y: middle, Title: fmt.Sprintf("%s: %.2f times the median", rounds, middle)})
			}
		}
		if len(series.Marks) > 2 {
			p.Series = append(p.Series, series)
		}
	}
	ratios := func(cell result.Cell, against string, into map[int][]float64) {
		costs := figure.LoadOf(cell).Costs
		middle := stat.Median(costs(s.Rounded(against)))
		trials := s.Rounded(cell.Name)
		for i, cost := range costs(trials) {
			if cost > 0 && middle > 0 {
				round := trials[i].Round / together * together
				into[round] = append(into[round], cost/middle)
			}
		}
	}
	all := map[int][]float64{}
	for _, c := range s.Run.Header.Cells {
		if !c.Empty && c.Twin == "" {
			ratios(c, c.Name, all)
		}
	}
	line("all cells, the middle one", all)
	const mostLines = 6 // and one
	for _, c := range s.Run.Header.Cells {
		if c.Twin == "" || len(p.Series) >= mostLines {
			continue
		}
		if at := slices.IndexFunc(s.Run.Header.Cells, func(of result.Cell) bool { return of.Name == c.Twin }); at >= 0 {
			first, second := map[int][]float64{}, map[int][]float64{}
			ratios(s.Run.Header.Cells[at], c.Twin, first)
			ratios(c, c.Twin, second)
			line(c.Twin, first)
			line("the same again", second)
		}
	}
	charts := drawn(nil, p, "A line that rises or falls shows a machine that changed during the run. The distance of two lines of one cell is chance.")
	if len(charts) == 0 {
		return nil
	}
	return []page.Section{{Title: "The rounds", Charts: charts}}
}

// mostPictures bounds the pictures of a kind: in a run with hundreds of loads, only the first are
// drawn.
const mostPictures = 24

// pictures are the pictures of all groups, one section for each kind.
func (s sheet) pictures() (sections []page.Section) {
	add := func(what string, of func(figure.Group) []page.Chart, shows func(figure.Group) bool) {
		section := page.Section{Title: what}
		for _, g := range s.Groups {
			if g.Group == "" && shows(g) && len(section.Charts) < mostPictures {
				charts := of(g)
				if len(charts) > 0 {
					charts[0].Title = title(g.Load)
				}
				section.Charts = append(section.Charts, charts...)
			}
		}
		if len(section.Charts) > 0 {
			sections = append(sections, section)
		}
	}
	closed := func(g figure.Group) bool { return !g.Open() }
	add("By the size of the buffer", s.byBuffer, closed)
	add("How long a Write takes", s.latencies, func(figure.Group) bool { return true })
	add("Where the time goes", s.stages, closed)
	return sections
}
