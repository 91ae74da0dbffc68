package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/holdfast-go/holdfast/internal/advise"
	"github.com/holdfast-go/holdfast/internal/figure"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/study"
)

// Contrast writes two runs side by side: as a table for the terminal, or in one of
// [Formats].
func Contrast(w io.Writer, c figure.Contrast, format Format) error {
	switch format {
	case "":
		_, err := io.WriteString(w, contrastText(c))
		return err
	case Markdown:
		_, err := io.WriteString(w, contrastMarkdown(c))
		return err
	case CSV:
		return contrastCSV(w, c)
	case Benchmark:
		return contrastBenchmark(w, c)
	case JSON:
		return encode(w, contrastDocument{"comparison", contrastVersion, c.Regressed(), c})
	}
	return fmt.Errorf("%q is not a format of a comparison", format)
}

// A contrastDocument is two runs side by side for programs.
type contrastDocument struct {
	Kind      string `json:"kind"` // comparison
	Version   int    `json:"comparison_version"`
	Regressed bool   `json:"regressed"` // a cell, or all together
	figure.Contrast
}

// contrastVersion is the version of the document's form.
const contrastVersion = 1

func contrastText(c figure.Contrast) string {
	var b strings.Builder
	b.WriteString(wrap("A: "+sideText(c.A), lineWidth, indent) + wrap("B: "+sideText(c.B), lineWidth, indent))
	if len(c.Machines) > 0 {
		fmt.Fprintf(&b, "\nthe machines differ\n%s\n", machinesTable(c, "").Render())
	}
	for _, load := range loads(c) {
		fmt.Fprintf(&b, "\n%s: %s\n%s\n", title(load), costName(load), strings.Join(fitted(changesTable(c, load, "")), "\n\n"))
	}
	fmt.Fprintf(&b, "\n")
	for _, n := range contrastNotes(c) {
		b.WriteString(wrap(n, lineWidth, indent))
	}
	fmt.Fprintf(&b, "\n%s", wrap(conclusion(c), lineWidth, indent))
	return b.String()
}

func contrastMarkdown(c figure.Contrast) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### holdfast: B against A\n\n- A: %s\n- B: %s\n\n**%s**\n", sideText(c.A), sideText(c.B), conclusion(c))
	if len(c.Machines) > 0 {
		fmt.Fprintf(&b, "\n#### the machines differ\n\n%s\n", machinesTable(c, "`").RenderMarkdown())
	}
	for _, load := range loads(c) {
		fmt.Fprintf(&b, "\n#### %s: %s\n\n%s\n", title(load), costName(load), tableText(changesTable(c, load, "`")).RenderMarkdown())
	}
	b.WriteString("\n")
	for _, n := range contrastNotes(c) {
		fmt.Fprintf(&b, "- %s\n", markdownText(n))
	}
	return b.String()
}

func sideText(s figure.Side) string {
	text := fmt.Sprintf("%s, %s, seed %d, begun %s, %s", s.Name, plural(s.Rounds, "round"), s.Seed, s.StartedAt.Format(time.RFC3339), s.Program)
	if s.Missing != "" {
		text += " (not complete: " + s.Missing + ")"
	}
	return text
}

// loads returns the loads of the cells, each once, in their order.
func loads(c figure.Contrast) []figure.Load {
	var list []figure.Load
	for _, change := range c.Cells {
		if !slices.Contains(list, change.Load) {
			list = append(list, change.Load)
		}
	}
	return list
}

func costName(l figure.Load) string {
	if l.ByCPU() {
		return "CPU time a record"
	}
	return "time a record"
}

// machinesTable has the facts that differ; quote stands around what is quoted.
func machinesTable(c figure.Contrast, quote string) table.Writer {
	t := newTable()
	t.AppendHeader(table.Row{"", "A", "B"})
	for _, d := range c.Machines {
		t.AppendRow(table.Row{d.Name, quote + d.A + quote, quote + d.B + quote})
	}
	return t
}

