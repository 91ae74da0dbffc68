package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/advise"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// mostChanges bounds the cells that the short form shows: cells with a verdict first.
const mostChanges = 16

// ContrastBrief writes the result of a comparison for a terminal, in about 30 lines: the cells that got slower, the
// cells that got faster, the least change that could have been seen, and the reasons.
func ContrastBrief(w io.Writer, c figure.Contrast, columns int) error {
	width := lineColumns(columns)
	var b strings.Builder
	say := func(line string) { b.WriteString(wrap(line, width, indent)) }
	if c.Disturbed != "" {
		say(conclusion(c))
	} else {
		say("slower: " + named(c, stat.Slower))
		say("faster: " + named(c, stat.Faster))
		if text := could(c); text != "" {
			say(text)
		}
	}
	t, left := briefChanges(c)
	b.WriteString("\n" + strings.Join(fitted(t, width), "\n\n") + "\n")
	if left > 0 {
		say(fmt.Sprintf("and %s: --all", plural(left, "cell")))
	}
	b.WriteString("\n")
	for _, line := range briefNotes(c) {
		say(line)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// named lists the cells with a verdict and their ratios, the farthest first, and the means that have it.
func named(c figure.Contrast, word stat.Verdict) string {
	var list []figure.Change
	for _, change := range c.Cells {
		if change.Cost.Verdict == word {
			list = append(list, change)
		}
	}
	slices.SortStableFunc(list, func(a, b figure.Change) int {
		return cmp.Compare(math.Abs(math.Log(b.Cost.Ratio)), math.Abs(math.Log(a.Cost.Ratio)))
	})
	var texts []string
	for i, change := range list {
		const most = 4
		if i == most && len(list) > most+1 {
			texts = append(texts, fmt.Sprintf("%d more cells", len(list)-most))
			break
		}
		text := cellName(c, change) + " " + advise.Times(change.Cost.Comparison)
		if change.Regressed {
			text += " (a regression)"
		}
		texts = append(texts, text)
	}
	for _, of := range []struct {
		name string
		cost figure.Comparison
	}{{"all cells in memory together", c.InMemory}, {"all together", c.Overall}} {
		if of.cost.Verdict == word && len(list) < len(c.Cells) {
			texts = append(texts, of.name+" "+advise.Times(of.cost.Comparison))
		}
	}
	if len(texts) == 0 {
		return "nothing"
	}
	return strings.Join(texts, "; ")
}

// cellName names a cell by the properties in which the comparison's cells differ.
func cellName(c figure.Contrast, change figure.Change) string {
	cell := change.Cell
	if cell.Group != "" {
		return cell.Name
	}
	name := cell.Policy.String()
	differs := func(of func(figure.Change) any) bool {
		return slices.ContainsFunc(c.Cells, func(other figure.Change) bool { return of(other) != of(change) })
	}
	if differs(func(x figure.Change) any { return x.Cell.RecordBytes }) {
		name += ", " + holdfast.Size(cell.RecordBytes).String()
	}
	if differs(func(x figure.Change) any { return x.Cell.Writers }) {
		name += ", " + plural(cell.Writers, "writer")
	}
	if cell.Every > 0 {
		name += ", paced"
	}
	return name
}

// could names the least change that could have been seen.
func could(c figure.Contrast) string {
	if c.Between == figure.OneRun {
		return "A and B are the same run"
	}
	var cells []float64
	for _, change := range c.Cells {
		if change.Cost.Informs() {
			by := change.Cost.Width()
			if c.InLayout(change) {
				by = beyondLayout(c, by)
			}
			cells = append(cells, by)
		}
	}
	if len(cells) == 0 {
		return "only a gross change could have been seen: the rounds are too few, or differ too much"
	}
	text := fmt.Sprintf("could have seen: %s or more in half of the cells, %s in the most precise", change(stat.Quantile(cells, 0.5)), change(slices.Min(cells)))
	if c.InMemory.Informs() {
		text += fmt.Sprintf(", %s in all cells in memory together", change(beyondLayout(c, c.InMemory.Width())))
	}
	return text
}

// beyondLayout is the least change with a word, if the interval is known to ± by.
func beyondLayout(c figure.Contrast, by float64) float64 { return (1+by)*(1+float64(c.Layout)) - 1 }

// contrastWord is the word for a cell.
func contrastWord(c figure.Contrast, change figure.Change) string {
	if cost := change.Cost; c.InLayout(change) && cost.Verdict == stat.NotProven && cost.HasInterval() && (cost.Low > 1 || cost.High < 1) {
		return "layout, perhaps"
	}
	return change.Cost.Word()
}

// change writes a difference: 12 %, or 2.3x if it is 100 % or more.
func change(by float64) string {
	if by >= 1 {
		return fmt.Sprintf("%.1fx", math.Ceil(10*(1+by))/10)
	}
	return fmt.Sprintf("%.0f %%", math.Ceil(100*by))
}

// briefChanges has the cells with a verdict first, and returns the number of cells that it leaves out.
func briefChanges(c figure.Contrast) (t study.Table, left int) {
	t = study.Table{Head: []string{"policy", "A", "B", "B/A", "interval", ""}}
	if c.Cells[0].Cell.Group != "" {
		t.Head[0] = "arm"
	}
	changes := slices.Clone(c.Cells)
	rank := func(x figure.Change) int {
		if x.Cost.Verdict == stat.Slower || x.Cost.Verdict == stat.Faster {
			return 0
		}
		return 1
	}
	if len(changes) > mostChanges {
		slices.SortStableFunc(changes, func(a, b figure.Change) int { return cmp.Compare(rank(a), rank(b)) })
		left = len(changes) - mostChanges
		changes = changes[:mostChanges]
	}
	for _, change := range changes {
		word := contrastWord(c, change)
		switch {
		case c.Disturbed != "":
			word = ""
		case change.Regressed:
			word += ", a regression"
		}
		t.Rows = append(t.Rows, []string{cellName(c, change), nanoseconds(change.A.Median), nanoseconds(change.B.Median), advise.Times(change.Cost.Comparison), ratios(change.Cost), word})
	}
	return t, left
}

// briefNotes name the limits of the answer.
func briefNotes(c figure.Contrast) (notes []string) {
	if len(c.Machines) > 0 {
		var names []string
		for _, d := range c.Machines {
			names = append(names, d.Name)
		}
		notes = append(notes, "the machines differ in "+strings.Join(names, ", "))
	}
	if text := diskMoved(c); text != "" {
		notes = append(notes, text)
	}
	controlled := slices.ContainsFunc(c.Cells, func(change figure.Change) bool { return change.Controlled })
	switch {
	case c.Between == figure.Apart && controlled:
		notes = append(notes, "B/A: each turn beside the same records written by bufio.Writer, write(2) or fdatasync(2); nothing is scaled. holdfast bench --against PROGRAM sees smaller changes")
	case c.Between == figure.Alternately:
		notes = append(notes, "each pair of rounds ran in two new processes, cell by cell in turn: what the machine did meanwhile is in both. "+layoutText(c))
	}
	for _, only := range []struct {
		side  string
		names []string
	}{{"A", c.OnlyA}, {"B", c.OnlyB}} {
		if n := len(only.names); n > 0 {
			const most = 2
			text := "only in " + only.side + ": " + strings.Join(only.names[:min(n, most)], "; ")
			if n > most {
				text += fmt.Sprintf(" and %d more", n-most)
			}
			notes = append(notes, text)
		}
	}
	for _, s := range []figure.Side{c.A, c.B} {
		if s.Missing != "" {
			notes = append(notes, s.Name+" is not complete: "+s.Missing)
		}
	}
	return append(notes, fmt.Sprintf("A: %s, %s; B: %s, %s", c.A.Name, plural(c.A.Rounds, "round"), c.B.Name, plural(c.B.Rounds, "round")))
}

// layoutText says which differences of two builds have no word.
func layoutText(c figure.Contrast) string {
	return fmt.Sprintf("Up to %.0f %% may only be where the linker put the code: without a sync, less than that is neither slower nor faster", 100*c.Layout)
}

// diskMoved reports that the bare disk took longer or shorter by a half or more.
func diskMoved(c figure.Contrast) string {
	const enough = 1.5
	for _, m := range c.Controls {
		ratio, more := float64(m.Ratio), "more"
		if ratio < 1 {
			ratio, more = 1/ratio, "less"
		}
		if ratio >= enough {
			return fmt.Sprintf("%s alone took %s %s in B: is it another disk, or a busy one?", m.Name, advise.Times(stat.Comparison{Ratio: ratio}), more)
		}
	}
	return ""
}

// controlMoves lists the times of the bare calls in both runs.
func controlMoves(c figure.Contrast) string {
	var moves []string
	for _, m := range c.Controls {
		moves = append(moves, fmt.Sprintf("%s %s", m.Name, advise.Times(stat.Comparison{Ratio: float64(m.Ratio)})))
	}
	return strings.Join(moves, ", ")
}
