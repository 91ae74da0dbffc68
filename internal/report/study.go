package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/holdfast-go/holdfast/internal/study"
)

// A studied sheet is a run of a study: what was published, and what the study makes
// of the run.
type studied struct {
	sheet
	study.Shown
	of study.Study
}

// studied returns the sheet of a study's run; ok is false for a sweep's.
func (s sheet) studied() (studied, bool) {
	of, ok := study.Find(s.Run.Header.Study)
	if !ok || of.Show == nil {
		return studied{}, false
	}
	return studied{sheet: s, Shown: of.Show(study.EvidenceOf(s.Run)), of: of}, true
}

// tables are all that have a row: those that were published first.
func (s studied) tables() []study.Table {
	return slices.DeleteFunc(slices.Concat(s.of.Published, s.Tables), func(t study.Table) bool { return len(t.Rows) == 0 })
}

// notes say how to read the tables, and what is not in them.
func (s studied) notes() []string {
	notes := []string{
		"figures are medians of the rounds with their 95 % intervals, ratios are of the same rounds; what was published is given as it was printed",
		"noise: " + s.noise(),
	}
	notes = append(notes, s.notRun()...)
	if s.Outliers > 0 {
		notes = append(notes, fmt.Sprintf("outliers: %d of %s, and they count like all others", s.Outliers, plural(s.Trials, "trial")))
	}
	return notes
}

// notRun are the reasons why arms were not run, each once.
func (s studied) notRun() []string {
	var reasons []string
	arms := map[string][]string{}
	for _, m := range s.Run.Header.Missing {
		if arms[m.Why] == nil {
			reasons = append(reasons, m.Why)
		}
		arms[m.Why] = append(arms[m.Why], m.Cell)
	}
	for i, why := range reasons {
		of := arms[why]
		text := of[0]
		if len(of) > 1 {
			text += fmt.Sprintf(" and %d more", len(of)-1)
		}
		reasons[i] = fmt.Sprintf("not run: %s: %s", text, why)
	}
	return reasons
}

// text writes the tables, the picture and what was learnt.
func (s studied) text(b *strings.Builder) {
	s.textHead(b)
	for _, t := range s.tables() {
		fmt.Fprintf(b, "\n%s\n%s\n", wrapTitle(t), narrow(tableText(t)))
		for _, n := range t.Notes {
			b.WriteString(wrap("  "+n, lineWidth, indent))
		}
	}
	if s.Picture != nil {
		fmt.Fprintf(b, "\n%s", s.Picture.Text(lineWidth))
	}
	b.WriteString("\n")
	for _, n := range append(s.notes(), s.someDoubts()...) {
		b.WriteString(wrap(n, lineWidth, indent))
	}
	if s.Learnt != "" {
		b.WriteString("\n" + wrap("learnt: "+s.learnt(), lineWidth, indent))
	}
}

// learnt is the sentence with a caution where nothing can be proven.
func (s studied) learnt() string {
	if s.Learnt != "" && s.Rounds < 10 {
		return fmt.Sprintf("(from %s, a guess) %s", plural(s.Rounds, "round"), s.Learnt)
	}
	return s.Learnt
}

// narrow renders a table with less space between its columns where it would be
// wider than a line.
func narrow(t table.Writer) string {
	wide := t.Render()
	if first, _, _ := strings.Cut(wide, "\n"); len([]rune(first)) <= lineWidth {
		return wide
	}
	style := *t.Style()
	style.Box.PaddingRight = " "
	t.SetStyle(style)
	return t.Render()
}

func wrapTitle(t study.Table) string {
	return strings.TrimSuffix(wrap(tableTitle(t), lineWidth, indent), "\n")
}

// tableTitle says where a table is from: published figures, or this run.
func tableTitle(t study.Table) string {
	if t.Source == "" {
		return t.Title
	}
	return fmt.Sprintf("%s (published: %s)", t.Title, t.Source)
}

// tableText is a table with its first column to the left, and others too unless
// they hold figures alone.
func tableText(t study.Table) table.Writer {
	w := newTable(rightAligned(len(t.Head), textColumns(t)...)...)
	w.AppendHeader(rowOf(t.Head))
	for _, r := range t.Rows {
		w.AppendRow(rowOf(r))
	}
	return w
}

// textColumns are the columns of which a cell begins with a letter.
func textColumns(t study.Table) []int {
	columns := []int{0}
	for i := 1; i < len(t.Head); i++ {
		if slices.ContainsFunc(t.Rows, func(r []string) bool { return i < len(r) && beginsWithLetter(r[i]) }) {
			columns = append(columns, i)
		}
	}
	return columns
}

func beginsWithLetter(text string) bool {
	return text != "" && strings.ContainsAny(text[:1], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ(")
}

func rowOf(texts []string) table.Row {
	var row table.Row
	for _, text := range texts {
		row = append(row, text)
	}
	return row
}

// markdown writes the same as text.
func (s studied) markdown(b *strings.Builder) {
	for _, t := range s.tables() {
		fmt.Fprintf(b, "\n#### %s\n\n%s\n", markdownText(tableTitle(t)), tableText(t).RenderMarkdown())
		if len(t.Notes) > 0 {
			b.WriteString("\n")
		}
		for _, n := range t.Notes {
			fmt.Fprintf(b, "- %s\n", markdownText(n))
		}
	}
	b.WriteString("\n")
	for _, line := range append(s.notes(), s.doubtLines()...) {
		fmt.Fprintf(b, "- %s\n", markdownText(line))
	}
	if s.Learnt != "" {
		fmt.Fprintf(b, "\n**Learnt:** %s\n", markdownText(s.learnt()))
	}
}

// page is the page of a study.
func (s studied) page() page {
	h := s.Run.Header
	p := page{
		Title: "holdfast: " + h.Study, Question: h.Question, Mark: s.Run.Mark(), Learnt: s.learnt(),
		Run: s.runFacts(), Notes: s.notes(), Doubts: s.doubts(), Machine: h.Machine, Method: studyMethod(),
	}
	for _, t := range s.tables() {
		p.Tables = append(p.Tables, pageTable{tableTitle(t), t.Head, t.Rows, t.Notes})
	}
	if s.Picture != nil {
		p.Charts = append(p.Charts, s.Picture.SVG())
	}
	return p
}

// studyMethod says how the arms of a study are measured.
func studyMethod() []string {
	return []string{
		"Every round runs every arm once, in a new order drawn from the seed. A warm-up round comes first; it counts the system calls, which would slow a timed trial down, and is in no other figure.",
		"What is in the clock is the arm's own, and stands in docs/studies.md. Not in it: preparing the file and the memory that it takes, a garbage collection before the trial, reading back and checking what was written, and removing it. A time counts only if the bytes were right.",
		"The figure is the median with its distribution-free 95 % interval. A ratio is the Hodges-Lehmann estimate of the ratios of the same rounds; faster, slower and same are said only where its 95 % interval and the noise allow it, else it is not proven. No outlier is dropped.",
	}
}
