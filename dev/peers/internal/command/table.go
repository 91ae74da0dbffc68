package command

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// A Column is one more column of a table.
type Column struct {
	Title string
	Of    func([]Sample) string
}

// Median is a column of the median of a value, printed with a verb.
func Median(title, verb string, of func(Sample) float64) Column {
	return Column{title, func(samples []Sample) string {
		values := make([]float64, len(samples))
		for i, s := range samples {
			values[i] = of(s)
		}
		return fmt.Sprintf(verb, stat.Summarize(values).Median)
	}}
}

// Value is a column of the median of one of the samples' Values.
func Value(title string, i int, text func(float64) string) Column {
	return Column{title, func(samples []Sample) string {
		values := make([]float64, len(samples))
		for j, s := range samples {
			if i >= len(s.Values) {
				return ""
			}
			values[j] = s.Values[i]
		}
		return text(stat.Summarize(values).Median)
	}}
}

// Tables writes a table for each group, and the meaning of the words in them.
func Tables[Job, Do any](out io.Writer, all []*Group[Job, Do], more ...Column) {
	noted := map[string]bool{}
	for _, g := range all {
		g.write(out, noted, more)
	}
	fmt.Fprintf(out, "\nThe columns *95 %%* hold 95 %% confidence intervals of the figure before them. *Slower*, *faster* and *same* (within %.0f %%) are proven over at least %d rounds, beyond the noise floor of the group; where the word is *not proven* and the interval wide, more rounds or a quieter machine may decide. CPU is the CPU time of all threads and processes of a trial.\n",
		stat.Band*100, stat.VerdictRounds)
}

// write writes the group's table, and the notes of its arms that were not written before.
func (g *Group[Job, Do]) write(out io.Writer, noted map[string]bool, more []Column) {
	fmt.Fprintf(out, "\n## %[1]s: %[2]s\n\n| arm | time per %[3]s | 95 %% | time ÷ %[4]s | 95 %% | than %[4]s | CPU per %[3]s | CPU ÷ %[4]s | 95 %% |", g.Name, g.Title, g.Unit, g.Arms[0].Name)
	for _, c := range more {
		fmt.Fprintf(out, " %s |", c.Title)
	}
	fmt.Fprintf(out, "\n|---|--:|--:|--:|--:|---|--:|--:|--:|%s\n", strings.Repeat("--:|", len(more)))
	for _, a := range g.Arms {
		fmt.Fprintf(out, "| %s | %s |\n", a.Name, strings.Join(g.columns(a, more), " | "))
	}
	if best := g.fastest(); best != nil && g.Arms[0].Err == nil {
		ratio, between, verdict := g.compared(best, Sample.Time)
		cpu, _, _ := g.compared(best, Sample.CPUTime)
		fmt.Fprintf(out, "\nThe fastest %s is `%s`: time ÷ %s %s [%s], %s; CPU ÷ %s.\n", g.Best, best.Name, g.Arms[0].Name, ratio, between, verdict, cpu)
	}
	fmt.Fprintf(out, "\nNoise floor, from the same code run twice: %s.\n\n", Percent(g.floor()))
	for _, a := range g.Arms {
		if line := fmt.Sprintf("- `%s`: %s.\n", a.Name, a.Note); !noted[line] {
			noted[line] = true
			fmt.Fprint(out, line)
		}
	}
	for _, note := range g.Notes {
		if !noted[note] {
			noted[note] = true
			fmt.Fprintf(out, "\n%s\n", note)
		}
	}
}

// fastest is the arm with the lowest median of those whose names begin with Best.
func (g *Group[Job, Do]) fastest() (best *Arm[Do]) {
	median := func(a *Arm[Do]) float64 { return stat.Summarize(a.Each(Sample.Time)).Median }
	for _, a := range g.Arms {
		if g.Best != "" && strings.HasPrefix(a.Name, g.Best) && a.Err == nil && (best == nil || median(a) < median(best)) {
			best = a
		}
	}
	return best
}

// columns returns the columns of an arm's row.
func (g *Group[Job, Do]) columns(a *Arm[Do], more []Column) []string {
	if a.Err != nil {
		row := make([]string, 8+len(more))
		row[0] = "does not count: " + InCell(a.Err.Error())
		return row
	}
	cost := stat.Summarize(a.Each(Sample.Time))
	row := []string{Duration(cost.Median), interval(cost.HasInterval(), cost.Low, cost.High, Duration)}
	ratio, between, verdict := g.compared(a, Sample.Time)
	row = append(row, ratio, between, verdict)
	if cpu := stat.Summarize(a.Each(Sample.CPUTime)).Median; cpu > 0 {
		ratio, between, _ = g.compared(a, Sample.CPUTime)
		row = append(row, Duration(cpu), ratio, between)
	} else {
		row = append(row, "", "", "") // it is not measured
	}
	for _, c := range more {
		row = append(row, c.Of(a.Samples))
	}
	return row
}

