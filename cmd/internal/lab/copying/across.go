package copying

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/timing"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/chart"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// acrossCopies shows several file systems beside each other: their times by buffer,
// their order at each, and whether they follow the same trend.
func acrossCopies(all []study.Evidence) study.Shown {
	if len(all) < 2 {
		return study.Shown{}
	}
	var tables []study.Table
	for _, of := range workOf(all) {
		tables = append(tables, acrossTable(all, of), rankTable(all, of))
	}
	tables = append(tables, acrossTrends(all), acrossClaims(all))
	return study.Shown{Tables: tables, Picture: acrossPicture(all), Learnt: acrossLearnt(all)}
}

// A copyWork is the unit of comparison: one form of files of one size.
type copyWork struct {
	form  timing.Form
	size  int64
	cells []copyCell // by buffer
}

// workOf returns the work that more than one has done, large files first.
func workOf(all []study.Evidence) (works []copyWork) {
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
func acrossTable(all []study.Evidence, of copyWork) study.Table {
	t := study.Table{
		Title: of.String() + ": elapsed s, by file system", Head: []string{"Buffer Size"},
		Notes: []string{predictedSign + " is predicted, from a shorter copy", "medians of the same rounds; each file system's own table has the intervals"},
	}
	for _, e := range all {
		t.Head = append(t.Head, placeOf(e))
	}
	// Only a few published times fit beside the times in User-Mode Linux.
	var beside []string
	for _, e := range all {
		kind := kindOf(placeOf(e))
		if study.IsUserMode(e.FileSystem) && len(publishedWork(kind, of)) > 0 && !slices.Contains(beside, kind) {
			beside = append(beside, kind)
		}
	}
	for _, kind := range beside {
		t.Head = append(t.Head, "published, "+kind)
	}
	if len(beside) > 0 {
		t.Notes = append(t.Notes, "times in User-Mode Linux compare only with each other, and so do the published ones: compare the orders, or the ratio of two times")
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

func acrossText(e study.Evidence, c copyCell) string {
	if !e.Have(c.name()) {
		return study.Dash
	}
	text := study.OrDash(wholeOf(e, c).elapsed.Median, secondsOf(wholeOf(e, c).elapsed.Median))
	if isPredicted(e, c) && notPredicted(e, c) == "" {
		text = predictedSign + text
	}
	return text
}

// rankTable has their order at each buffer, with the published one beside.
func rankTable(all []study.Evidence, of copyWork) study.Table {
	t := study.Table{
		Title: of.String() + ": the fastest first", Head: []string{"Buffer Size", "Elapsed Time here", "Published"},
		Notes: []string{
			"= means: which of the two is faster is not known, because their intervals overlap or rounds are too few",
			"file systems of another kernel, " + study.UserModeLinux + "…, are in an order of their own",
		},
	}
	for _, c := range of.cells {
		// File systems of another kernel are in an order of their own.
		var texts []string
		for _, other := range []bool{false, true} {
			of := slices.DeleteFunc(slices.Clone(all), func(e study.Evidence) bool { return study.IsUserMode(e.FileSystem) != other })
			if text := rankText(ranking(of, c)); text != "" {
				texts = append(texts, text)
			}
		}
		row := []string{bufferText(c), cmp.Or(strings.Join(texts, "; "), study.Dash), cmp.Or(publishedRank(c), study.Dash)}
		t.Rows = append(t.Rows, row)
	}
	return t
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

// acrossTrends has the correlation of every two file systems over the buffers, and of each with the
// published times of its kind.
func acrossTrends(all []study.Evidence) study.Table {
	t := study.Table{
		Title: "Are the trends the same: Spearman's rank correlation of elapsed times over the buffers",
		Head:  []string{"Work", "File system", "Against", "rho"},
		Notes: []string{"1 is the same order of the buffers, -1 the reverse"},
	}
	for _, of := range workOf(all) {
		for i, e := range all {
			ours := ofWhole(timingsOf(e), of.form, of.size)
			for _, other := range all[i+1:] {
				t.Rows = trendRow(t.Rows, ours, ofWhole(timingsOf(other), of.form, of.size), of.String(), placeOf(e), placeOf(other))
			}
			t.Rows = trendRow(t.Rows, ours, publishedWork(kindOf(placeOf(e)), of), of.String(), placeOf(e), "published, "+kindOf(placeOf(e)))
		}
	}
	return t
}

func publishedWork(fileSystem string, of copyWork) []timing.Row {
	all := slices.Concat(timing.PublishedCopies(), timing.PublishedSizes(), timing.PublishedSynced(), timing.PublishedWrites())
	return rowsOn(ofWhole(all, of.form, of.size), fileSystem)
}

// acrossClaims lists the document's claims about file systems with this run's verdicts.
func acrossClaims(all []study.Evidence) study.Table {
	t := study.Table{Title: "What is said of the file systems", Head: []string{"Claim", "Measured here", "Verdict"}}
	if len(all) == 0 {
		return t
	}
	together := study.Evidence{Run: readTogether(all).Indexed()}
	for _, c := range copyClaimsAcross() {
		f := c.Judge(together)
		t.Rows = append(t.Rows, []string{c.Name, cmp.Or(f.Measured, study.Dash), string(f.Verdict)})
		t.Notes = append(t.Notes, fmt.Sprintf("%s: %s (%s): %s", c.Name, c.Says, c.Published, f.Why))
	}
	return t
}

// readTogether is the run that the evidence is of the parts of.
func readTogether(all []study.Evidence) (run result.Run) {
	for _, e := range all {
		for _, c := range e.Run.Header.Cells {
			c.Name, c.FileSystem = result.Named(e.FileSystem, c.Name), e.FileSystem
			if c.Twin != "" {
				c.Twin = result.Named(e.FileSystem, c.Twin)
			}
			run.Header.Cells = append(run.Header.Cells, c)
		}
		for _, t := range e.Run.Trials {
			named := *t
			named.Cell = result.Named(e.FileSystem, t.Cell)
			run.Trials = append(run.Trials, &named)
		}
	}
	return run
}

// acrossPicture has a row for each buffer of part C, a dot for each file system.
func acrossPicture(all []study.Evidence) *chart.Dots {
	works := workOf(all)
	if len(works) == 0 {
		return nil
	}
	d := &chart.Dots{Title: "Elapsed time by buffer and file system", Scale: study.Duration}
	for _, e := range all {
		d.Series = append(d.Series, placeOf(e))
	}
	for _, c := range works[0].cells {
		row := chart.Row{Label: bufferText(c)}
		for i, e := range all {
			if e.Have(c.name()) {
				row.Points = append(row.Points, study.Point(i, wholeOf(e, c).elapsed))
			}
		}
		if slices.ContainsFunc(all, func(e study.Evidence) bool { return isPredicted(e, c) }) {
			row.Label += ", predicted"
		}
		d.Rows = append(d.Rows, row)
	}
	return d
}

// acrossLearnt is a sentence on the smallest and a usual buffer, and one on the trends.
func acrossLearnt(all []study.Evidence) string {
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
			texts = append(texts, fmt.Sprintf("by %v the order is %s, and the last takes %s as long as the first", holdfast.Size(c.buffer), rankText(order), study.Times(last.elapsed.Median/order[0].elapsed.Median)))
		}
	}
	if len(texts) == 0 {
		return ""
	}
	text := of.String() + ": " + strings.Join(texts, "; ")
	var rest []string
	// The least correlation of two file systems, and of one with the published times of its kind.
	least, published := math.NaN(), math.NaN()
	for i, e := range same {
		ours := ofWhole(timingsOf(e), of.form, of.size)
		for _, other := range same[i+1:] {
			rho, _ := trend(ours, ofWhole(timingsOf(other), of.form, of.size))
			if math.IsNaN(least) || rho < least {
				least = rho
			}
		}
		rho, _ := trend(ours, publishedWork(kindOf(placeOf(e)), of))
		if math.IsNaN(published) || rho < published {
			published = rho
		}
	}
	if !math.IsNaN(least) {
		rest = append(rest, fmt.Sprintf("over the buffers the trends of all file systems here are %s (a rank correlation of %s at least)", trendWord(least), study.Digits(least)))
	}
	if !math.IsNaN(published) {
		rest = append(rest, fmt.Sprintf("the trends here and the published trends are %s (%s at least)", trendWord(published), study.Digits(published)))
	}
	if fallen := notHere(same); len(fallen) > 0 {
		rest = append(rest, "not so here is "+strings.Join(fallen, ", nor "))
	}
	if len(rest) > 0 {
		text += ". " + upperFirst(strings.Join(rest, "; "))
	}
	return text
}

// notHere says which claims do not hold, where, and with which figures: claims about one file
// system first. Of a kernel in a process nothing was claimed.
func notHere(all []study.Evidence) (fallen []string) {
	if study.IsUserMode(all[0].FileSystem) {
		return nil
	}
	together := study.Evidence{Run: readTogether(all).Indexed()}
	for _, c := range copyClaims() {
		if len(fallen) == 2 { // a sentence has no room for more
			break
		}
		on := all
		if len(c.Takes()) == 0 {
			on = []study.Evidence{together}
		}
		for _, e := range on {
			if c.Of != "" && c.Of != kindOf(placeOf(e)) || !e.Have(c.Takes()...) {
				continue
			}
			if f := c.Judge(e); f.Verdict == study.NotHere || f.Verdict == study.NeverSo && f.Measured != "" {
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
