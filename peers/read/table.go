package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/holdfast-go/holdfast/internal/stat"
)

func writeTables(out io.Writer, all []*group, size int) {
	for _, g := range all {
		g.writeTable(out, size)
	}
	fmt.Fprintf(out, "\n*slower*, *faster* and *same* (within %.0f %%) are proven over at least %d rounds, beyond the noise floor of the group; *not proven* with a wide interval asks for more rounds or a quieter machine.\n", stat.Band*100, stat.VerdictRounds)
}

func (g *group) writeTable(out io.Writer, size int) {
	fmt.Fprintf(out, "\n## %s: %s\n\n", g.name, g.title)
	fmt.Fprintf(out, "| arm | ns/byte | MiB/s | 95 %% | time ÷ %s | 95 %% | than ours |\n|---|--:|--:|--:|--:|--:|---|\n", g.arms[0].name)
	for _, a := range g.arms {
		fmt.Fprintf(out, "| %s | %s |\n", a.name, strings.Join(g.columns(a, size), " | "))
	}
	fmt.Fprintf(out, "\nNoise floor, from the same code run twice: %s.\n\n", percent(g.floor()))
	for _, a := range g.arms {
		fmt.Fprintf(out, "- `%s`: %s.\n", a.name, a.note)
	}
}
func percent(x float64) string {
	if x != x {
		return "not known"
	}
	return fmt.Sprintf("%.1f %%", x*100)
}

// columns are those of an arm's row.
func (g *group) columns(a *arm, size int) []string {
	if a.err != nil {
		return []string{"does not count: " + strings.NewReplacer("|", "/", "\n", " ").Replace(a.err.Error()), "", "", "", "", ""}
	}
	rate := stat.Summarize(a.each(func(ns float64) float64 { return float64(size) / (1 << 20) / ns * 1e9 }))
	row := []string{fmt.Sprintf("%.2f", 1e9/(rate.Median*(1<<20))), fmt.Sprintf("%.0f", rate.Median), ""}
	if rate.HasInterval() {
		row[2] = fmt.Sprintf("%.0f–%.0f", rate.Low, rate.High)
	}
	return append(row, g.compared(a)...)
}

// compared sets an arm against ours.
func (g *group) compared(a *arm) []string {
	ours := g.arms[0]
	if a == ours || ours.err != nil {
		return []string{"", "", ""}
	}
	c := stat.Compare(ours.each(same), a.each(same), g.floor(), stat.Band)
	if !c.HasInterval() {
		return []string{fmt.Sprintf("%.2f", c.Ratio), "", string(c.Verdict)}
	}
	return []string{fmt.Sprintf("%.2f", c.Ratio), fmt.Sprintf("%.2f–%.2f", c.Low, c.High), string(c.Verdict)}
}

func same(ns float64) float64 { return ns }

func (a *arm) each(of func(ns float64) float64) []float64 {
	values := make([]float64, len(a.samples))
	for i, took := range a.samples {
		values[i] = of(float64(took))
	}
	return values
}

// floor is what our two arms differ by, or NaN.
func (g *group) floor() float64 {
	if g.arms[0].err != nil || g.arms[1].err != nil {
		return stat.Floor(nil, nil)
	}
	return stat.Floor(g.arms[0].each(same), g.arms[1].each(same))
}