// compared sets an arm against ours: the ratio of their costs, its interval and the verdict,
// all empty for ours itself.
func (g *Group[Job, Do]) compared(a *Arm[Do], cost func(Sample) float64) (ratio, between, verdict string) {
	ours := g.Arms[0]
	if a == ours || ours.Err != nil {
		return "", "", ""
	}
	c := stat.Compare(ours.Each(cost), a.Each(cost), g.floor(), stat.Band)
	two := func(x float64) string { return fmt.Sprintf("%.2f", x) }
	return two(c.Ratio), interval(c.HasInterval(), c.Low, c.High, two), string(c.Verdict)
}

// floor returns the noise floor, from the difference between ours and its twin, or NaN.
func (g *Group[Job, Do]) floor() float64 {
	ours, twin := g.Arms[0], g.Arms[1]
	if ours.Err != nil || twin.Err != nil {
		return stat.Floor(nil, nil)
	}
	return stat.Floor(ours.Each(Sample.Time), twin.Each(Sample.Time))
}

func interval(has bool, low, high float64, text func(float64) string) string {
	if !has {
		return ""
	}
	return text(low) + "–" + text(high)
}

// Duration prints nanoseconds with three digits: more would be noise.
func Duration(ns float64) string {
	unit := "ns"
	for _, next := range []string{"µs", "ms", "s"} {
		if ns < 999.5 {
			break
		}
		ns, unit = ns/1000, next
	}
	if ns < 100 {
		return fmt.Sprintf("%.3g %s", ns, unit)
	}
	return fmt.Sprintf("%.0f %s", ns, unit)
}

// benchmark prints a trial as a line that benchstat reads.
func benchmark(out io.Writer, kind, group, arm string, s Sample) {
	name := strings.ReplaceAll(kind+"/"+group+"/"+arm, " ", "_")
	fmt.Fprintf(out, "Benchmark%s%s-%d\t%d\t%.2f ns/op\t%.2f cpu-ns/op\n", strings.ToUpper(name[:1]), name[1:], runtime.GOMAXPROCS(0), s.Units, s.Time(), s.CPUTime())
}

// longestCell is how many bytes of a text stand in a cell.
const longestCell = 160

// InCell makes a text fit for a table's cell.
func InCell(text string) string {
	return strings.NewReplacer("|", "/", "\n", " ").Replace(text[:min(len(text), longestCell)])
}

// Percent prints a share, which may be NaN.
func Percent(x float64) string {
	if x != x {
		return "not known"
	}
	return fmt.Sprintf("%.1f %%", x*100)
}

// Machine describes this machine, and how busy it is.
func Machine() string {
	load := "unknown"
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		load, _, _ = strings.Cut(string(text), " ")
	}
	facts := machine.Read(".")
	of := func(name string) string { return machine.Get(facts, name).Value }
	return fmt.Sprintf("%s, %s CPUs, %s, %s; load %s", of("CPU model"), of("CPUs"), of("kernel"), time.Now().Format(time.DateOnly), load)
}

// conditions describes the measurement: rounds done and asked for, the place, the versions.
func (r Rounds) conditions(complete int, place string, versions []string) string {
	missing := ""
	if complete < r.Count {
		missing = fmt.Sprintf(", interrupted before %d more", r.Count-complete)
	}
	return fmt.Sprintf("%s.\n%d rounds in random order (`-seed %d`)%s, on %s; %s/%s, %s, GOMAXPROCS %d.\nVersions: %s; holdfast is the one of this directory.",
		Machine(), complete, r.Seed, missing, place, runtime.GOOS, runtime.GOARCH, runtime.Version(), runtime.GOMAXPROCS(0), strings.Join(versions, ", "))
}

// Versions names the modules among these that this program is built with.
func Versions(modules ...string) (list []string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return []string{"not known"}
	}
	for _, m := range info.Deps {
		if slices.Contains(modules, m.Path) {
			list = append(list, m.Path+" "+m.Version)
		}
	}
	return list
}
