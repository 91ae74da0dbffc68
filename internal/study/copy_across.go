package study

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/chart"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/timing"
)

// acrossCopies shows several file systems beside each other: their times by buffer,
// their order at each, and whether they follow the same trend.
func acrossCopies(all []Evidence) Shown {
	if len(all) < 2 {
		return Shown{}
	}
	var tables []Table
	for _, of := range workOf(all) {
		tables = append(tables, acrossTable(all, of), rankTable(all, of))
	}
	tables = append(tables, acrossTrends(all), acrossClaims(all))
	return Shown{Tables: tables, Picture: acrossPicture(all), Learnt: acrossLearnt(all)}
}

// A copyWork is what is compared: one form of files of one size.
type copyWork struct {
	form  timing.Form
	size  int64
	cells []copyCell // by buffer
}

// workOf returns the work that more than one has done, large files first.
func workOf(all []Evidence) (works []copyWork) {
	for _, e := range all {
		for _, c := range copyCells(e) {
			at := slices.IndexFunc(works, func(w copyWork) bool { return w.form == c.form && w.size == c.size })
			if at < 0 {
				at = len(works)
				works = append(works, copyWork{form: c.form, size: c.size})
			}
			if !slices.Contains(works[at].cells, c) {
				works[at].cells = append(works[at].cells, c)
			}
		}
	}
	for _, w := range works {
		slices.SortFunc(w.cells, func(a, b copyCell) int { return cmp.Compare(a.buffer, b.buffer) })
	}
	order := func(f timing.Form) int { return slices.Index(timing.Forms(), f) }
	slices.SortStableFunc(works, func(a, b copyWork) int { return cmp.Or(order(a.form)-order(b.form), cmp.Compare(b.size, a.size)) })
	return works
}

func (w copyWork) String() string { return fmt.Sprintf("%s of %v", w.form, holdfast.Size(w.size)) }

// predictedSign stands before a time that is predicted.
const predictedSign = "~"

