package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/chart"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/page"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// A studied sheet is a run of a study: the published figures, and the study's own tables and picture of
// the run.
type studied struct {
	sheet
	study.Shown
	of study.Study
}

// studied returns the sheet of a study's run; ok is false for a run of a sweep.
func (s sheet) studied() (studied, bool) {
	return s.studiedBy(func() study.Evidence { return study.EvidenceOf(s.Run) })
}

// studiedBy is studied with the evidence of the run or of a part of it. It does not call evidence for a
// sweep.
func (s sheet) studiedBy(evidence func() study.Evidence) (studied, bool) {
	of, ok := s.studies.Find(s.Run.Header.Study)
	if !ok || of.Show == nil {
		return studied{}, false
	}
	return studied{sheet: s, Shown: of.Show(evidence()), of: of}, true
}

// tables returns all tables that have a row, published ones first.
func (s studied) tables() []study.Table { return withRows(slices.Concat(s.of.Published, s.Tables)) }

func withRows(tables []study.Table) []study.Table {
	return slices.DeleteFunc(slices.Clone(tables), func(t study.Table) bool { return len(t.Rows) == 0 })
}

// readStudy explains how to read the tables of a study.
const readStudy = "figures are medians of the rounds with their 95 % intervals; ratios are taken round by round; published figures are as printed in the document"

// notes explain how to read the tables, and list the missing parts.
func (s studied) notes() []string { return append([]string{readStudy}, s.ownNotes()...) }

// ownNotes are the notes that concern this run alone.
func (s studied) ownNotes() []string {
	notes := []string{"noise: " + s.noise()}
	for _, m := range study.MissingByReason(s.Run.Header.Missing) {
		notes = append(notes, notRun+m)
	}
	if s.Outliers > 0 {
		notes = append(notes, fmt.Sprintf("outliers: %d of %s; none is left out", s.Outliers, plural(s.Trials, "trial")))
	}
	return notes
}

// text writes the tables, the picture and the study's result.
func (s studied) text(b *strings.Builder) {
	s.textHead(b)
	shownText(b, s.tables(), s.Picture, s.width())
	b.WriteString("\n")
	for _, n := range append(s.notes(), s.someDoubts()...) {
		b.WriteString(wrap(n, s.width(), indent))
	}
	if s.Learnt != "" {
		b.WriteString("\n" + wrap("learnt: "+s.learnt(), s.width(), indent))
	}
}

// brief writes the study's result, then as many whole tables as there is room for. The first table of
// this machine comes first, then the published ones, then the others in their order.
func (s studied) brief(b *strings.Builder) {
	const most, mostDoubts = 30, 3 // lines and doubts
	lines := func(text string) int { return strings.Count(text, "\n") }
	s.textHead(b)
	if s.Learnt != "" {
		b.WriteString("\n" + wrap("learnt: "+s.learnt(), s.width(), indent))
	}
	var foot strings.Builder
	for i, n := range append(s.ownNotes(), s.someDoubts()...) {
		if text := wrap(n, s.width(), indent); lines(foot.String()+text) <= mostDoubts || i == 0 {
			foot.WriteString(text)
		}
	}
	const ending = 3 // the empty line between, and the line about the parts left out
	room := most - lines(b.String()) - lines(foot.String()) - ending
	published, own := withRows(s.of.Published), withRows(s.Tables)
	all := slices.Concat(published, own)
	shown := make([]string, len(all))
	left := len(all)
	textOf := func(t study.Table) string {
		var b strings.Builder
		shownText(&b, []study.Table{t}, nil, s.width())
		return b.String()
	}
	var order []int // in which tables get room
	for i := range all {
		order = append(order, i)
	}
	if len(own) > 0 {
		order = slices.Insert(slices.Delete(order, len(published), len(published)+1), 0, len(published))
	}
	// The first table of this machine and the first published one are cut: each has half of the room, or the room
	// that the other leaves.
	reserve := 0
	if len(published) > 0 && len(own) > 0 {
		reserve = min(lines(textOf(published[0])), room/2)
	}
	for n, i := range order {
		text := textOf(all[i])
		if n > 0 {
			reserve = 0
		}
		for t := all[i]; n < 2 && lines(text) > room-reserve && len(t.Rows) > 1; text = textOf(t) {
			t.Rows = t.Rows[:len(t.Rows)-1]
			t.Notes = []string{fmt.Sprintf("… and %s more", plural(len(all[i].Rows)-len(t.Rows), "row"))}
		}
		if lines(text) <= room {
			room -= lines(text)
			shown[i] = text
			left--
		}
	}
	for _, text := range shown {
		b.WriteString(text)
	}
	b.WriteString("\n" + foot.String())
	more := "all doubts, and how to read the figures"
	if left > 0 {
		more = plural(left, "more table") + ", " + more
	}
	b.WriteString(wrap("--all also shows "+more+"; for results kept with -o, use holdfast report FILE --all", s.width(), indent))
}

func shownText(b *strings.Builder, tables []study.Table, picture *chart.Dots, width int) {
	for _, t := range tables {
		t = withReasonsApart(t)
		fmt.Fprintf(b, "\n%s", wrap(tableTitle(t), width, indent))
		for i, part := range fitted(t, width) {
			if i > 0 {
				b.WriteString("\n")
			}
			b.WriteString(part + "\n")
		}
		for _, n := range t.Notes {
			b.WriteString(wrap("  "+n, width, indent))
		}
	}
	if picture != nil {
		fmt.Fprintf(b, "\n%s", picture.Text(width))
	}
}

