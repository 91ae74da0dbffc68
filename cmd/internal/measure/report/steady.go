package report

import (
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
)

// steadyColumns show how the throughput of a group's long trials became steady. Every row of the table
// has a Steadiness.
func steadyColumns() []column {
	return []column{
		policyColumn,
		{head: "first second", cell: func(r figure.Row) string { return perSecond(r.Steadiness.First) }},
		{head: "when steady", cell: func(r figure.Row) string { return perSecond(r.Steadiness.Throughput) }},
		{head: "of first", long: "of the first", rank: 2, cell: func(r figure.Row) string { return share(r.Steadiness.Throughput, r.Steadiness.First) }},
		{head: "after", long: "steady after", rank: 1, cell: func(r figure.Row) string { return nanoseconds(float64(r.Steadiness.After)) }},
		{head: "in memory", long: "waited in memory", rank: 4, cell: func(r figure.Row) string {
			return "up to " + mebibytes(figure.Number(r.Steadiness.Unwritten)) + " MiB"
		}},
		{head: "slowed", long: "samples in which writers were slowed", rank: 3, cell: func(r figure.Row) string {
			return fmt.Sprintf("%d of %d", r.Steadiness.Throttled, r.Steadiness.Samples)
		}},
	}
}

// steadied are the rows whose trials were long enough to become steady.
func steadied(g figure.Group) (rows []figure.Row) {
	for _, r := range g.Rows {
		if r.Steadiness != nil {
			rows = append(rows, r)
		}
	}
	return rows
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
