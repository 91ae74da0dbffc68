package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/advise"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// The marks beside a ratio in the brief table. Spaces keep the numbers of a column below each other.
const (
	byPace   = "*" // of trials at a pace
	tooShort = "~" // of a burst in which no sync fell due
	unproven = "?"
	marksMax = 2
)

// brief writes the answer in about 30 lines: one table, ordered by the loss at a power cut, then the
// advised policy and the certainty of the advice. It shows the loads of the first table; the whole text has
// all.
func (s sheet) brief(b *strings.Builder) {
	tables := s.briefTables()
	if len(tables) == 0 {
		return
	}
	first := tables[0]
	b.WriteString(wrap(s.briefHead(first.loads[0]), s.columns, indent))
	if mark := s.Run.Mark(); mark != "" {
		b.WriteString(wrap("not complete: "+mark, s.columns, indent))
	}
	b.WriteString("\n" + briefText(first.Table, s.columns) + "\n")
	for _, n := range first.Notes {
		b.WriteString(wrap(n, s.columns, indent))
	}
	if s.advised {
		b.WriteString("\n" + s.briefAdvice())
	} else if why := advise.Missing(s.Groups); why != "" {
		b.WriteString("\n" + wrap(why, s.columns, indent))
	}
	b.WriteString("\n" + wrap("how sure: "+s.certainty().String(), s.columns, indent))
	if s.advised && s.advice.Policy.Sync.Mode != holdfast.SyncNever && machine.Get(s.Run.Header.Machine, "journal").Value == "none" {
		b.WriteString(wrap("caution: the file system has no journal: a crash may take the name of a file whose bytes are durable", s.columns, indent))
	}
	more := "--all: every interval and doubt"
	if len(tables) > 1 {
		more += ", " + plural(len(tables)-1, "more table")
	}
	b.WriteString(wrap(more+"; -o FILE keeps the results for holdfast report", s.columns, indent))
}

// briefText renders the table. A narrow terminal gets no column of times, losses in two lines where they are long, and at last
// policies that are broken behind their last comma.
func briefText(t study.Table, width int) string {
	_, shown, ok := unfolded(t, width)
	for _, narrow := range []struct {
		loss     int // columns of the loss
		policies bool
	}{{len("anything not synced"), false}, {len("anything not synced"), true}, {16, true}} {
		if ok {
			break
		}
		_, shown, ok = unfolded(narrowed(t, narrow.loss, narrow.policies), width)
	}
	return shown
}

func narrowed(t study.Table, columns int, policies bool) study.Table {
	const loss, times = 1, 2 // columns of the table
	without := func(row []string) []string { return slices.Delete(slices.Clone(row), times, times+1) }
	small := t
	small.Head, small.Rows = without(t.Head), nil
	small.Head[loss] = strings.TrimSuffix(wrap(small.Head[loss], columns, ""), "\n")
	for _, row := range t.Rows {
		row = without(row)
		if at := strings.LastIndexByte(row[0], ','); policies && at > 0 {
			row[0] = row[0][:at+1] + "\n    " + row[0][at+1:]
		}
		row[loss] = strings.TrimSuffix(wrap(row[loss], columns, ""), "\n")
		small.Rows = append(small.Rows, row)
	}
	return small
}

// briefHead names the place of the measurement and the records.
func (s sheet) briefHead(l figure.Load) string {
	h := s.Run.Header
	value := func(name string) string {
		if v := machine.Get(h.Machine, name).Value; v != machine.Unknown {
			return v
		}
		return ""
	}
	place := value("file system")
	if device := value("device"); device != "" {
		place += " on " + device
	}
	parts := []string{strings.TrimSpace(place)}
	if kind := value("virtualisation"); kind != "" && kind != "none" {
		parts = append(parts, kind)
	}
	if n := value("CPUs"); n != "" {
		parts = append(parts, n+" CPUs")
	}
	parts = append(parts, fmt.Sprintf("records of %v", holdfast.Size(l.RecordBytes)))
	if l.Rate > 0 {
		parts = append(parts, tick(l.Rate)+" due a second")
	}
	if l.Cache != "" && l.Cache != result.NewFile {
		parts = append(parts, fmt.Sprintf("page cache %s", l.Cache))
	}
	parts = append(parts, s.roundsText())
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), ", ")
}

