package report

import (
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// Table returns a table for a terminal of the given columns, or with [Markdown] for a pull request. It
// has no title and no notes.
func (f Format) Table(t study.Table, columns int) string {
	if f != Markdown {
		return strings.Join(fitted(t, lineColumns(columns)), "\n\n")
	}
	rows := t.Rows
	t.Rows = nil
	for _, row := range append([][]string{t.Head}, rows...) {
		row = slices.Clone(row)
		for i := range row {
			row[i] = f.Fact(row[i])
		}
		t.Rows = append(t.Rows, row)
	}
	t.Head, t.Rows = t.Rows[0], t.Rows[1:]
	return tableText(t).RenderMarkdown()
}

// Fact escapes a text from a machine or a results file, so that it is plain text in the format.
func (f Format) Fact(text string) string {
	if f == Markdown {
		return markdownFact(text)
	}
	return text
}
