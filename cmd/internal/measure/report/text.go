package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/advise"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// Text writes the run's tables and advice for a terminal of this width, or returns
// [figure.ErrNoRound] and writes nothing. The tables of a sweep have more columns on a wide
// terminal, and fewer on a narrow one, down to 60. The lines of a study are at most 100 columns
// wide, and its tables are split on a narrow terminal. Unless whole is set, Text writes only the answer, in
// about 30 lines.
func Text(w io.Writer, studies study.List, run result.Run, width int, whole bool) error {
	width = max(60, min(160, width)) // longer lines are hard to follow
	if len(run.FileSystems()) > 0 {
		return severalText(w, studies, run, min(lineWidth, width))
	}
	s, err := newSheet(studies, run)
	if err != nil {
		return err
	}
	s.columns = width
	var b strings.Builder
	if of, ok := s.studied(); ok {
		of.columns = min(lineWidth, width)
		if whole {
			of.text(&b)
		} else {
			of.brief(&b)
		}
		_, err = io.WriteString(w, b.String())
		return err
	}
	if steady := s.anyGroup(func(l figure.Load) bool { return l.Steady }); !whole && !steady {
		s.brief(&b)
		_, err = io.WriteString(w, b.String())
		return err
	}
	s.textHead(&b)
	s.textLosses(&b)
	s.textGroups(&b)
	b.WriteString("\n")
	for _, n := range append(s.notes(), s.someDoubts()...) {
		b.WriteString(wrap(n, width, indent))
	}
	if s.advised {
		b.WriteString("\n" + s.adviceText())
	} else if why := advise.Missing(s.Groups); why != "" {
		b.WriteString("\n" + wrap(why, width, indent))
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// groupText renders a table with no line wider than width, if it can. It leaves columns out; if that is
// not enough, it breaks the names of policies behind their commas.
func groupText(columns []column, rows []figure.Row, width int) string {
	for breaks := false; ; {
		t := newTable(alignment(columns)...)
		style := *t.Style()
		style.Box.PaddingRight = " "
		t.SetStyle(style)
		t.AppendHeader(cells(heads(columns, inText)))
		for _, r := range rows {
			row := texts(columns, inText, r)
			if at := strings.LastIndexByte(row[0], ','); breaks && at > 0 {
				row[0] = row[0][:at+1] + "\n  " + row[0][at+1:]
			}
			t.AppendRow(cells(row))
		}
		shown := t.Render()
		if widest(shown) <= width || breaks {
			return shown
		}
		last := slices.MaxFunc(columns, func(a, b column) int { return a.rank - b.rank }).rank
		if breaks = last == 0; !breaks {
			columns = slices.DeleteFunc(slices.Clone(columns), func(c column) bool { return c.rank == last })
		}
	}
}

func (s sheet) textGroups(b *strings.Builder) {
	for _, g := range s.Groups {
		fmt.Fprintf(b, "\n%s%s\n", wrap(title(g.Load), s.columns, indent), groupText(inText.of(groupColumns, g.Load), g.Rows, s.columns))
		if !g.Steady {
			continue
		}
		fmt.Fprintf(b, "\n%s\n", groupText(inText.of(steadyColumns(), g.Load), steadied(g), s.columns))
	}
}

func (s sheet) textHead(b *strings.Builder) {
	h := s.Run.Header
	b.WriteString(wrap(fmt.Sprintf("%s: %s?", h.Study, h.Question), s.width(), indent))
	if facts := s.machine(); facts != "" {
		b.WriteString(wrap(facts, s.width(), indent))
	}
	b.WriteString(wrap(fmt.Sprintf("%s, seed %d, in %s", s.roundsText(), h.Seed, strings.ReplaceAll(h.Dir, "\n", `\n`)), s.width(), indent))
	if mark := s.Run.Mark(); mark != "" {
		b.WriteString(wrap("not complete: "+mark, s.width(), indent))
	}
}

// roundsText is the number of rounds, or the fewest and the most that a cell had.
func (s sheet) roundsText() string {
	if fewest := s.FewestRounds(); fewest < s.Rounds {
		return fmt.Sprintf("%d to %s", fewest, plural(s.Rounds, "round"))
	}
	return plural(s.Rounds, "round")
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
	t := study.Table{Head: []string{"policy", "lost when the process dies", "at a power cut"}}
	for _, p := range s.Policies() {
		loss := p.Loss()
		t.Rows = append(t.Rows, []string{p.String(), loss.Process.String(), loss.Power.String()})
	}
	b.WriteString("\n")
	if _, _, ok := unfolded(t, s.columns); !ok && s.columns < lineWidth {
		b.WriteString(listed(t, s.columns))
		return
	}
	for _, part := range fitted(t, s.columns) {
		b.WriteString(part + "\n")
	}
}

// adviceLine returns the advice as a sentence.
func (s sheet) adviceLine() string { return s.advice.Sentence() + s.guess() }

// guess is a caution if the rounds are too few for a proof.
func (s sheet) guess() string {
	if s.Rounds < s.VerdictRounds() {
		return fmt.Sprintf(" (a guess from %s)", plural(s.Rounds, "round"))
	}
	return ""
}

// adviceText returns the advice in lines: four at most, if it can, and then the rule by which it was chosen.
func (s sheet) adviceText() (lines string) {
	const under, most = "     ", 4
	for _, a := range []advise.Advice{s.advice, s.advice.Brief()} {
		policy, rest := a.Lines()
		lines = wrap("use  "+policy+s.guess(), s.columns, under) + under + strings.TrimLeft(wrap(under+rest, s.columns, under), " ")
		if strings.Count(lines, "\n") <= most {
			break
		}
	}
	if s.advice.Rule != "" {
		lines += under + strings.TrimLeft(wrap(under+s.advice.Rule, s.columns, under), " ")
	}
	return lines
}

const (
	lineWidth = 100 // the widest lines of studies, their tables and pictures; a terminal may be narrower
	indent    = "  "
)

// width returns the largest width of the run's lines.
func (s sheet) width() int { return cmp.Or(s.columns, lineWidth) }

// ASCII replaces the characters of our own texts that are not ASCII, each by one that takes as many
// columns. It leaves names as they are.
func ASCII(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < 0x80:
			return r
		case r == 'µ':
			return 'u'
		case r == '±':
			return '~'
		case r == '×':
			return 'x'
		case r == '→':
			return '>'
		case r == '≤':
			return '<'
		case r == '’' || r == '‘':
			return '\''
		case r == '“' || r == '”':
			return '"'
		case r == '\u00a0':
			return ' '
		case r == '–' || r == '—' || r == '…' || r >= 0x2500 && r <= 0x2501:
			return '-'
		case r >= 0x2502 && r <= 0x257f:
			return '|'
		case r >= 0x2580 && r <= 0x25ff:
			return '*'
		}
		return r // part of a name that the user gave
	}, text)
}

// Fold breaks a line at spaces and ends it with a newline. The result is at most as wide as the
// terminal and as the lines of studies.
func Fold(line string, columns int) string { return wrap(line, lineColumns(columns), indent) }

// lineColumns is the largest width of a line on a terminal of the given columns.
func lineColumns(columns int) int { return max(60, min(lineWidth, columns)) }

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
