package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/advise"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/chart"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/page"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// More is optional content of a page besides the run.
type More struct {
	Need    advise.Need    // empty: none was stated; only for a run of policies on one file system
	Results []page.Results // results to be put inside
	// Sections stand before the section on method, such as the results of prove.
	Sections []page.Section
}

// HTML writes one page that needs no other file, or returns [figure.ErrNoRound] and writes
// nothing. Its texts are made by the same functions as the texts of the terminal's table.
func HTML(w io.Writer, studies study.List, run result.Run, more More) error {
	var p page.Page
	if len(run.FileSystems()) > 0 {
		s, err := newSeveral(studies, run)
		if err != nil {
			return err
		}
		p = s.page()
	} else {
		s, err := newSheet(studies, run)
		if err != nil {
			return err
		}
		if of, ok := s.studied(); ok {
			p = of.page()
		} else if p, err = s.page(more); err != nil {
			return err
		}
	}
	at := len(p.Sections)
	for i, section := range p.Sections {
		if section.Title == howToRead {
			at = i
		}
	}
	p.Sections, p.Results = slices.Insert(p.Sections, at, more.Sections...), more.Results
	return page.Write(w, p)
}

// newPage begins the page of a run.
func (s sheet) newPage() page.Page {
	h := s.Run.Header
	return page.Page{Title: "holdfast: " + h.Study, Question: h.Question + "?", Mark: s.Run.Mark()}
}

func (s sheet) page(more More) (page.Page, error) {
	p := s.newPage()
	var need needs
	if len(more.Need) > 0 {
		for _, load := range advise.Loads(s.Figures, advise.Load{}) {
			r, err := advise.Recommend(s.Figures, more.Need, load)
			if err != nil {
				return p, err
			}
			need = append(need, r)
		}
	}
	p.Answer, p.Tiles, p.Needs = s.answer(), s.tiles(), need.page()
	sure := s.certainty()
	p.Sure = "How sure: `" + sure.word + "`" + strings.TrimPrefix(sure.String(), sure.word) + "."
	p.Sections = append(p.Sections, s.costAgainstLoss(need)...)
	p.Sections = append(p.Sections, s.policiesPage()...)
	p.Sections = append(p.Sections, need.terms()...)
	pictures := page.Section{Title: "In detail", Columns: true}
	for _, of := range append(s.speed(), s.pictures()...) {
		for i, c := range of.Charts { // titles name loads, and the first may stand for all charts that follow
			switch {
			case c.Title != "":
				c.Title = of.Title + ": " + c.Title
			case i == 0:
				c.Title = of.Title
			}
			pictures.Charts = append(pictures.Charts, c)
		}
	}
	pictures.Legend = s.legend(pictures.Charts)
	if len(pictures.Charts) > 0 {
		pictures.Notes = []string{
			"Dots and lines are medians, bars and areas their 95 % intervals. Times of a Write are of all rounds, up to the percentile with ten timed Writes beyond.",
			"Where the time goes: medians of the trials. Work that a policy leaves to the disk for later hardly shows here.",
		}
		p.Sections = append(p.Sections, pictures)
	}
	below := s.losses()
	for _, g := range s.Groups {
		below = append(below, s.groupPage(g))
	}
	below = slices.Concat(below, s.overRounds(), s.foot(s.notes(), s.method()))
	for i := range below {
		below[i].Folded = true
	}
	p.Sections = append(p.Sections, below...)
	return p, nil
}

// answer returns the advice in sentences.
func (s sheet) answer() []string {
	if why := advise.Missing(s.Groups); why != "" {
		return []string{strings.ToUpper(why[:1]) + why[1:] + "."}
	}
	if !s.advised {
		return nil
	}
	a := s.advice
	loses := a.Loses
	if a.Nothing != "" {
		loses += "; " + a.Nothing
	}
	it := "it " // costs, or is the fastest
	if strings.HasPrefix(a.Costs, "no ") || strings.HasPrefix(a.Costs, "what ") {
		it = ""
	}
	sentences := []string{fmt.Sprintf("use %v%s: %s%s.", a.Policy, s.guess(), it, a.Costs), loses + "."}
	if a.Rule != "" {
		sentences = append(sentences, a.Rule+".")
	}
	for i, text := range sentences {
		text = s.policiesAsCode(text)
		sentences[i] = strings.ToUpper(text[:1]) + text[1:]
	}
	return sentences
}

// policiesAsCode puts backticks around each policy of a sentence.
func (sheet) policiesAsCode(sentence string) string {
	words := strings.Split(sentence, " ")
	for i, word := range words {
		policy := strings.TrimRight(word, ",;:.")
		if _, err := holdfast.ParsePolicy(policy); err == nil && strings.Contains(policy, "=") {
			words[i] = "`" + policy + "`" + word[len(policy):]
		}
	}
	return strings.Join(words, " ")
}

// said is a sentence at the beginning of a section, or nothing.
func (sheet) said(sentence string) []string {
	if sentence == "" {
		return nil
	}
	return []string{sentence + "."}
}

