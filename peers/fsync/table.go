package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/holdfast-go/holdfast/internal/lab/stat"
	"github.com/holdfast-go/holdfast/peers/internal/command"
)

func writeTables(out io.Writer, all []*group) {
	for _, g := range all {
		g.writeTable(out)
	}
	fmt.Fprintf(out, "\n%s%s\n\nWhere arms differ by construction:\n\n", command.Verdicts("group"), command.MoreRounds)
	for _, d := range differences {
		fmt.Fprintf(out, "- %s\n", d)
	}
}

func (g *group) writeTable(out io.Writer) {
	fmt.Fprintf(out, "\n## %s: %s\n\n", g.name, g.title)
	fmt.Fprintf(out, "| arm | ops/s | 95 %% | time ÷ %s | 95 %% | verdict | write µs | sync µs | rest µs |\n", g.arms[0].name)
	fmt.Fprintln(out, "|---|--:|--:|--:|--:|---|--:|--:|--:|")
	for _, a := range g.arms {
		fmt.Fprintf(out, "| %s | %s |\n", a.name, strings.Join(g.columns(a), " | "))
	}
	fmt.Fprintf(out, "\nNoise floor, from the same code run twice: %s.\n\n", command.Percent(g.floor()))
	for _, a := range g.arms {
		fmt.Fprintf(out, "- `%s`: %s.\n", a.name, a.note)
	}
}

// columns are those of an arm's row.
func (g *group) columns(a *arm) []string {
	if a.Err != nil {
		return command.NotCounted(a.Err, 8)
	}
	rate := stat.Summarize(a.Each(func(s sample) float64 { return 1e9 / s.perOperation() }))
	row := []string{fmt.Sprintf("%.0f", rate.Median), command.Spread(rate, "%.0f")}
	row = append(row, command.Compared(&g.arms[0].Runs, &a.Runs, sample.perOperation, g.floor(), 3)...)
	return append(row, a.parts()...)
}

// parts are the median of the trials' means, and what is left of an operation's time; they
// are empty where they are not reported.
func (a *arm) parts() []string {
	if len(a.Samples) == 0 || a.Samples[0].write == 0 {
		return []string{"", "", ""}
	}
	median := func(of func(sample) float64) string {
		return fmt.Sprintf("%.1f", stat.Summarize(a.Each(of)).Median/1e3)
	}
	sync := ""
	if a.Samples[0].sync > 0 {
		sync = median(func(s sample) float64 { return float64(s.sync) })
	}
	return []string{
		median(func(s sample) float64 { return float64(s.write) }), sync,
		median(func(s sample) float64 { return s.perOperation() - float64(s.write+s.sync) }),
	}
}

// floor is what our two arms differ by, or NaN.
func (g *group) floor() float64 {
	return command.Floor(&g.arms[0].Runs, &g.arms[1].Runs, sample.perOperation)
}
