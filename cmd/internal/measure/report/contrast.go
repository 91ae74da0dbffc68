package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/advise"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// Contrast writes two runs side by side: as a table for a terminal of 60 to 100 columns, or in one
// of [Formats].
func Contrast(w io.Writer, c figure.Contrast, format Format, columns int) error {
	switch format {
	case "":
		_, err := io.WriteString(w, contrastText(c, lineColumns(columns)))
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

// contrastCSV writes a tidy table; an absent figure is an empty cell.
func contrastCSV(w io.Writer, c figure.Contrast) error {
	out := csv.NewWriter(w)
	rows := [][]string{contrastHead}
	for _, change := range c.Cells {
		cell := change.Cell
		rows = append(rows, append([]string{
			cell.Name, cell.Policy.String(), fmt.Sprint(cell.RecordBytes), fmt.Sprint(cell.Writers),
			number(change.A.Median), number(change.B.Median),
		}, comparisonColumns(change.Cost, change.Regressed)...))
	}
	rows = append(rows, append([]string{"overall", "", "", "", "", ""}, comparisonColumns(c.Overall, c.Regressed())...))
	if c.InMemory.Ratio > 0 {
		rows = append(rows, append([]string{"in memory", "", "", "", "", ""}, comparisonColumns(c.InMemory, c.Regressed())...))
	}
	// WriteAll flushes.
	return out.WriteAll(rows)
}

// A contrastDocument is the JSON document of two runs side by side.
type contrastDocument struct {
	Kind      string `json:"kind"` // comparison
	Version   int    `json:"comparison_version"`
	Regressed bool   `json:"regressed"` // a cell, or all together
	figure.Contrast
}

// contrastVersion is the version of the document's form.
// Since version 2 costs are net, and paced cells are included. Since version 3 cells with controls are compared
// relative to them.
const contrastVersion = 3

func contrastText(c figure.Contrast, width int) string {
	var b strings.Builder
	b.WriteString(wrap("A: "+sideText(c.A), width, indent) + wrap("B: "+sideText(c.B), width, indent))
	if len(c.Machines) > 0 {
		facts := machinesTable(c, plainText)
		shown := filled(newTable(), facts).Render() + "\n"
		if widest(shown) > width {
			shown = listed(facts, width)
		}
		b.WriteString("\nthe machines differ\n" + shown)
	}
	for _, load := range loads(c) {
		b.WriteString("\n" + wrap(title(load)+": "+costName(load), width, indent))
		b.WriteString(strings.Join(fitted(changesTable(c, load, plainText), width), "\n\n") + "\n")
	}
	fmt.Fprintf(&b, "\n")
	for _, n := range contrastNotes(c) {
		b.WriteString(wrap(n, width, indent))
	}
	fmt.Fprintf(&b, "\n%s", wrap(conclusion(c), width, indent))
	return b.String()
}

func contrastMarkdown(c figure.Contrast) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### holdfast: B against A\n\n- A: %s\n- B: %s\n\n**%s**\n", markdownFact(sideText(c.A)), markdownFact(sideText(c.B)), conclusion(c))
	if len(c.Machines) > 0 {
		fmt.Fprintf(&b, "\n#### the machines differ\n\n%s\n", filled(newTable(), machinesTable(c, markdownCode)).RenderMarkdown())
	}
	for _, load := range loads(c) {
		fmt.Fprintf(&b, "\n#### %s: %s\n\n%s\n", markdownFact(title(load)), costName(load), tableText(changesTable(c, load, markdownCode)).RenderMarkdown())
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
	if l.Open() {
		return "mean time of a Write"
	}
	return "time a record"
}

func plainText(name string) string { return name }

// machinesTable has the facts that differ, each as quote writes it.
func machinesTable(c figure.Contrast, quote func(string) string) study.Table {
	t := study.Table{Head: []string{"", "A", "B"}}
	for _, d := range c.Machines {
		t.Rows = append(t.Rows, []string{d.Name, quote(d.A), quote(d.B)})
	}
	return t
}

func changesTable(c figure.Contrast, load figure.Load, quote func(string) string) study.Table {
	t := study.Table{Head: []string{"policy", "A", "B", "B/A", "interval", ""}}
	for _, change := range c.Cells {
		if change.Load != load {
			continue
		}
		name := change.Cell.Policy.String()
		if change.Cell.Group != "" { // an arm of a study
			t.Head[0], name = "arm", change.Cell.Name
		}
		word := contrastWord(c, change)
		if change.Cost.Verdict == stat.NotProven && c.Disturbed == "" && word == change.Cost.Word() {
			seen := max(change.Cost.Ratio, 1/change.Cost.Ratio) - 1
			word += atMost(change.Cost)
			if seen > c.Threshold && float64(change.Moved) >= seen {
				word = fmt.Sprintf("%s: the machine moved by %.0f %%", stat.NotProven, math.Ceil(100*float64(change.Moved)))
			}
		}
		if change.Regressed {
			word += ", a regression"
		}
		if change.Records != 0 {
			word += fmt.Sprintf(" (A wrote %s records a trial, B %s)", count(float64(change.Records)), count(float64(change.Cell.Records)))
		}
		t.Rows = append(t.Rows, []string{
			quote(name), nanoseconds(change.A.Median), nanoseconds(change.B.Median),
			advise.Times(change.Cost.Comparison), ratios(change.Cost), word,
		})
	}
	return t
}

// atMost names the least change that would have been seen. It is empty if that is more than a factor of
// 2.
func atMost(c figure.Comparison) string {
	const most = 2.0
	if !c.HasInterval() || !(c.Unseen() <= most) {
		return ""
	}
	return fmt.Sprintf(": %.0f %% at most", math.Ceil(100*c.Unseen()))
}

// ratios writes the interval of a ratio, if it is narrow enough to inform.
func ratios(c figure.Comparison) string {
	if !c.Informs() {
		return none
	}
	return fmt.Sprintf("%.2f…%.2fx", c.Low, c.High)
}

// contrastNotes explain how the runs were compared, and list the doubts about it.
func contrastNotes(c figure.Contrast) []string {
	method := "paired round by round (Hodges–Lehmann, signed ranks): seeds, plans and machines agree, so rounds of the same number ran the cells in the same order"
	if c.Unpaired != "" {
		method = "not paired, because " + c.Unpaired + ": each round of B is compared with each round of A (Hodges–Lehmann, Mann–Whitney)"
	}
	between := "nothing is scaled. After each turn of a cell the same records are written by bufio.Writer, by write(2), or by write(2) and fdatasync(2), and B/A compares the ratios to these"
	if slices.ContainsFunc(c.Cells, func(change figure.Change) bool { return !change.Controlled }) {
		between = "nothing is scaled. A cell with a control is compared by its ratio to the same records written by bufio.Writer, by write(2), or by write(2) and fdatasync(2); a cell without one by its times, with an interval that allows for changes of the machine"
		if moves := controlMoves(c); moves != "" {
			between += " (" + moves + ")"
		}
	}
	between += ". To see smaller changes, run two builds alternately: holdfast bench --against PROGRAM"
	together := "with 95 % confidence all verdicts here are right, the overall one too"
	switch c.Between {
	case figure.Alternately:
		between = "A and B ran each cell in turn, A B, B A, each pair in two new processes: what the machine did meanwhile is in both. " + layoutText(c)
	case figure.OneRun:
		between = "A and B are the same run, so nothing can have changed"
	}
	noise := "noise: not measured in both runs"
	if c.Floor.Known() {
		noise = fmt.Sprintf("noise: at most %.1f %%, the larger of the two runs (A %.1f %%, B %.1f %%), between one cell and its repetition in a run",
			c.Floor*100, c.A.Floor*100, c.B.Floor*100)
	}
	if c.Between == figure.Alternately {
		noise = "noise: it is in the intervals, because the pairs show it"
	}
	if slices.ContainsFunc(c.Cells, func(change figure.Change) bool { return change.Net }) {
		noise += ". What measuring takes is subtracted in both"
	}
	notes := []string{method, between, noise, together + "; all cells count the same in the overall ratio, the geometric mean"}
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

// conclusion returns the result in one line.
func conclusion(c figure.Contrast) string {
	if c.Disturbed != "" {
		return "no verdict: " + c.Disturbed + "; run both again on a quiet machine"
	}
	regressed := 0
	for _, change := range c.Cells {
		if change.Regressed {
			regressed++
		}
	}
	overall := sum("overall B takes %s the time of A", c.Overall)
	if c.InMemory.Ratio > 0 {
		overall += sum(", and %s in memory", c.InMemory)
	}
	switch {
	case !c.Regressed():
		return fmt.Sprintf("%s; no cell is shown to be slower by more than %.3g %%", overall, c.Threshold*100)
	case regressed == 0:
		return fmt.Sprintf("%s, by more than %.3g %%, though no cell alone", overall, c.Threshold*100)
	}
	return fmt.Sprintf("%s; slower by more than %.3g %%: %d of %s", overall, c.Threshold*100, regressed, plural(len(c.Cells), "cell"))
}

// sum writes the ratio of many cells together.
func sum(format string, of figure.Comparison) string {
	text := fmt.Sprintf(format, advise.Times(of.Comparison))
	if of.Informs() {
		text += " (" + ratios(of) + ")"
	}
	text += ": " + of.Word()
	if of.Verdict == stat.NotProven {
		text += atMost(of)
	}
	return text
}

// contrastHead has the columns of a comparison, which has a row for each cell and one for
// all cells together.
var contrastHead = []string{
	"cell", "policy", "record_bytes", "writers", "a_ns_per_record", "b_ns_per_record",
	"ratio", "low", "high", "confidence", "verdict", "regressed",
}

func comparisonColumns(c figure.Comparison, regressed bool) []string {
	return []string{number(c.Ratio), number(c.Low), number(c.High), number(c.Confidence), string(c.Verdict), fmt.Sprint(regressed)}
}

// number writes all digits, or nothing for an absent number.
func number(x float64) string {
	if !figure.Number(x).Known() {
		return ""
	}
	return fmt.Sprint(x)
}

// contrastBenchmark writes both runs' benchmark lines. The key run distinguishes
// them: benchstat -col run.
func contrastBenchmark(w io.Writer, c figure.Contrast) error {
	for _, side := range []struct {
		name string
		figure.Side
	}{{"A", c.A}, {"B", c.B}} {
		var b strings.Builder
		if err := writeBenchmark(&b, side.Results()); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "run: %s\n%s", side.name, b.String()); err != nil {
			return err
		}
	}
	return nil
}
