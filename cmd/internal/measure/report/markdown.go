package report

import (
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
)

// doubtLines returns all warnings, marked as doubts.
func (s sheet) doubtLines() []string {
	lines := s.doubts()
	for i := range lines {
		lines[i] = "doubtful: " + lines[i]
	}
	return lines
}

// markdownText escapes the characters that would mark text, make a link or be HTML.
// Policies stay code: they stand between backticks.
func markdownText(line string) string { return markdownMarks.Replace(line) }

var markdownMarks = strings.NewReplacer("*", `\*`, "[", `\[`, "<", "&lt;")

// markdownFact is markdownText for text from the machine or a results file.
func markdownFact(text string) string { return strings.ReplaceAll(markdownText(text), "`", "\\`") }

// markdownCode writes a name as code; no character of the name ends the code.
func markdownCode(name string) string { return "`" + strings.ReplaceAll(name, "`", "'") + "`" }

func groupMarkdown(g figure.Group) string {
	columns := inMarkdown.of(groupColumns, g.Load)
	t := newTable(alignment(columns)...)
	t.AppendHeader(cells(heads(columns, inMarkdown)))
	for _, r := range g.Rows {
		t.AppendRow(cells(texts(columns, inMarkdown, r)))
	}
	return t.RenderMarkdown()
}

// rightAligned returns n columns of figures, which are right-aligned; the columns in texts are
// left-aligned.
func rightAligned(n int, texts ...int) []table.ColumnConfig {
	columns := make([]table.ColumnConfig, n)
	for i := range columns {
		columns[i] = table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight}
	}
	for _, i := range texts {
		columns[i].Align, columns[i].AlignHeader = text.AlignLeft, text.AlignLeft
	}
	return columns
}
