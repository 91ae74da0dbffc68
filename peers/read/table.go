package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/lab/stat"
	"github.com/holdfast-go/holdfast/peers/internal/command"
)

func writeTables(out io.Writer, all []*group, size int) {
	for _, g := range all {
		g.writeTable(out, size)
	}
	fmt.Fprintf(out, "\n%s%s\n", command.Verdicts("group"), command.MoreRounds)
}

func (g *group) writeTable(out io.Writer, size int) {
	fmt.Fprintf(out, "\n## %s: %s\n\n", g.name, g.title)
	fmt.Fprintf(out, "| arm | ns/byte | MiB/s | 95 %% | time ÷ %s | 95 %% | than ours |\n|---|--:|--:|--:|--:|--:|---|\n", g.arms[0].name)
	for _, a := range g.arms {
		fmt.Fprintf(out, "| %s | %s |\n", a.name, strings.Join(g.columns(a, size), " | "))
	}
	fmt.Fprintf(out, "\nNoise floor, from the same code run twice: %s.\n\n", command.Percent(g.floor()))
	for _, a := range g.arms {
		fmt.Fprintf(out, "- `%s`: %s.\n", a.name, a.note)
	}
}

// columns are those of an arm's row.
func (g *group) columns(a *arm, size int) []string {
	if a.Err != nil {
		return command.NotCounted(a.Err, 6)
	}
	rate := stat.Summarize(a.Each(func(took time.Duration) float64 { return float64(size) / (1 << 20) / took.Seconds() }))
	row := []string{fmt.Sprintf("%.2f", 1e9/(rate.Median*(1<<20))), fmt.Sprintf("%.0f", rate.Median), command.Spread(rate, "%.0f")}
	return append(row, command.Compared(&g.arms[0].Runs, &a.Runs, nanoseconds, g.floor(), 2)...)
}

// floor is what our two arms differ by, or NaN.
func (g *group) floor() float64 {
	return command.Floor(&g.arms[0].Runs, &g.arms[1].Runs, nanoseconds)
}

func nanoseconds(took time.Duration) float64 { return float64(took) }
