package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/holdfast-go/holdfast/internal/advise"
	"github.com/holdfast-go/holdfast/internal/figure"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/study"
)

// Text writes the run's tables and advice for a terminal, or returns
// [figure.ErrNoRound] and writes nothing. Of a study no line is wider than 100
// columns, of a sweep of policies none wider than 120.
func Text(w io.Writer, run result.Run) error {
	if len(run.FileSystems()) > 0 {
		return severalText(w, run)
	}
	s, err := newSheet(run)
	if err != nil {
		return err
	}
	var b strings.Builder
	if of, ok := s.studied(); ok {
		of.text(&b)
		_, err = io.WriteString(w, b.String())
		return err
	}
	s.textHead(&b)
	s.textLosses(&b)
	s.textGroups(&b)
	s.textNotes(&b)
	_, err = io.WriteString(w, b.String())
	return err
}

func (s sheet) textGroups(b *strings.Builder) {
	for _, g := range s.Groups {
		groupText(b, g)
		if g.Steady {
			steadyText(b, g)
		}
	}
}

func (s sheet) textHead(b *strings.Builder) {
	h := s.Run.Header
	b.WriteString(wrap(fmt.Sprintf("%s: %s?", h.Study, h.Question), s.width(), indent))
	if facts := s.machine(); facts != "" {
		b.WriteString(wrap(facts, s.width(), indent))
	}
	fmt.Fprintf(b, "%s, seed %d, in %s\n", plural(s.Rounds, "round"), h.Seed, h.Dir)
	if mark := s.Run.Mark(); mark != "" {
		fmt.Fprintf(b, "not complete: %s\n", mark)
	}
}

// newTable returns a table with nothing but spaces between its columns.
func newTable(columns ...table.ColumnConfig) table.Writer {
	t := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	style.Format.Header = text.FormatDefault
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	t.SetColumnConfigs(columns)
	return t
}

func (s sheet) textLosses(b *strings.Builder) {
	t := newTable()
	t.AppendHeader(table.Row{"policy", "lost at worst when the process dies", "when the machine dies (power cut)"})
	for _, p := range s.Policies() {
		loss := p.Loss()
		t.AppendRow(table.Row{p, loss.Process, loss.Power})
	}
	fmt.Fprintf(b, "\n%s\n", t.Render())
}

// Columns of the table of a group. Those of a trial and of a record are told
// apart in the notes.
var groupHeader = table.Row{"policy", "records/s", "95 %", "cost", "", "MiB/s", "user", "system", "calls", "own", "p50", "p99"}

func groupText(b *strings.Builder, g figure.Group) {
	t := newTable(rightAligned(len(groupHeader), 0, 4)...)
	style := *t.Style()
	style.Box.PaddingRight = " "
	t.SetStyle(style)
	t.AppendHeader(groupHeader)
	for _, r := range g.Rows {
		t.AppendRow(rowCells(r))
	}
	fmt.Fprintf(b, "\n%s\n%s\n", title(g.Load), t.Render())
}

func rowCells(r figure.Row) table.Row {
	return table.Row{
		r.Cell.Policy, count(r.Rate.Median), span(r.Rate.Low, r.Rate.High), advise.Times(r.Cost.Comparison), word(r),
		mebibytes(r.Throughput), nanoseconds(float64(r.PerRecord.User)), nanoseconds(float64(r.PerRecord.System)),
		calls(r.Calls.Observed), calls(r.Calls.Predicted), percentile(r.Latency.P50), percentile(r.Latency.P99),
	}
}

func (s sheet) textNotes(b *strings.Builder) {
	b.WriteString("\n")
	for _, n := range append(s.notes(), s.someDoubts()...) {
		b.WriteString(wrap(n, sweepWidth, indent))
	}
	if s.advised {
		b.WriteString("\n" + wrap(s.adviceLine(), sweepWidth, indent))
	}
}

// adviceLine is the advice with a caution where nothing can be proven.
func (s sheet) adviceLine() string {
	if s.cautious() {
		return fmt.Sprintf("advice (a guess from %s): %s", plural(s.Rounds, "round"), s.advice.Sentence)
	}
	return "advice: " + s.advice.Sentence
}

// How wide lines are at most: those of studies, their tables and pictures; and prose
// beside the tables of a sweep, which are wider.
const (
	lineWidth  = 100
	sweepWidth = 118
	indent     = "  "
)

// width is how wide the lines of the run may be.
func (s sheet) width() int {
	if of, ok := study.Find(s.Run.Header.Study); ok && of.Show != nil {
		return lineWidth
	}
	return sweepWidth
}

// Fold breaks a line at spaces, so that it is at most as wide as the lines of studies,
// and ends it.
func Fold(line string) string { return wrap(line, lineWidth, indent) }

// wrap breaks a line at spaces, so that it is at most width wide. A number stays with its
// percent sign.
func wrap(line string, width int, indent string) string {
	const space = "\u00a0"
	var b strings.Builder
	column := 0
	for i, word := range strings.Split(strings.ReplaceAll(line, " %", space+"%"), " ") {
		length := len([]rune(word))
		switch {
		case i > 0 && column+1+length > width:
			b.WriteString("\n" + indent)
			column = len(indent)
		case i > 0:
			b.WriteString(" ")
			column++
		}
		b.WriteString(strings.ReplaceAll(word, space, " "))
		column += length
	}
	return b.String() + "\n"
}
