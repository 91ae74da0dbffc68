package report

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// fitted renders a table with no line wider than width. While one is too wide it does
// these in turn:
//   - less space between the columns
//   - a wide head on several lines
//   - the columns that may stand apart in a table below
//   - prose in cells on several lines
//   - as many columns as needed in a table below
func fitted(t study.Table, width int) []string {
	w, shown, ok := unfolded(t, width)
	if !ok && t.Apart > 0 {
		left, right := splitAt(t, t.Apart)
		return append(fitted(left, width), fitted(right, width)...)
	}
	if !ok {
		shown, ok = folded(w, t, width)
	}
	if n := lastToFit(t, width); !ok && n > 0 {
		left, right := splitAt(t, n)
		return append(fitted(left, width), fitted(right, width)...)
	}
	return []string{shown}
}

// unfolded renders a table without breaking its cells; ok reports whether it fits.
func unfolded(t study.Table, most int) (w table.Writer, shown string, ok bool) {
	w = tableText(t)
	for _, narrower := range []func(){
		func() {},
		func() { // a gap of one space between columns
			style := *w.Style()
			style.Box.PaddingRight = " "
			w.SetStyle(style)
		},
		func() { // heads except the first, broken at spaces to the width of their columns
			heads := slices.Clone(t.Head)
			for i := range heads[1:] {
				heads[i+1] = strings.TrimSuffix(wrap(heads[i+1], columnWidth(t, i+1), ""), "\n")
			}
			w.ResetHeaders()
			w.AppendHeader(cells(heads))
		},
	} {
		narrower()
		if shown = w.Render(); widest(shown) <= most {
			return w, shown, true
		}
	}
	return w, shown, false
}

// columnWidth returns the width of the widest cell below the head.
func columnWidth(t study.Table, column int) int {
	width := 0
	for _, row := range t.Rows {
		if column < len(row) {
			width = max(width, utf8.RuneCountInString(row[column]))
		}
	}
	return width
}

// listed renders a table as a list: the first cell of a row, and below it the other cells behind their
// heads. It is for columns of prose that are too narrow on a narrow terminal.
func listed(t study.Table, width int) string {
	var b strings.Builder
	for _, row := range t.Rows {
		b.WriteString(wrap(row[0], width, indent))
		for i, cell := range row[1:] {
			b.WriteString(wrap(indent+t.Head[i+1]+": "+strings.ReplaceAll(cell, "\n", " "), width, indent+indent))
		}
	}
	return b.String()
}

// folded breaks the cells of columns of prose at spaces, the widest column first, until the table
// fits or nothing is left to break. On a narrow terminal it breaks figures with their intervals too.
// It reports whether the table fits.
func folded(w table.Writer, t study.Table, most int) (shown string, ok bool) {
	least := min(24, most/4) // least width of a column that is broken
	widths := map[int]int{}
	for i := range t.Head {
		if width := columnWidth(t, i); width > least && (most < lineWidth || slices.Contains(textColumns(t), i)) {
			widths[i] = width
		}
	}
	for shown = w.Render(); widest(shown) > most; shown = w.Render() {
		most := -1
		for i, width := range widths {
			if most < 0 || width > widths[most] || width == widths[most] && i < most {
				most = i
			}
		}
		if most < 0 || widths[most] == least {
			return shown, false
		}
		widths[most]--
		columns := rightAligned(len(t.Head), textColumns(t)...)
		for i, width := range widths {
			columns[i].WidthMax, columns[i].WidthMaxEnforcer = width, func(cell string, width int) string {
				// The name of a policy has no spaces, and breaks behind a comma.
				if at := strings.LastIndexByte(cell[:min(width, len(cell))], ','); at > 0 && len(cell) > width && !strings.Contains(cell, " ") {
					cell = cell[:at+1] + " " + cell[at+1:]
				}
				return text.WrapSoft(cell, width)
			}
		}
		w.SetColumnConfigs(columns)
	}
	return shown, true
}

// lastToFit returns the column at which to split a table: the columns before it fit, and
// at least two follow if the table has enough. It returns 0 if the table can't be split.
func lastToFit(t study.Table, width int) int {
	least := keysOf(t) + 1
	for n := len(t.Head) - 2; n >= least; n-- {
		left, _ := splitAt(t, n)
		if _, _, ok := unfolded(left, width); ok || n == least {
			return n
		}
	}
	if least == len(t.Head)-1 {
		return least
	}
	return 0
}

// keysOf returns the number of leading columns that distinguish the rows: one or two.
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

// splitAt returns two tables: the columns before a column; and the key columns followed by that column
// and the rest.
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
