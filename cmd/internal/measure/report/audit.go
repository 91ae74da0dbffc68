package report

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/page"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// An Audit is the verdicts on all claims, with the machine and the directory that they were measured
// on.
type Audit struct {
	Kind    string         `json:"kind"` // audit
	Version int            `json:"audit_version"`
	Program string         `json:"program"`
	Dir     string         `json:"dir"`
	Machine []machine.Fact `json:"machine"`
	Claims  []study.Judged `json:"claims"`
}

// AuditVersion is the version of the JSON document's form. It increases when a reader of older
// documents would misread a new one.
const AuditVersion = 1

// ErrNoBenchmark reports that an audit has no lines for benchstat.
var ErrNoBenchmark = errors.New("an audit has no benchmark lines; run holdfast report FILE --export bench on its results")

// WriteAudit writes the verdicts in a format, or for a terminal of 60 to 120 columns. A terminal gets the counts and
// the claims that do not hold, in about 30 lines, unless whole is set. For [Benchmark] it returns ErrNoBenchmark.
func WriteAudit(w io.Writer, a Audit, format Format, columns int, whole bool) error {
	switch format {
	case JSON:
		return encode(w, a)
	case CSV:
		return a.csv(w)
	case Markdown:
		return a.markdown(w)
	case Benchmark:
		return ErrNoBenchmark
	}
	if columns = max(60, min(120, columns)); !whole {
		return a.brief(w, columns)
	}
	return a.text(w, columns)
}

// head names the directory and the machine.
func (a Audit) head(width int) string {
	text := wrap("audit: do the published claims hold here, in "+strings.ReplaceAll(a.Dir, "\n", `\n`)+"?", width, indent)
	if facts := machineLine(a.Machine); facts != "" {
		text += wrap(facts, width, indent)
	}
	return text
}

// brief counts the verdicts, and has a line for each claim that does not hold or is open, as far as there is room.
func (a Audit) brief(w io.Writer, columns int) error {
	const most = 18 // rows
	width := lineColumns(columns)
	t := study.Table{Head: []string{"claim", "published", "measured here", "verdict"}}
	notes := a.notes()
	var b strings.Builder
	b.WriteString(a.head(width) + "\n" + wrap(notes[1], width, indent))
	left := 0
	for _, v := range []study.Verdict{study.NotHere, study.NeverSo, study.AtEdge, study.NotChecked} {
		for _, c := range a.Claims {
			switch {
			case c.Verdict != v:
			case len(t.Rows) == most:
				left++
			default:
				published, _, _ := strings.Cut(orNone(c.Published), "\n")
				measured, _, _ := strings.Cut(orNone(c.Measured), "\n")
				t.Rows = append(t.Rows, []string{c.Name + judgedOn(c), shortened(published, 22), shortened(measured, 26), string(v)})
			}
		}
	}
	if len(t.Rows) > 0 {
		b.WriteString("\n" + strings.Join(fitted(t, width), "\n\n") + "\n")
	}
	if left > 0 {
		b.WriteString(wrap("… and "+plural(left, "more claim"), width, indent))
	}
	b.WriteString("\n" + wrap("--all prints the reasons and explains the words; --claim NAME tests only one claim; --page audit.html makes a page with a filter by verdict", width, indent))
	_, err := io.WriteString(w, b.String())
	return err
}

// shortened cuts a text at a space so that it has at most `most` characters.
func shortened(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	cut := string(runes[:most-1])
	if at := strings.LastIndexByte(cut, ' '); at > most/2 {
		cut = cut[:at]
	}
	return cut + "…"
}

