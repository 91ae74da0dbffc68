package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/holdfast-go/holdfast/internal/stat"
)

func writeTables(out io.Writer, all []*group) {
	for _, g := range all {
		g.writeTable(out)
	}
	fmt.Fprintf(out, "\n*slower*, *faster* and *same* (within %.0f %%) are proven over at least %d rounds, beyond the noise floor of the group.\n\nWhere arms differ by construction:\n\n", stat.Band*100, stat.VerdictRounds)
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
	fmt.Fprintf(out, "\nNoise floor, from the same code run twice: %s.\n\n", percent(g.floor()))
	for _, a := range g.arms {
		fmt.Fprintf(out, "- `%s`: %s.\n", a.name, a.note)
	}
}

// columns are those of an arm's row.
func (g *group) columns(a *arm) []string {
	if a.err != nil {
		return []string{"does not count: " + strings.NewReplacer("|", "/", "\n", " ").Replace(a.err.Error()), "", "", "", "", "", "", ""}
	}
	rate := stat.Summarize(a.each(func(s sample) float64 { return 1e9 / s.perOperation() }))
	row := []string{fmt.Sprintf("%.0f", rate.Median), ""}
	if rate.HasInterval() {
		row[1] = fmt.Sprintf("%.0f–%.0f", rate.Low, rate.High)
	}
	return append(append(row, g.compared(a)...), a.parts()...)
}

// compared sets an arm against ours.
func (g *group) compared(a *arm) []string {
	ours := g.arms[0]
	if a == ours || ours.err != nil {
		return []string{"", "", ""}
	}
	c := stat.Compare(ours.each(sample.perOperation), a.each(sample.perOperation), g.floor(), stat.Band)
	if !c.HasInterval() {
		return []string{fmt.Sprintf("%.3f", c.Ratio), "", string(c.Verdict)}
	}
	return []string{fmt.Sprintf("%.3f", c.Ratio), fmt.Sprintf("%.3f–%.3f", c.Low, c.High), string(c.Verdict)}
}

// parts are the median of the trials' means, and what is left of an operation's
// time; they are empty where they are not told.
func (a *arm) parts() []string {
	if len(a.samples) == 0 || a.samples[0].write == 0 {
		return []string{"", "", ""}
	}
	median := func(of func(sample) float64) string {
		return fmt.Sprintf("%.1f", stat.Summarize(a.each(of)).Median/1e3)
	}
	sync := ""
	if a.samples[0].sync > 0 {
		sync = median(func(s sample) float64 { return float64(s.sync) })
	}
	return []string{
		median(func(s sample) float64 { return float64(s.write) }), sync,
		median(func(s sample) float64 { return s.perOperation() - float64(s.write+s.sync) }),
	}
}

func (a *arm) each(of func(sample) float64) []float64 {
	values := make([]float64, len(a.samples))
	for i, s := range a.samples {
		values[i] = of(s)
	}
	return values
}

// floor is what our two arms differ by, or NaN.
func (g *group) floor() float64 {
	if g.arms[0].err != nil || g.arms[1].err != nil {
		return stat.Floor(nil, nil)
	}
	return stat.Floor(g.arms[0].each(sample.perOperation), g.arms[1].each(sample.perOperation))
}

func percent(x float64) string {
	if x != x {
		return "not known"
	}
	return fmt.Sprintf("%.1f %%", x*100)
}
