package main

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/internal/stat"
	"github.com/holdfast-go/holdfast/internal/sys"
)

func fileSystemOf(dir string) string {
	kind, err := sys.FileSystem(dir)
	if err != nil {
		return "an unknown file system"
	}
	return kind
}

func writeTables(out io.Writer, all []*group) {
	for _, g := range all {
		g.writeTable(out)
	}
	writeFlatness(out, all)
	fmt.Fprintf(out, "\n*slower*, *faster* and *same* (within %.0f %%) are proven over at least %d rounds, beyond the noise floor of the group; *not proven* with a wide interval asks for more rounds or a quieter machine. CPU is that of the whole process, all threads together. Memory is what Go's runtime allocated while the clock ran; C's is not in it.\n", stat.Band*100, stat.VerdictRounds)
}

func (j job) unit() string {
	if j.Lines > 0 {
		return "line"
	}
	return "file"
}

func (g *group) writeTable(out io.Writer) {
	fmt.Fprintf(out, "\n## %s: %s\n\nIn the clock: %s%s\n\n", g.name, g.title, strings.ToLower(g.clock[:1]), g.clock[1:])
	fmt.Fprintf(out, "| arm | µs/%[1]s | 95 %% | time ÷ %[2]s | 95 %% | than ours | CPU µs/%[1]s | B/%[1]s | allocs/%[1]s |\n|---|--:|--:|--:|--:|---|--:|--:|--:|\n", g.job.unit(), g.arms[0].name)
	for _, a := range g.arms {
		fmt.Fprintf(out, "| %s | %s |\n", a.name, strings.Join(g.columns(a), " | "))
	}
	fmt.Fprintf(out, "\nNoise floor, from the same code run twice: %s.\n\n", percent(g.floor()))
	for _, a := range g.arms {
		fmt.Fprintf(out, "- `%s`: %s.\n", a.name, a.note)
	}
	for _, note := range g.notes {
		fmt.Fprintf(out, "\n%s\n", note)
	}
}

func percent(x float64) string {
	if x != x {
		return "not known"
	}
	return fmt.Sprintf("%.1f %%", x*100)
}

// columns are those of an arm's row.
func (g *group) columns(a *arm) []string {
	if a.err != nil {
		return []string{"does not count: " + inCell(a.err.Error()), "", "", "", "", "", "", ""}
	}
	cost := stat.Summarize(a.each(sample.micros))
	row := []string{fmt.Sprintf("%.3g", cost.Median), ""}
	if cost.HasInterval() {
		row[1] = fmt.Sprintf("%.3g–%.3g", cost.Low, cost.High)
	}
	row = append(row, g.compared(a)...)
	return append(row,
		fmt.Sprintf("%.3g", stat.Summarize(a.each(sample.cpu)).Median),
		fmt.Sprintf("%.0f", stat.Summarize(a.each(sample.bytes)).Median),
		fmt.Sprintf("%.2f", stat.Summarize(a.each(sample.allocs)).Median))
}

// compared sets an arm against ours.
func (g *group) compared(a *arm) []string {
	ours := g.arms[0]
	if a == ours || ours.err != nil {
		return []string{"", "", ""}
	}
	c := stat.Compare(ours.each(sample.micros), a.each(sample.micros), g.floor(), stat.Band)
	if !c.HasInterval() {
		return []string{fmt.Sprintf("%.2f", c.Ratio), "", string(c.Verdict)}
	}
	return []string{fmt.Sprintf("%.2f", c.Ratio), fmt.Sprintf("%.2f–%.2f", c.Low, c.High), string(c.Verdict)}
}

func (s sample) micros() float64 { return float64(s.Elapsed) / 1e3 / float64(s.Units) }
func (s sample) cpu() float64    { return float64(s.CPU) / 1e3 / float64(s.Units) }
func (s sample) bytes() float64  { return float64(s.Bytes) / float64(s.Units) }
func (s sample) allocs() float64 { return float64(s.Allocs) / float64(s.Units) }

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
	return stat.Floor(g.arms[0].each(sample.micros), g.arms[1].each(sample.micros))
}

var creates = regexp.MustCompile(`^create/(\d+)$`)

// flat is the least number of files whose cost the largest is set against: with
// fewer, it is the folder that costs.
const flat = 100

// writeFlatness tells what a file costs as there are more of them.
func writeFlatness(out io.Writer, all []*group) {
	var columns []*group
	for _, g := range all {
		if m := creates.FindStringSubmatch(g.name); m != nil {
			if n, err := strconv.Atoi(m[1]); err == nil && n >= flat {
				columns = append(columns, g)
			}
		}
	}
	if len(columns) < 2 {
		return
	}
	fmt.Fprint(out, "\n## create: µs a file as there are more\n\n| arm |")
	for _, g := range columns {
		fmt.Fprintf(out, " %d |", g.job.Files)
	}
	fmt.Fprintf(out, " last ÷ first |\n|---|%s--:|\n", strings.Repeat("--:|", len(columns)))
	for _, a := range columns[0].arms {
		writeFlatRow(out, columns, a.name)
	}
}

func writeFlatRow(out io.Writer, columns []*group, name string) {
	fmt.Fprintf(out, "| %s |", name)
	var costs []float64
	for _, g := range columns {
		_, a := find([]*group{g}, g.name, name)
		if a == nil || a.err != nil {
			fmt.Fprint(out, " – |")
			continue
		}
		costs = append(costs, stat.Summarize(a.each(sample.micros)).Median)
		fmt.Fprintf(out, " %.3g |", costs[len(costs)-1])
	}
	if len(costs) < len(columns) {
		fmt.Fprint(out, " – |\n")
		return
	}
	fmt.Fprintf(out, " %.2f |\n", costs[len(costs)-1]/costs[0])
}
