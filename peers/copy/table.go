package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/holdfast-go/holdfast/internal/stat"
)

func writeTables(out io.Writer, all []*race) {
	for _, r := range all {
		r.writeTable(out)
	}
	fmt.Fprintf(out, "\nIn the clock: from nothing until every copy is written and closed, and synced where that is asked for. *slower*, *faster* and *same* (within %.0f %%) are proven over at least %d rounds, beyond the noise floor of the race. CPU is that of all processes together.\n", stat.Band*100, stat.VerdictRounds)
	fmt.Fprint(out, "\n")
	told := map[string]bool{}
	for _, r := range all {
		for _, a := range r.runners {
			if !told[a.name] {
				told[a.name] = true
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
		fmt.Fprintf(out, "\nNoise floor, from the same code run twice: %.1f %%.\n", floor*100)
	}
}

// columns are those of an arm's row.
func (r *race) columns(a *runner) []string {
	if a.err != nil {
		return []string{"does not count: " + strings.ReplaceAll(a.err.Error(), "|", "/"), "", "", "", "", "", ""}
	}
	cost := stat.Summarize(a.each(sample.micros))
	row := []string{fmt.Sprintf("%.3g", cost.Median), "", fmt.Sprintf("%.0f", float64(r.job.data)/mib/(cost.Median/1e6))}
	if cost.HasInterval() {
		row[1] = fmt.Sprintf("%.3g–%.3g", cost.Low, cost.High)
	}
	row = append(row, r.compared(a)...)
	return append(row, fmt.Sprintf("%.3g", stat.Summarize(a.each(sample.cpu)).Median))
}

// compared sets an arm against ours.
func (r *race) compared(a *runner) []string {
	ours := r.runners[0]
	if a == ours || ours.err != nil {
		return []string{"", "", ""}
	}
	c := stat.Compare(ours.each(sample.micros), a.each(sample.micros), r.floor(), stat.Band)
	if !c.HasInterval() {
		return []string{fmt.Sprintf("%.2f", c.Ratio), "", string(c.Verdict)}
	}
	return []string{fmt.Sprintf("%.2f", c.Ratio), fmt.Sprintf("%.2f–%.2f", c.Low, c.High), string(c.Verdict)}
}