// acrossTable has the elapsed time by buffer, a column for each.
func acrossTable(all []Evidence, of copyWork) Table {
	t := Table{
		Title: of.String() + ": elapsed s, by file system", Head: []string{"Buffer Size"},
		Notes: []string{predictedSign + " is predicted, from a shorter copy", "medians of the same rounds; each file system's own table has the intervals"},
	}
	for _, e := range all {
		t.Head = append(t.Head, e.place())
	}
	beside := publishedBeside(all, of)
	for _, kind := range beside {
		t.Head = append(t.Head, "published, "+kind)
	}
	if len(beside) > 0 {
		t.Notes = append(t.Notes, "times in User-Mode Linux compare with each other alone, and the published with each other: what can be set against them is an order, or how many times as long one takes as another")
	}
	for _, c := range of.cells {
		row := []string{bufferText(c)}
		for _, e := range all {
			row = append(row, acrossText(e, c))
		}
		for _, kind := range beside {
			row = append(row, elapsedOf(publishedWork(kind, of), of.form, int(c.buffer)))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// publishedBeside are the kinds whose published times have room beside those in
// User-Mode Linux, of which there are few.
func publishedBeside(all []Evidence, of copyWork) (kinds []string) {
	for _, e := range all {
		kind := kindOf(e.place())
		if isUserMode(e.FileSystem) && len(publishedWork(kind, of)) > 0 && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

func acrossText(e Evidence, c copyCell) string {
	if !e.have(c.name()) {
		return dash
	}
	text := secondsOf(e.Median(c.name(), wholeElapsed))
	if e.predicted(c) {
		text = predictedSign + text
	}
	return text
}

// rankTable has their order at each buffer, with the published one beside.
func rankTable(all []Evidence, of copyWork) Table {
	t := Table{
		Title: of.String() + ": the fastest first", Head: []string{"Buffer Size", "Elapsed Time here", "Published"},
		Notes: []string{
			"= stands between neighbours whose intervals overlap, or are not known for want of rounds: which is faster is not known",
			"file systems of another kernel, " + userModeLinux + "…, are in an order of their own",
		},
	}
	for _, c := range of.cells {
		row := []string{bufferText(c), rankedApart(all, c), cmp.Or(publishedRank(c), dash)}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// rankedApart ranks the file systems of this kernel, and those of another apart.
func rankedApart(all []Evidence, c copyCell) string {
	var texts []string
	for _, other := range []bool{false, true} {
		of := slices.DeleteFunc(slices.Clone(all), func(e Evidence) bool { return isUserMode(e.FileSystem) != other })
		if text := rankText(ranking(of, c)); text != "" {
			texts = append(texts, text)
		}
	}
	return cmp.Or(strings.Join(texts, "; "), dash)
}

// publishedRank is the published order; equal times are a tie.
func publishedRank(c copyCell) string {
	var rows []timing.Row
	for _, r := range slices.Concat(timing.PublishedCopies(), timing.PublishedWrites()) {
		if r.Form == c.form && r.FileSize == c.size && int64(r.Buffer) == c.buffer {
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(a, b timing.Row) int { return cmp.Compare(a.Elapsed, b.Elapsed) })
	text := ""
	for i, r := range rows {
		switch {
		case i == 0:
		case r.Elapsed == rows[i-1].Elapsed:
			text += " = "
		default:
			text += " < "
		}
		text += r.FileSystem
	}
	return text
}

// acrossTrends has the correlation of every two of them over the buffers, and of each
// with what was published of its kind.
func acrossTrends(all []Evidence) Table {
	t := Table{
		Title: "Are the trends the same: Spearman's rank correlation of elapsed times over the buffers",
		Head:  []string{"Work", "File system", "Against", "rho"},
		Notes: []string{"1 is the same order of the buffers, -1 the reverse"},
	}
	for _, of := range workOf(all) {
		for i, e := range all {
			ours := ofWhole(timingsOf(e), of.form, of.size)
			for _, other := range all[i+1:] {
				t.Rows = acrossTrend(t.Rows, of, e, other.place(), ours, ofWhole(timingsOf(other), of.form, of.size))
			}
			t.Rows = acrossTrend(t.Rows, of, e, "published, "+kindOf(e.place()), ours, publishedWork(kindOf(e.place()), of))
		}
	}
	return t
}

func acrossTrend(rows [][]string, of copyWork, e Evidence, against string, ours, theirs []timing.Row) [][]string {
	if text := trendText(trend(ours, theirs)); text != dash {
		rows = append(rows, []string{of.String(), e.place(), against, text})
	}
	return rows
}

func publishedWork(fileSystem string, of copyWork) []timing.Row {
	all := slices.Concat(timing.PublishedCopies(), timing.PublishedSizes(), timing.PublishedSynced(), timing.PublishedWrites())
	return rowsOn(ofWhole(all, of.form, of.size), fileSystem)
}

// acrossClaims has what the document says of file systems, and what this run says to it.
func acrossClaims(all []Evidence) Table {
	t := Table{Title: "What is said of the file systems", Head: []string{"Claim", "Measured here", "Verdict"}}
	if len(all) == 0 {
		return t
	}
	together := Evidence{run: readTogether(all)}
	for _, c := range copyClaimsAcross() {
		f := c.Judge(together)
		t.Rows = append(t.Rows, []string{c.Name, cmp.Or(f.Measured, dash), string(f.Verdict)})
		t.Notes = append(t.Notes, fmt.Sprintf("%s: %s (%s): %s", c.Name, c.Says, c.Published, f.Why))
	}
	return t
}

// readTogether is the run that the evidence is of the parts of.
func readTogether(all []Evidence) (run result.Run) {
	for _, e := range all {
		for _, c := range e.run.Header.Cells {
			c.Name, c.FileSystem = result.Named(e.FileSystem, c.Name), e.FileSystem
			if c.Twin != "" {
				c.Twin = result.Named(e.FileSystem, c.Twin)
			}
			run.Header.Cells = append(run.Header.Cells, c)
		}
		for _, t := range e.run.Trials {
			t.Cell = result.Named(e.FileSystem, t.Cell)
			run.Trials = append(run.Trials, t)
		}
	}
	return run
}

// acrossPicture has a row for each buffer of part C, a dot for each file system.
func acrossPicture(all []Evidence) *chart.Dots {
	works := workOf(all)
	if len(works) == 0 {
		return nil
	}
	d := &chart.Dots{Title: "Elapsed time by buffer and file system", Scale: duration}
	for _, e := range all {
		d.Series = append(d.Series, e.place())
	}
	for _, c := range works[0].cells {
		row := chart.Row{Label: bufferText(c)}
		for i, e := range all {
			if e.have(c.name()) {
				s := e.Summary(c.name(), wholeElapsed)
				row.Points = append(row.Points, chart.Point{Series: i, Value: s.Median, Low: s.Low, High: s.High})
			}
		}
		if slices.ContainsFunc(all, func(e Evidence) bool { return e.predicted(c) }) {
			row.Label += ", predicted"
		}
		d.Rows = append(d.Rows, row)
	}
	return d
}

// acrossLearnt is a sentence on the smallest and a usual buffer, and one on the trends.
func acrossLearnt(all []Evidence) string {
	works := workOf(all)
	if len(works) == 0 || len(sameKernel(all)) < 2 {
		return ""
	}
	of := works[0]
	same := sameKernel(all)
	first, usual := of.cells[0], of.cells[len(of.cells)-1]
	if at := slices.IndexFunc(of.cells, func(c copyCell) bool { return c.buffer == 4096 }); at >= 0 {
		usual = of.cells[at]
	}
	var texts []string
	for _, c := range slices.Compact([]copyCell{first, usual}) {
		if order := ranking(same, c); len(order) > 1 {
			last := order[len(order)-1]
			texts = append(texts, fmt.Sprintf("by %v the order is %s, and the last takes %s as long as the first", holdfast.Size(c.buffer), rankText(order), times(last.elapsed.Median/order[0].elapsed.Median)))
		}
	}
	if len(texts) == 0 {
		return ""
	}
	text := of.String() + ": " + strings.Join(texts, "; ")
	var rest []string
	if least := leastTrend(same, of); !math.IsNaN(least) {
		rest = append(rest, fmt.Sprintf("over the buffers the trends of all of them are %s (a rank correlation of %s at least)", trendWord(least), digits(least)))
	}
	if least := leastPublished(same, of); !math.IsNaN(least) {
		rest = append(rest, fmt.Sprintf("those that were published are %s (%s at least)", trendWord(least), digits(least)))
	}
	if fallen := notHere(same); len(fallen) > 0 {
		rest = append(rest, "not so here is "+strings.Join(fallen, ", nor "))
	}
	if len(rest) > 0 {
		text += ". " + upperFirst(strings.Join(rest, "; "))
	}
	return text
}

// leastPublished is the least correlation of one with what was published of its kind.
func leastPublished(all []Evidence, of copyWork) float64 {
	least := math.NaN()
	for _, e := range all {
		rho, _ := trend(ofWhole(timingsOf(e), of.form, of.size), publishedWork(kindOf(e.place()), of))
		if !math.IsNaN(rho) && (math.IsNaN(least) || rho < least) {
			least = rho
		}
	}
	return least
}

// mostFallen is how many claims a sentence has room for.
const mostFallen = 2

// notHere says which claims do not hold, and where, with what was measured: those first
// that are of one file system. Of a kernel in a process nothing was claimed.
func notHere(all []Evidence) (fallen []string) {
	if isUserMode(all[0].FileSystem) {
		return nil
	}
	together := Evidence{run: readTogether(all)}
	for _, c := range copyClaims() {
		if len(fallen) == mostFallen {
			break
		}
		on := all
		if len(c.Arms) == 0 {
			on = []Evidence{together}
		}
		for _, e := range on {
			if c.Of != "" && c.Of != kindOf(e.place()) || !e.have(c.Arms...) {
				continue
			}
			if f := c.Judge(e); f.Verdict == NotHere || f.Verdict == NeverSo && f.Measured != "" {
				where := ""
				if e.FileSystem != "" {
					where = " on " + e.FileSystem
				}
				fallen = append(fallen, fmt.Sprintf("%q%s: %s, %s", c.Says, where, f.Measured, f.Why))
				break
			}
		}
	}
	return fallen
}

// leastTrend is the least correlation of every two.
func leastTrend(all []Evidence, of copyWork) float64 {
	least := math.NaN()
	for i, e := range all {
		for _, other := range all[i+1:] {
			rho, _ := trend(ofWhole(timingsOf(e), of.form, of.size), ofWhole(timingsOf(other), of.form, of.size))
			if math.IsNaN(least) || rho < least {
				least = rho
			}
		}
	}
	return least
}