// A briefTable is a table of loads that differ only in the number of writers.
type briefTable struct {
	study.Table
	loads    []figure.Load
	policies []holdfast.Policy // of the rows
}

// briefTables returns one table for each size and rate of records, with a row for each policy. Paced groups have no
// table: their costs stand in the burst's table.
func (s sheet) briefTables() (tables []briefTable) {
	var kinds []figure.Load
	for _, g := range s.Groups {
		kind := g.Load
		kind.Writers = 0
		if !g.Paced && g.Group == "" && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	for _, kind := range kinds {
		var groups []figure.Group
		for _, g := range s.Groups {
			l := g.Load
			if l.Writers = 0; l == kind {
				groups = append(groups, g)
			}
		}
		tables = append(tables, s.briefTable(groups))
	}
	return tables
}

func (s sheet) briefTable(groups []figure.Group) briefTable {
	t := briefTable{Table: study.Table{Head: []string{"  policy", "lost at a power cut", map[bool]string{false: "a record", true: "a Write"}[groups[0].Open()]}}}
	var rows []figure.Row // the first of each policy
	for _, g := range groups {
		t.loads = append(t.loads, g.Load)
		head := plural(g.Writers, "writer")
		if len(groups) == 1 {
			head = "cost"
		}
		t.Head = append(t.Head, head)
		for _, r := range g.Rows {
			if !slices.ContainsFunc(rows, func(have figure.Row) bool { return have.Cell.Policy == r.Cell.Policy }) {
				rows = append(rows, r)
			}
		}
	}
	slices.SortStableFunc(rows, byLoss)
	marks := map[string]bool{}
	for _, r := range rows {
		mark := "  "
		if s.advises(r) {
			mark = "> "
		}
		took := r.Net.Write
		if groups[0].Open() {
			took = r.Net.Service
		}
		row := []string{mark + advise.Name(r.Cell.Policy), lossText(r.Cell.Policy.Loss().Power), positive(took.Median)}
		for _, g := range groups {
			text, of := s.briefCost(g, r.Cell.Policy)
			if text == none {
				of = ""
			}
			for _, m := range strings.Split(of, "") {
				marks[m] = true
			}
			row = append(row, fmt.Sprintf("%s%-*s", text, marksMax, of))
		}
		t.Rows, t.policies = append(t.Rows, row), append(t.policies, r.Cell.Policy)
	}
	t.Notes = s.briefNotes(groups, marks)
	return t
}

// positive writes a time, or - if it is not positive: on a busy machine a time less the harness may be
// below 0.
func positive(x float64) string {
	if !(x > 0) {
		return none
	}
	return nanoseconds(x)
}

// lossText is the bound's own text, shortened.
func lossText(b holdfast.Bound) string {
	return strings.Replace(b.String(), "what is in flight", "in flight", 1)
}

// byLoss orders by the largest loss at a power cut: nothing, a time, an amount, anything. Policies with the same
// loss are ordered by cost.
func byLoss(a, b figure.Row) int {
	rank := func(r figure.Row) (age, amount float64) {
		loss := r.Cell.Policy.Loss().Power
		age, amount = float64(loss.Time), float64(loss.Bytes)
		if loss.Time == holdfast.Unlimited {
			age = math.Inf(1)
		}
		if loss.Bytes == holdfast.Unlimited {
			amount = math.Inf(1)
		}
		return age, amount
	}
	ageA, amountA := rank(a)
	ageB, amountB := rank(b)
	return cmp.Or(cmp.Compare(ageA, ageB), cmp.Compare(amountA, amountB), cmp.Compare(a.Cost.Ratio, b.Cost.Ratio))
}

// briefCost returns a policy's cost in a group, and its marks. If the policy's period did not fall due in the burst, the
// cost comes from paced trials with the same number of writers, if there are any.
func (s sheet) briefCost(g figure.Group, p holdfast.Policy) (text, marks string) {
	find := func(g figure.Group) (figure.Row, bool) {
		at := slices.IndexFunc(g.Rows, func(r figure.Row) bool { return r.Cell.Policy == p })
		if at < 0 {
			return figure.Row{}, false
		}
		return g.Rows[at], true
	}
	row, ok := find(g)
	if !ok {
		return none, ""
	}
	if row.Period.Judged() {
		return advise.Cost(row), markOf(row)
	}
	for _, other := range s.Groups {
		like := other.Load
		like.Paced, like.Rate = g.Paced, g.Rate
		if r, ok := find(other); ok && other.Paced && like == g.Load && r.Period.Judged() && !r.Control {
			if _, bounded := r.AtMost(); bounded || r.Unknown() {
				return advise.Cost(r), byPace
			}
			return advise.Cost(r), byPace + markOf(r)
		}
	}
	return advise.Cost(row), tooShort
}

func markOf(r figure.Row) string {
	if r.Cost.Verdict == stat.NotProven && !r.Fastest {
		return unproven
	}
	return ""
}

// briefNotes explains the marks.
func (s sheet) briefNotes(groups []figure.Group, marks map[string]bool) (notes []string) {
	fastest := "cost: times the fastest of its column"
	if marks[byPace] {
		for _, g := range s.Groups {
			if g.Paced {
				fastest += fmt.Sprintf("; * against the same buffer without a sync, at %s records/s", tick(g.Rate))
				if at := slices.IndexFunc(g.Rows, func(r figure.Row) bool { return r.BoundBy > 0 }); at >= 0 {
					fastest += fmt.Sprintf(", measured at periods of %v", g.Rows[at].BoundBy)
				}
				break
			}
		}
	}
	notes = append(notes, fastest)
	var rest []string
	if marks[tooShort] {
		rest = append(rest, "~ measured in a burst in which no sync fell due")
	}
	if marks[unproven] {
		text := "? within noise of the fastest"
		if floor := s.Noise.Floor; floor.Known() {
			text += fmt.Sprintf(": two runs of one policy differed by up to %.0f %%", math.Ceil(100*float64(floor)))
		}
		rest = append(rest, text)
	}
	if len(rest) > 0 {
		notes = append(notes, strings.Join(rest, "; "))
	}
	return notes
}

// briefAdvice names the policy to use, with its line of Go, and the reason.
func (s sheet) briefAdvice() string {
	const under = "     "
	a, name := s.advice.Brief(), advise.Name(s.advice.Policy)
	if text := s.advice.Policy.String(); text != name {
		name += "  (" + text + ")"
	}
	loses := a.Loses
	if process := a.Policy.Loss().Process; !process.None() {
		loses += ", a process crash " + process.String()
	}
	var b strings.Builder
	for i, line := range []string{"use  " + name + s.guess(), under + advise.GoLine(a.Policy), under + byName(a.Costs), under + loses, under + byName(a.Nothing), under + a.Rule} {
		if strings.TrimSpace(line) != "" {
			line = wrap(strings.TrimLeft(line, " "), s.columns-len(under), "")
			for _, part := range strings.Split(strings.TrimSuffix(line, "\n"), "\n") {
				if i > 0 {
					part = under + part
				}
				b.WriteString(part + "\n")
			}
		}
	}
	return b.String()
}

// byName returns a sentence in which policies have their names instead of their texts.
func byName(sentence string) string {
	words := strings.Split(sentence, " ")
	for i, word := range words {
		text := strings.TrimRight(word, ",;:.")
		if p, err := holdfast.ParsePolicy(text); err == nil && strings.Contains(text, "=") {
			words[i] = advise.Name(p) + word[len(text):]
		}
	}
	return strings.Join(words, " ")
}
