package report

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/holdfast-go/holdfast/internal/figure"
)

var steadyHeader = []string{"policy", "first second", "when steady", "of the first", "steady after", "waited in memory", "writers were slowed"}

// steadyRows tell how the throughput of a group's long trials came to rest.
func steadyRows(g figure.Group) [][]string {
	var rows [][]string
	for _, r := range g.Rows {
		if s := r.Steadiness; s != nil {
			rows = append(rows, []string{
				r.Cell.Policy.String(), perSecond(s.First), perSecond(s.Throughput), share(s.Throughput, s.First), nanoseconds(float64(s.After)),
				"up to " + mebibytes(figure.Number(s.Unwritten)) + " MiB", fmt.Sprintf("%d of %s", s.Throttled, plural(s.Samples, "sample")),
			})
		}
	}
	return rows
}

func steadyText(b *strings.Builder, g figure.Group) {
	t := newTable(rightAligned(len(steadyHeader), 0)...)
	t.AppendHeader(cells(steadyHeader))
	for _, row := range steadyRows(g) {
		t.AppendRow(cells(row))
	}
	fmt.Fprintf(b, "\n%s\n", t.Render())
}

func cells(texts []string) (row table.Row) {
	for _, text := range texts {
		row = append(row, text)
	}
	return row
}

func perSecond(x figure.Number) string {
	if !x.Known() {
		return none
	}
	return mebibytes(x) + " MiB/s"
}

// share writes x as a part of whole.
func share(x, whole figure.Number) string {
	if !x.Known() || !(whole > 0) {
		return none
	}
	return fmt.Sprintf("%.0f %%", 100*x/whole)
}

// steadyNote says what a steady state is.
const steadyNote = "steady: the last five seconds differ by at most 20 % and rise or fall by at most 10 % (SNIA's rule), and no more than 10 % of what was written " +
	"stayed in memory; until then the page cache takes what the disk can't. Writers are slowed once too much waits in memory (vm.dirty_ratio)."
