package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/holdfast-go/holdfast/internal/lab/result"
	"github.com/holdfast-go/holdfast/internal/lab/study/all"
)

// Text writes the run's tables and advice for a terminal, or returns
// [figure.ErrNoRound] and writes nothing. The lines of a study are at most 100 columns
// wide, those of a sweep of policies at most 120.
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
	b.WriteString("\n")
	for _, n := range append(s.notes(), s.someDoubts()...) {
		b.WriteString(wrap(n, sweepWidth, indent))
	}
	if s.advised {
		b.WriteString("\n" + wrap(s.adviceLine(), sweepWidth, indent))
	}
	_, err = io.WriteString(w, b.String())
	return err
}

func (s sheet) textGroups(b *strings.Builder) {
	for _, g := range s.Groups {
		t := newTable(alignment(groupColumns, inText)...)
		style := *t.Style()
		style.Box.PaddingRight = " "
		t.SetStyle(style)
		t.AppendHeader(cells(heads(groupColumns, inText)))
		for _, r := range g.Rows {
			t.AppendRow(cells(texts(groupColumns, inText, r)))
		}
		fmt.Fprintf(b, "\n%s\n%s\n", title(g.Load), t.Render())
		if !g.Steady {
			continue
		}
		t = newTable(alignment(steadyColumns, inText)...)
		t.AppendHeader(cells(heads(steadyColumns, inText)))
		for _, row := range steadyRows(g, inText) {
			t.AppendRow(cells(row))
		}
		fmt.Fprintf(b, "\n%s\n", t.Render())
	}
}

func (s sheet) textHead(b *strings.Builder) {
	h := s.Run.Header
	b.WriteString(wrap(fmt.Sprintf("%s: %s?", h.Study, h.Question), s.width(), indent))
	if facts := s.machine(); facts != "" {
		b.WriteString(wrap(facts, s.width(), indent))
	}
	fmt.Fprintf(b, "%s, seed %d, in %s\n", plural(s.Rounds, "round"), h.Seed, strings.ReplaceAll(h.Dir, "\n", `\n`))
	if mark := s.Run.Mark(); mark != "" {
		fmt.Fprintf(b, "not complete: %s\n", mark)
	}
}

// newTable returns a table with only spaces between its columns.
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

// adviceLine returns the advice, with a caution where the rounds are too few for a proof.
func (s sheet) adviceLine() string {
	if s.Rounds < s.VerdictRounds() {
		return fmt.Sprintf("advice (a guess from %s): %s", plural(s.Rounds, "round"), s.advice.Sentence)
	}
	return "advice: " + s.advice.Sentence
}

// The widest lines: lineWidth is for studies, their tables and pictures, and sweepWidth for
// prose beside the tables of a sweep, which are wider.
const (
	lineWidth  = 100
	sweepWidth = 118
	indent     = "  "
)

// width returns how wide the lines of the run may be.
func (s sheet) width() int {
	if of, ok := all.Find(s.Run.Header.Study); ok && of.Show != nil {
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