func (a Audit) text(w io.Writer, columns int) error {
	var configs []table.ColumnConfig
	for i, percent := range []int{36, 17, 20, 27} { // percent of the columns, less six for the gaps between them
		configs = append(configs, table.ColumnConfig{Number: i + 1, WidthMax: (columns - 6) * percent / 100, WidthMaxEnforcer: text.WrapSoft})
	}
	t := study.Table{Head: []string{"claim", "published", "measured here", "verdict"}}
	for i, c := range a.Claims {
		if i == 0 || a.Claims[i-1].Study != c.Study {
			t.Rows = append(t.Rows, []string{"\n" + c.Study})
		}
		t.Rows = append(t.Rows, []string{
			fmt.Sprintf("%s: %s (%s)", c.Name, c.Says, c.Source) + judgedOn(c), orNone(c.Published), orNone(c.Measured), fmt.Sprintf("%s: %s", c.Verdict, c.Why),
		})
	}
	var b strings.Builder
	width := lineColumns(columns)
	b.WriteString(a.head(width))
	if columns < lineWidth {
		b.WriteString(listed(t, width))
	} else {
		fmt.Fprintf(&b, "\n%s\n", filled(newTable(configs...), t).Render())
	}
	for _, line := range a.notes() {
		b.WriteString(wrap(line, width, indent))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// HTML writes one page that needs no other file. The reader filters its claims by verdict.
func (a Audit) HTML(w io.Writer) error {
	t := page.Table{Prose: true, Name: "claims", Filter: 5, Head: []string{"claim", "study", "says", "published", "measured here", "verdict", "why", "to settle it"}}
	for _, c := range a.Claims {
		t.Rows = append(t.Rows, page.Row{Cells: []string{
			c.Name, c.Study, fmt.Sprintf("%s (%s)", c.Says, c.Source) + judgedOn(c), orNone(c.Published), orNone(c.Measured), string(c.Verdict), c.Why, orNone(c.Command),
		}})
	}
	if !slices.ContainsFunc(a.Claims, func(c study.Judged) bool { return c.Command != "" }) { // no claim is open
		t.Head = t.Head[:len(t.Head)-1]
		for i, row := range t.Rows {
			t.Rows[i].Cells = row.Cells[:len(t.Head)]
		}
	}
	notes := a.notes()[1:]
	return page.Write(w, page.Page{
		Title: "holdfast: audit", Question: "do the published claims hold here, in " + a.Dir + "?", Answer: []string{notes[0] + "."},
		Sections: []page.Section{{Title: "The claims", Tables: []page.Table{t}}, {Title: howToRead, Notes: notes[1:2]}, {Title: "The machine", Tables: []page.Table{sheet{}.machineTable(a.Machine, "value")}}},
	})
}

// notes counts the verdicts, explains them, and names the way to settle open ones.
func (a Audit) notes() []string {
	count := map[study.Verdict]int{}
	for _, c := range a.Claims {
		count[c.Verdict]++
	}
	var parts []string
	for _, v := range study.Verdicts {
		parts = append(parts, fmt.Sprintf("%s: %d", v, count[v]))
	}
	notes := []string{
		"", fmt.Sprintf("%s; %s", plural(len(a.Claims), "claim"), strings.Join(parts, "; ")),
		"holds: the whole 95 % interval of the measured figure is within the claim; does not hold here: the whole interval is beyond it; was never so: " +
			"it is false on every machine; at the edge: the interval contains a bound of the claim, so the next run may decide either way. Each interval holds with 95 % by itself, so one of 20 claims may be judged wrongly.",
	}
	for _, c := range a.Claims {
		if c.Command != "" {
			notes = append(notes, fmt.Sprintf("to settle %s: %s", c.Name, c.Command))
		}
	}
	return notes
}

// judgedOn names the file system that a claim was judged on, if the audit covers several.
func judgedOn(c study.Judged) string {
	if c.FileSystem == "" {
		return ""
	}
	return ", on " + c.FileSystem
}

func orNone(text string) string {
	if text == "" {
		return none
	}
	return text
}

var auditHead = []string{"study", "claim", "source", "says", "published", "measured", "verdict", "why", "command", "file_system"}

func (a Audit) csv(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write(auditHead); err != nil {
		return err
	}
	for _, c := range a.Claims {
		row := []string{c.Study, c.Name, c.Source, c.Says, c.Published, c.Measured, string(c.Verdict), c.Why, c.Command, c.FileSystem}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func (a Audit) markdown(w io.Writer) error {
	t := newTable()
	t.AppendHeader(table.Row{"claim", "says", "published", "measured here", "verdict", "why"})
	for _, c := range a.Claims {
		t.AppendRow(table.Row{"`" + c.Name + "`", markdownText(fmt.Sprintf("%s (%s)", c.Says, c.Source) + judgedOn(c)), markdownText(c.Published), markdownText(c.Measured), "**" + string(c.Verdict) + "**", markdownText(c.Why)})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "### holdfast: audit\n\n%s\n\n%s\n", markdownFact(machineLine(a.Machine)), t.RenderMarkdown())
	for _, line := range a.notes() {
		if line == "" {
			b.WriteString("\n")
			continue
		}
		fmt.Fprintf(&b, "- %s\n", markdownText(line))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
