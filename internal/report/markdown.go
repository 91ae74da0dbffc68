package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/holdfast-go/holdfast/internal/advise"
	"github.com/holdfast-go/holdfast/internal/figure"
	"github.com/holdfast-go/holdfast/internal/result"
)

// writeMarkdown writes tables for a pull request.
func writeMarkdown(w io.Writer, run result.Run) error {
	s, err := newSheet(run)
	if err != nil {
		return err
	}
	var b strings.Builder
	h := run.Header
	fmt.Fprintf(&b, "### holdfast: %s\n\n%s, %s, seed %d\n", h.Study, s.machine(), plural(s.Rounds, "round"), h.Seed)
	if mark := run.Mark(); mark != "" {
		fmt.Fprintf(&b, "\n**Not complete: %s**\n", mark)
	}
	if len(run.FileSystems()) > 0 {
		return severalMarkdown(w, b.String(), run)
	}
	if of, ok := s.studied(); ok {
		of.markdown(&b)
		_, err = io.WriteString(w, b.String())
		return err
	}
	for _, g := range s.Groups {
		fmt.Fprintf(&b, "\n#### %s\n\n%s\n", title(g.Load), groupMarkdown(g))
	}
	b.WriteString("\n")
	for _, line := range append(s.notes(), s.doubtLines()...) {
		fmt.Fprintf(&b, "- %s\n", markdownText(line))
	}
	if s.advised {
		fmt.Fprintf(&b, "\n%s\n", s.adviceLine())
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// doubtLines are all doubts, marked as such.
func (s sheet) doubtLines() []string {
	lines := s.doubts()
	for i := range lines {
		lines[i] = "doubtful: " + lines[i]
	}
	return lines
}

// markdownText keeps a line's own stars from marking text.
func markdownText(line string) string { return strings.ReplaceAll(line, "*", `\*`) }

func groupMarkdown(g figure.Group) string {
	t := newTable(rightAligned(12, 0, 4, 11)...)
	t.AppendHeader(table.Row{"policy", "records/s", "95 %", "cost", "", "MiB/s", "CPU a record", "calls", "own", "p50", "p99", "lost at a power cut"})
	for _, r := range g.Rows {
		t.AppendRow(table.Row{
			"`" + r.Cell.Policy.String() + "`", count(r.Rate.Median), span(r.Rate.Low, r.Rate.High), advise.Times(r.Cost.Comparison), word(r),
			mebibytes(r.Throughput), nanoseconds(float64(r.PerRecord.CPU)), calls(r.Calls.Observed), calls(r.Calls.Predicted),
			percentile(r.Latency.P50), percentile(r.Latency.P99), r.Cell.Policy.Loss().Power,
		})
	}
	return t.RenderMarkdown()
}

// rightAligned are n columns with figures, but for those of text.
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
