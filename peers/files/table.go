package main

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/internal/lab/stat"
	"github.com/holdfast-go/holdfast/peers/internal/command"
)

func writeTables(out io.Writer, all []*group) {
	for _, g := range all {
		g.writeTable(out)
	}
	writeFlatness(out, all)
	fmt.Fprintf(out, "\n%s%s CPU is that of the whole process, all threads together. Memory is what Go's runtime allocated while the clock ran; C's is not in it.\n", command.Verdicts("group"), command.MoreRounds)
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
	fmt.Fprintf(out, "\nNoise floor, from the same code run twice: %s.\n\n", command.Percent(g.floor()))
	for _, a := range g.arms {
		fmt.Fprintf(out, "- `%s`: %s.\n", a.name, a.note)
	}
	for _, note := range g.notes {
		fmt.Fprintf(out, "\n%s\n", note)
	}
}

// columns are those of an arm's row.
func (g *group) columns(a *arm) []string {
	if a.Err != nil {
		return command.NotCounted(a.Err, 8)
	}
	cost := stat.Summarize(a.Each(command.Sample.Micros))
	row := []string{fmt.Sprintf("%.3g", cost.Median), command.Spread(cost, "%.3g")}
	row = append(row, command.Compared(&g.arms[0].Runs, &a.Runs, command.Sample.Micros, g.floor(), 2)...)
	return append(row,
		fmt.Sprintf("%.3g", stat.Summarize(a.Each(command.Sample.CPUMicros)).Median),
		fmt.Sprintf("%.0f", stat.Summarize(a.Each(command.Sample.UnitBytes)).Median),
		fmt.Sprintf("%.2f", stat.Summarize(a.Each(command.Sample.UnitAllocs)).Median))
}

// floor is what our two arms differ by, or NaN.
func (g *group) floor() float64 {
	return command.Floor(&g.arms[0].Runs, &g.arms[1].Runs, command.Sample.Micros)
}

var creates = regexp.MustCompile(`^create/(\d+)$`)

// flat is the least number of files that the largest is compared with: with fewer, the
// directory is most of the cost.
const flat = 100

// writeFlatness writes the cost of a file as there are more of them.
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
		if a == nil || a.Err != nil {
			fmt.Fprint(out, " – |")
			continue
		}
		costs = append(costs, stat.Summarize(a.Each(command.Sample.Micros)).Median)
		fmt.Fprintf(out, " %.3g |", costs[len(costs)-1])
	}
	if len(costs) < len(columns) {
		fmt.Fprint(out, " – |\n")
		return
	}
	fmt.Fprintf(out, " %.2f |\n", costs[len(costs)-1]/costs[0])
}