// speed draws the records a second.
func (s sheet) speed() []page.Section {
	charts := s.charts()
	if len(charts) == 0 {
		return nil
	}
	return []page.Section{{Title: "Speed", Charts: charts}}
}

const howToRead = "How to read it"

const dotsCaption = "Dots are medians, bars their 95 % intervals; the scale is logarithmic."

func (s sheet) losses() []page.Section {
	t := page.Table{Prose: true, Head: []string{"policy", "when the process dies", "when the machine dies (power cut)"}}
	for _, policy := range s.Policies() {
		loss := policy.Loss()
		t.Rows = append(t.Rows, page.Row{Marked: s.advised && policy == s.advice.Policy, Cells: []string{policy.String(), loss.Process.String(), loss.Power.String()}})
	}
	if len(t.Rows) == 0 {
		return nil
	}
	section := page.Section{Title: "What a crash takes at worst", Tables: []page.Table{t}}
	for _, g := range s.Groups {
		if g.Group == "" && g.Open() && len(section.Charts) < mostPictures {
			charts := s.agesOf(g)
			for i := range charts {
				charts[i].Title = "Loss promised beside loss observed: " + title(g.Load)
			}
			section.Charts = append(section.Charts, charts...)
		}
	}
	return []page.Section{section}
}

// foot is the end of every run's page.
func (s sheet) foot(notes, method []string) []page.Section {
	sections := []page.Section{{Title: howToRead, Notes: notes}}
	if doubts := s.doubts(); len(doubts) > 0 {
		sections = append(sections, page.Section{Title: "What is doubtful", Notes: doubts})
	}
	run := page.Table{Prose: true, Head: []string{"fact", "value"}}
	for _, fact := range s.runFacts() {
		run.Rows = append(run.Rows, page.Row{Cells: []string{fact.Name, fact.Value}})
	}
	return append(sections, page.Section{Title: "How it was measured", Notes: method}, page.Section{Title: "The run", Tables: []page.Table{run}},
		page.Section{Title: "The machine", Tables: []page.Table{s.machineTable(s.Run.Header.Machine, "value")}})
}

func (s sheet) doubts() []string {
	var lines []string
	for _, w := range s.Warnings {
		lines = append(lines, doubt(w))
	}
	return lines
}

func (sheet) machineTable(facts []machine.Fact, value string) page.Table {
	t := page.Table{Prose: true, Name: "the machine", Head: []string{"fact", value, "learnt from"}}
	for _, f := range facts {
		t.Rows = append(t.Rows, page.Row{Cells: []string{f.Name, f.Value, f.Source}})
	}
	return t
}

func (s sheet) runFacts() []machine.Fact {
	h := s.Run.Header
	rounds := fmt.Sprintf("%d of %d planned", s.Rounds, h.Plan.Rounds)
	if s.FewestRounds() < s.Rounds {
		rounds = fmt.Sprintf("%s, %d planned", s.roundsText(), h.Plan.Rounds)
	}
	facts := []machine.Fact{
		{Name: "directory", Value: h.Dir},
		{Name: "begun", Value: h.StartedAt.Format(time.RFC1123)},
		{Name: "program", Value: h.Program},
		{Name: "rounds", Value: rounds},
		{Name: "seed of the order", Value: fmt.Sprint(h.Seed)},
	}
	if s.Run.End != nil {
		facts = append(facts, machine.Fact{Name: "took", Value: s.Run.End.Elapsed.Round(time.Second).String()})
	}
	return append(facts, machine.Fact{Name: "to repeat it", Value: "holdfast bench --from results.jsonl, with the results of this page"})
}

// groupPage shows the figures of a load: the compared costs, and the stages that the time is spent in.
func (s sheet) groupPage(g figure.Group) page.Section {
	table := func(columns []column, rows []figure.Row) page.Table {
		t := page.Table{Head: heads(columns, inPage)}
		for _, r := range rows {
			t.Rows = append(t.Rows, page.Row{Key: r.Cell.Name, Marked: s.advises(r), Cells: texts(columns, inPage, r)})
		}
		return t
	}
	p := page.Section{Title: title(g.Load), Tables: []page.Table{table(inPage.of(groupColumns, g.Load), g.Rows)}}
	if g.Steady {
		steady := table(inPage.of(steadyColumns(), g.Load), steadied(g))
		steady.Name, steady.Text = p.Title+", steady", "How the throughput of the long trials became steady."
		p.Tables = append(p.Tables, steady)
	}
	usage := table(inPage.of(usageColumns(), g.Load), g.Rows)
	usage.Name, usage.Text = p.Title+", usage", "Where a trial's time goes, and what else the process used; medians of the trials, blocks of 512 bytes."
	p.Tables = append(p.Tables, usage)
	return p
}

