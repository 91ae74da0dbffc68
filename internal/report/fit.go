package report

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/holdfast-go/holdfast/internal/study"
)

// fitted renders a table, no line wider than lineWidth. Where it would be there is first
// less space between its columns; then a head that is wider than its column is in lines;
// then the columns that may stand apart do; then prose in cells is in lines; and at last
// as many columns as are too many stand below the others.
func fitted(t study.Table) []string {
	w, shown, ok := unfolded(t)
	if !ok && t.Apart > 0 {
		left, right := splitAt(t, t.Apart)
		return append(fitted(left), fitted(right)...)
	}
	if !ok {
		shown, ok = folded(w, t)
	}
	if n := lastToFit(t); !ok && n > 0 {
		left, right := splitAt(t, n)
		return append(fitted(left), fitted(right)...)
	}
	return []string{shown}
}

// unfolded renders a table with its cells as they are; ok says that it fits.
func unfolded(t study.Table) (w table.Writer, shown string, ok bool) {
	w = tableText(t)
	for _, narrower := range []func(){
		func() {},
		func() { closeUp(w) },
		func() {
			w.ResetHeaders()
			w.AppendHeader(rowOf(inLines(t)))
		},
	} {
		narrower()
		if shown = w.Render(); widest(shown) <= lineWidth {
			return w, shown, true
		}
	}
	return w, shown, false
}

// closeUp leaves one space between columns.
func closeUp(w table.Writer) {
	style := *w.Style()
	style.Box.PaddingRight = " "
	w.SetStyle(style)
}

// inLines returns the table's heads, but for the first broken at spaces into lines
// that are no wider than the column, if words are not.
func inLines(t study.Table) []string {
	heads := slices.Clone(t.Head)
	for i := range heads[1:] {
		heads[i+1] = strings.TrimSuffix(wrap(heads[i+1], columnWidth(t, i+1), ""), "\n")
	}
	return heads
}

// columnWidth is that of the widest cell below the head.
func columnWidth(t study.Table, column int) int {
	width := 0
	for _, row := range t.Rows {
		if column < len(row) {
			width = max(width, utf8.RuneCountInString(row[column]))
		}
	}
	return width
}

// leastProse is how wide a column of prose stays.
const leastProse = 24

// folded breaks the cells of columns of prose at spaces, the widest most, until the table
// fits or nothing is left to break; ok says that it fits.
func folded(w table.Writer, t study.Table) (shown string, ok bool) {
	widths := map[int]int{}
	for _, i := range textColumns(t) {
		if width := columnWidth(t, i); width > leastProse {
			widths[i] = width
		}
	}
	for shown = w.Render(); widest(shown) > lineWidth; shown = w.Render() {
		most := widestOf(widths)
		if most < 0 || widths[most] == leastProse {
			return shown, false
		}
		widths[most]--
		w.SetColumnConfigs(columnsWithin(t, widths))
	}
	return shown, true
}

func widestOf(widths map[int]int) int {
	most := -1
	for i, width := range widths {
		if most < 0 || width > widths[most] || width == widths[most] && i < most {
			most = i
		}
	}
	return most
}

func columnsWithin(t study.Table, widths map[int]int) []table.ColumnConfig {
	columns := rightAligned(len(t.Head), textColumns(t)...)
	for i, width := range widths {
		columns[i].WidthMax, columns[i].WidthMaxEnforcer = width, text.WrapSoft
	}
	return columns
}

// lastToFit returns before which column to split a table, so that what is before it fits
// and at least two columns are after it; 0 where it can't be split.
func lastToFit(t study.Table) int {
	least := keysOf(t) + 1
	for n := len(t.Head) - 2; n >= least; n-- {
		left, _ := splitAt(t, n)
		if _, _, ok := unfolded(left); ok || n == least {
			return n
		}
	}
	return 0
}

// keysOf is how many of the first columns tell the rows apart, as far as two can.
func keysOf(t study.Table) int {
	seen := map[string]bool{}
	for _, row := range t.Rows {
		seen[row[0]] = true
	}
	if len(seen) < len(t.Rows) && len(t.Head) > 3 {
		return 2
	}
	return 1
}

// splitAt returns the columns before one, and that one with those after it and the keys.
func splitAt(t study.Table, column int) (left, right study.Table) {
	left, right = t, t
	left.Apart, right.Apart = 0, 0
	keys := keysOf(t)
	cut := func(row []string) (before, after []string) {
		column := min(column, len(row))
		return row[:column], append(slices.Clone(row[:min(keys, len(row))]), row[column:]...)
	}
	left.Head, right.Head = cut(t.Head)
	left.Rows, right.Rows = nil, nil
	for _, row := range t.Rows {
		before, after := cut(row)
		left.Rows, right.Rows = append(left.Rows, before), append(right.Rows, after)
	}
	return left, right
}

func widest(text string) int {
	most := 0
	for line := range strings.Lines(text) {
		most = max(most, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
	}
	return most
}