func changesTable(c figure.Contrast, load figure.Load, quote string) study.Table {
	t := study.Table{Head: []string{cellHead(c, load), "A", "B", "B/A", "95 %", ""}}
	for _, change := range c.Cells {
		if change.Load == load {
			t.Rows = append(t.Rows, []string{
				quote + changedName(change.Cell) + quote, nanoseconds(change.A.Median), nanoseconds(change.B.Median),
				advise.Times(change.Cost.Comparison), ratios(change.Cost), changeWord(change),
			})
		}
	}
	return t
}

// changedName tells a cell from the others of its load: by its policy, or as an arm of
// a study by its name.
func changedName(c result.Cell) string {
	if c.Group != "" {
		return c.Name
	}
	return c.Policy.String()
}

func cellHead(c figure.Contrast, load figure.Load) string {
	for _, change := range c.Cells {
		if change.Load == load && change.Cell.Group != "" {
			return "arm"
		}
	}
	return "policy"
}

// ratios is the interval of a ratio.
func ratios(c figure.Comparison) string {
	if !c.HasInterval() {
		return none
	}
	return fmt.Sprintf("%.2f…%.2fx", c.Low, c.High)
}

func changeWord(c figure.Change) string {
	word := string(c.Cost.Verdict)
	if c.Regressed {
		word += ", a regression"
	}
	if c.Records != 0 {
		word += fmt.Sprintf(" (A wrote %s records a trial, B %s)", count(float64(c.Records)), count(float64(c.Cell.Records)))
	}
	return word
}

// contrastNotes say how it was compared, and what is doubtful about that.
func contrastNotes(c figure.Contrast) []string {
	notes := []string{contrastMethod(c), contrastNoise(c), "the cells' verdicts hold together with 95 %; all cells count the same in the overall ratio, the geometric mean"}
	for _, only := range []struct {
		side  string
		names []string
	}{{"A", c.OnlyA}, {"B", c.OnlyB}} {
		if len(only.names) > 0 {
			notes = append(notes, "only in "+only.side+": "+strings.Join(only.names, "; "))
		}
	}
	return notes
}

func contrastMethod(c figure.Contrast) string {
	if c.Unpaired != "" {
		return "not paired, because " + c.Unpaired + ": each round of B is compared with each of A (Hodges–Lehmann, Mann–Whitney)"
	}
	return "paired round by round (Hodges–Lehmann, signed ranks): seeds, plans and machines agree, so rounds of the same number ran the cells in the same order. " +
		"That takes out what one cell does to the next, not what the machine did between the two runs"
}

func contrastNoise(c figure.Contrast) string {
	if !c.Floor.Known() {
		return "noise: not measured in both runs, so no difference is proven; measure both with a holdfast that repeats a cell"
	}
	return fmt.Sprintf("noise: %.1f %%, the larger of the two runs (A %.1f %%, B %.1f %%), between the same thing under two names within a run. "+
		"What changed between the runs, such as heat, a fuller disk or other programs, is not in it: to see that, repeat A and compare the two",
		c.Floor*100, c.A.Floor*100, c.B.Floor*100)
}

// conclusion is the result in one line.
func conclusion(c figure.Contrast) string {
	regressed := 0
	for _, change := range c.Cells {
		if change.Regressed {
			regressed++
		}
	}
	overall := fmt.Sprintf("overall B takes %s the time of A", advise.Times(c.Overall.Comparison))
	if c.Overall.HasInterval() {
		overall += " (" + ratios(c.Overall) + ")"
	}
	overall += ": " + string(c.Overall.Verdict)
	switch {
	case !c.Regressed():
		return fmt.Sprintf("%s; no cell is shown to be slower by more than %.3g %%", overall, c.Threshold*100)
	case regressed == 0:
		return fmt.Sprintf("%s, by more than %.3g %%, though no cell alone", overall, c.Threshold*100)
	}
	return fmt.Sprintf("%s; slower by more than %.3g %%: %d of %s", overall, c.Threshold*100, regressed, plural(len(c.Cells), "cell"))
}