// charts draws a picture for each size of record: a row for each policy, a dot
// for each number of writers.
func (s sheet) charts() []page.Chart {
	var pictures []page.Chart
	seen := map[int64]bool{}
	for _, of := range s.Groups {
		size := holdfast.Size(of.RecordBytes)
		if seen[of.RecordBytes] {
			continue
		}
		seen[of.RecordBytes] = true
		p := chart.Plot{
			Title: fmt.Sprintf("records of %v a second, by policy", size), Beside: true, Legend: chart.Nowhere, Series: s.writers(),
			X: chart.Axis{Name: fmt.Sprintf("records of %v a second", size), Scale: chart.Log, Format: tick}, Y: chart.Axis{Categories: []string{}},
		}
		at := map[holdfast.Policy]int{}
		for _, g := range s.Groups {
			if g.RecordBytes != of.RecordBytes || g.Paced {
				continue
			}
			of := slices.IndexFunc(p.Series, func(one chart.Series) bool { return one.Name == plural(g.Writers, "writer") })
			for _, r := range g.Rows {
				i, ok := at[r.Cell.Policy]
				if !ok {
					i = len(at)
					at[r.Cell.Policy] = i
					p.Y.Categories = append(p.Y.Categories, advise.Name(r.Cell.Policy))
				}
				p.Series[of].Marks = append(p.Series[of].Marks, chart.Mark{
					X: r.Rate.Median, XLow: r.Rate.Low, XHigh: r.Rate.High, Y: float64(i), Title: fmt.Sprintf("%s (%s-%s) records/s", tick(r.Rate.Median), tick(r.Rate.Low), tick(r.Rate.High)), Data: marked(r),
				})
			}
		}
		pictures = drawn(pictures, p, "")
	}
	return keyed(writerKeys, pictures)
}

// writers returns a series for each number of writers.
func (s sheet) writers() (series []chart.Series) {
	for _, g := range s.Groups {
		name := plural(g.Writers, "writer")
		if !g.Paced && !slices.ContainsFunc(series, func(one chart.Series) bool { return one.Name == name }) {
			series = append(series, chart.Series{Name: name, As: chart.Points, Look: len(series)})
		}
	}
	return series
}

// tick is count without trailing zeros.
func tick(x float64) string {
	text := count(x)
	unit := unitOf(text)
	number := strings.TrimSuffix(text, unit)
	return strings.TrimSuffix(strings.TrimSuffix(number, ".00"), ".0") + unit
}

// method describes the measurement.
func (s sheet) method() []string {
	return append(s.trialMethod(),
		"Not in the clock: making the records, a garbage collection before the trial, reading the whole file back and checking every byte, removing it, and letting the file system settle. A time counts only if every record of every writer was in the file once, whole and in order.",
		"Every round runs every cell once, in a new order drawn from the seed. A warm-up round comes first; it counts the system calls, which would slow a timed trial down, and is in no other figure.",
		"Policies whose Write does not wait for the disk write the same number of records within a group; those whose Write waits have their own numbers, chosen so that a trial takes a similar time.",
		"The empty cell writes nothing. Its median is subtracted from the times, CPU times and calls that are compared, and its interval is added to theirs. User and system time are shown apart only in trials of at least 50 ticks of 10 ms, because the kernel counts them by ticks.",
		"A policy with a period is judged on trials in which the period fell due at least three times. At full speed such a trial would write gigabytes, so there are paced trials at a moderate rate, beside the same buffer without a sync.",
		"The figure is the median with its distribution-free 95 % interval. A percentile is of all rounds together; beside it is the interval of the rounds' own percentiles, if each round has enough samples. A cost is the Hodges-Lehmann estimate of the ratios round by round; the word is faster, slower or same if its 95 % interval and the noise prove it, else not proven. No outlier is dropped.",
		"What a crash takes is not measured here: it is what the policy promises.",
	)
}

// trialMethod describes a trial. The loads decide whether records are due at a rate, whether there is a
// file before, and when a trial ends.
func (s sheet) trialMethod() []string {
	lines := []string{"A trial makes a new file, lets the writers append all their records as fast as Write returns, and then calls Flush, Sync (where the policy syncs by time or at close) and Close. The clock runs from the start of the first to the end of the last of these, and is the monotonic one."}
	if s.anyGroup(func(l figure.Load) bool { return l.Cache != "" && l.Cache != result.NewFile }) {
		lines = append(lines, "If a state of the page cache was asked for, a trial appends to an existing file, and before the clock starts its pages in the page cache are counted.")
	}
	if s.anyGroup(func(l figure.Load) bool { return l.Steady }) {
		lines = append(lines, "A steady trial ends when the throughput of the last five seconds rises or falls by at most 10 % and spreads by at most 20 %, and no more gathers in memory.")
	}
	timed := "Writes that wait for the disk are all timed, others one in 31. A percentile is shown if at least ten timed Writes lie beyond it."
	if s.anyGroup(func(l figure.Load) bool { return l.Open() }) {
		return append(lines, "Where records are due at a rate (an open loop), the time of a Write counts from when its record was due, so a stall shows in all records that it delays. Other times are of writers that go on at once (a closed loop). "+timed)
	}
	return append(lines, "The times of single Writes are service times of writers that go on at once (a closed loop). "+timed)
}
