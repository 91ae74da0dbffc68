package report

import (
	"fmt"
	"io"
	"math"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/advise"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/chart"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/page"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// ContrastHTML writes one page that compares runs: each contrast compares the first run with another.
// The differences between the machines come first.
func ContrastHTML(w io.Writer, contrasts []figure.Contrast, results []page.Results) error {
	p := page.Page{Title: "holdfast: runs side by side", Question: "what got slower or faster from one run to another?", Results: results}
	machines := page.Section{Title: "What differs in the machines"}
	var sections []page.Section
	for i, c := range contrasts {
		p.Answer = append(p.Answer, fmt.Sprintf("%s against %s: %s.", c.B.Name, c.A.Name, conclusion(c)))
		t := page.Table{Title: c.A.Name + " and " + c.B.Name, Prose: true, Head: []string{"fact", "A: " + c.A.Name, "B: " + c.B.Name}}
		for _, d := range c.Machines {
			t.Rows = append(t.Rows, page.Row{Cells: []string{d.Name, d.A, d.B}})
		}
		if len(t.Rows) > 0 {
			machines.Tables = append(machines.Tables, t)
		} else {
			machines.Notes = append(machines.Notes, fmt.Sprintf("%s and %s differ in no known fact", c.A.Name, c.B.Name))
		}
		sections = append(sections, contrastPage(c, fmt.Sprint(i)))
	}
	p.Sections = append(sections, machines)
	return page.Write(w, p)
}

// contrastPage shows one contrast. The keys of its cells begin with the contrast's number.
func contrastPage(c figure.Contrast, number string) page.Section {
	s := page.Section{
		Title: c.B.Name + " against " + c.A.Name,
		Text:  fmt.Sprintf("A: %s. B: %s.", sideText(c.A), sideText(c.B)),
	}
	for _, load := range loads(c) {
		picture := chart.Plot{
			Title: "times of B as multiples of A's: " + title(load),
			X:     chart.Axis{Name: "B/A", Scale: chart.Log, Format: study.Times}, Y: chart.Axis{Categories: []string{}},
			Regions: []chart.Region{{From: 1 - c.Threshold, To: 1 + c.Threshold, Label: "the same"}},
		}
		picture.X.Low, picture.X.High = ratioBounds(c, load)
		byWord := map[stat.Verdict]int{}
		table := changesTable(c, load, plainText)
		table.Head[len(table.Head)-1] = "verdict" // a head that sorts needs a name
		rows := page.Plain(table.Rows)
		for _, change := range c.Cells {
			if change.Load != load {
				continue
			}
			row, key := len(picture.Y.Categories), number+" "+change.Cell.Name
			rows[row].Key, rows[row].Marked = key, change.Regressed
			word := change.Cost.Verdict
			look, known := byWord[word]
			if !known {
				look = len(picture.Series)
				byWord[word] = look
				picture.Series = append(picture.Series, chart.Series{Name: string(word), As: chart.Points, Look: look})
			}
			low, high, cut := within(change.Cost.Low, change.Cost.High, picture.X)
			picture.Series[look].Marks = append(picture.Series[look].Marks, chart.Mark{
				X: change.Cost.Ratio, XLow: low, XHigh: high, Label: cut, Y: float64(row), Title: advise.Times(change.Cost.Comparison) + " " + ratios(change.Cost) + ": " + string(word),
				Data: []chart.Attr{{Name: "key", Value: key}, {Name: "label", Value: rows[row].Cells[0]}},
			})
			picture.Y.Categories = append(picture.Y.Categories, rows[row].Cells[0])
		}
		s.Sections = append(s.Sections, page.Section{
			Title: title(load) + ": " + costName(load), Charts: drawn(nil, picture, "Left of 1, B takes less time. A bar is the 95 % interval; \"cut\" marks one that goes beyond the picture. The word says what is proven."),
			Tables: []page.Table{{Head: table.Head, Rows: rows}},
		})
	}
	s.Sections = append(s.Sections, page.Section{Title: "How they were compared", Notes: contrastNotes(c), Folded: true})
	return s
}

// ratioBounds are the ends of the scale for a load: all ratios are inside, and intervals that are too wide to inform
// do not extend it.
func ratioBounds(c figure.Contrast, load figure.Load) (low, high float64) {
	const beside = 2 // factor beyond the ratios themselves
	low, high = 1/(1+c.Threshold), 1+c.Threshold
	for _, change := range c.Cells {
		if r := change.Cost.Ratio; change.Load == load && r > 0 && !math.IsInf(r, 0) {
			low, high = min(low, r), max(high, r)
		}
	}
	return low / beside, high * beside
}

// within cuts an interval at the ends of an axis, and returns a remark if it did.
func within(low, high float64, of chart.Axis) (from, to float64, cut string) {
	from, to = max(low, of.Low), min(high, of.High)
	if from > low || to < high {
		cut = "cut"
	}
	return from, to, cut
}
