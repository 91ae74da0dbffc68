package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/holdfast-go/holdfast/internal/lab/stat"
	"github.com/holdfast-go/holdfast/peers/internal/command"
)

func writeTables(out io.Writer, all []*race) {
	for _, r := range all {
		r.writeTable(out)
	}
	fmt.Fprintf(out, "\nIn the clock: from nothing until every copy is written and closed, and synced where that is asked for. %s. CPU is that of all processes together.\n", command.Verdicts("race"))
	fmt.Fprint(out, "\n")
	seen := map[string]bool{}
	for _, r := range all {
		for _, a := range r.runners {
			if !seen[a.name] {
				seen[a.name] = true
				fmt.Fprintf(out, "- `%s`: %s.\n", a.name, a.note)
			}
		}
	}
}

func (r *race) writeTable(out io.Writer) {
	ours := r.runners[0].name
	fmt.Fprintf(out, "\n## %s: %s, %s\n\n| arm | µs/file | 95 %% | MiB/s | time ÷ %s | 95 %% | than ours | CPU µs/file |\n|---|--:|--:|--:|--:|--:|---|--:|\n", r.name(), r.job.title, r.state, ours)
	for _, a := range r.runners {
		fmt.Fprintf(out, "| %s | %s |\n", a.name, strings.Join(r.columns(a), " | "))
	}
	if floor := r.floor(); floor == floor {
		fmt.Fprintf(out, "\nNoise floor, from the same code run twice: %s.\n", command.Percent(floor))
	}
}

// columns are those of an arm's row.
func (r *race) columns(a *runner) []string {
	if a.Err != nil {
		return command.NotCounted(a.Err, 7)
	}
	cost := stat.Summarize(a.Each(command.Sample.Micros))
	row := []string{fmt.Sprintf("%.3g", cost.Median), command.Spread(cost, "%.3g"), fmt.Sprintf("%.0f", float64(r.job.data)/mib/(cost.Median/1e6))}
	row = append(row, command.Compared(&r.runners[0].Runs, &a.Runs, command.Sample.Micros, r.floor(), 2)...)
	return append(row, fmt.Sprintf("%.3g", stat.Summarize(a.Each(command.Sample.CPUMicros)).Median))
}