// learnt returns the study's result, with a caution if the rounds are too few for a proof.
func (s studied) learnt() string { return s.guarded(s.Learnt) }

// guarded returns a result, with a caution if the rounds are too few for a proof.
func (s sheet) guarded(learnt string) string {
	if learnt != "" && s.Rounds < 10 {
		return fmt.Sprintf("(from %s, a guess) %s", plural(s.Rounds, "round"), learnt)
	}
	return learnt
}

const notRun = "not run: "

// withReasonsApart moves the reasons why something was not run from the cells to the
// notes, each once. In a cell they would make the column too wide.
func withReasonsApart(t study.Table) study.Table {
	t.Notes, t.Rows = slices.Clone(t.Notes), slices.Clone(t.Rows)
	for i, row := range t.Rows {
		t.Rows[i] = slices.Clone(row)
		for j, cell := range row {
			if !strings.HasPrefix(cell, notRun) {
				continue
			}
			t.Rows[i][j] = strings.TrimSuffix(notRun, ": ")
			if !slices.Contains(t.Notes, cell) {
				t.Notes = append(t.Notes, cell)
			}
		}
	}
	return t
}

// tableTitle returns the title, with the source if the figures are published ones.
func tableTitle(t study.Table) string {
	if t.Source == "" {
		return t.Title
	}
	return fmt.Sprintf("%s (published: %s)", t.Title, t.Source)
}

// tableText returns a table. Its first column and all other columns with text are left-aligned.
func tableText(t study.Table) table.Writer {
	return filled(newTable(rightAligned(len(t.Head), textColumns(t)...)...), t)
}

func filled(w table.Writer, t study.Table) table.Writer {
	w.AppendHeader(cells(t.Head))
	for _, r := range t.Rows {
		w.AppendRow(cells(r))
	}
	return w
}

// textColumns returns the first column and each column with a cell that begins with a letter.
func textColumns(t study.Table) []int {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ("
	columns := []int{0}
	for i := 1; i < len(t.Head); i++ {
		isText := func(r []string) bool { return i < len(r) && r[i] != "" && strings.ContainsAny(r[i][:1], letters) }
		if slices.ContainsFunc(t.Rows, isText) {
			columns = append(columns, i)
		}
	}
	return columns
}

// markdown writes the content of text as Markdown.
func (s studied) markdown(b *strings.Builder) {
	tablesMarkdown(b, "####", s.tables())
	b.WriteString("\n")
	for _, line := range append(s.notes(), s.doubtLines()...) {
		fmt.Fprintf(b, "- %s\n", markdownText(line))
	}
	if s.Learnt != "" {
		fmt.Fprintf(b, "\n**Learnt:** %s\n", markdownText(s.learnt()))
	}
}

// tablesMarkdown writes tables under headings of a level.
func tablesMarkdown(b *strings.Builder, level string, tables []study.Table) {
	for _, t := range tables {
		rows := t.Rows
		t.Rows = make([][]string, len(rows))
		for i, row := range rows {
			for _, cell := range row {
				t.Rows[i] = append(t.Rows[i], markdownText(cell))
			}
		}
		fmt.Fprintf(b, "\n%s %s\n\n%s\n", level, markdownText(tableTitle(t)), tableText(t).RenderMarkdown())
		if len(t.Notes) > 0 {
			b.WriteString("\n")
		}
		for _, n := range t.Notes {
			fmt.Fprintf(b, "- %s\n", markdownText(n))
		}
	}
}

// page is the page of a study.
func (s studied) page() page.Page {
	p := s.newPage()
	p.Answer = s.said(s.learnt())
	p.Sections = pageTables(s.tables())
	if s.Picture != nil {
		picture := page.Section{Title: "Picture", Charts: []page.Chart{{Picture: s.Picture.SVG(), Caption: dotsCaption + " Published figures are a bar from the least to the largest, or a dot."}}}
		p.Sections = slices.Insert(p.Sections, 0, picture)
	}
	p.Sections = append(p.Sections, s.foot(s.notes(), studyMethod())...)
	return p
}

func pageTables(tables []study.Table) (all []page.Section) {
	for _, t := range tables {
		all = append(all, page.Section{Title: tableTitle(t), Tables: []page.Table{{Head: t.Head, Rows: page.Plain(t.Rows), Notes: t.Notes}}})
	}
	return all
}

// studyMethod describes how the arms of a study are measured.
func studyMethod() []string {
	return []string{
		"Every round runs every arm once, in a new order drawn from the seed. A warm-up round comes first; it counts the system calls, which would slow a timed trial down, and is in no other figure.",
		"Each arm times its own work, described in docs/studies.md. Not timed: the preparation of the file and of its memory, a garbage collection before the trial, the check of the written bytes, and the removal of the file. A time counts only if the bytes were right.",
		"The figure is the median with its distribution-free 95 % interval. A ratio is the Hodges-Lehmann estimate of the ratios round by round. The word is faster, slower or same if its 95 % interval and the noise prove it, else not proven. No outlier is dropped.",
	}
}
