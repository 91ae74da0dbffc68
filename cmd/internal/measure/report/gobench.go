package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

// configuration returns the lines "key: value" by which benchstat distinguishes
// machines. A property that differs between runs of the same thing, such as the seed, is no key:
// benchstat would not compare the two runs.
func configuration(h result.Header) string {
	system := machine.Get(h.Machine, "operating system").Value
	goos, goarch, _ := strings.Cut(system, "/")
	lines := [][2]string{
		{"goos", goos}, {"goarch", goarch}, {"pkg", "github.com/holdfast-go/holdfast"},
		{"cpu", machine.Get(h.Machine, "CPU model").Value}, {"fs", machine.Get(h.Machine, "file system").Value},
		{"device", machine.Get(h.Machine, "device").Value}, {"kernel", machine.Get(h.Machine, "kernel").Value},
		{"study", h.Study},
	}
	text := fmt.Sprintf("# %s, seed %d, begun %s\n", oneLine(h.Program), h.Seed, h.StartedAt.Format("2006-01-02T15:04:05Z07:00"))
	for _, l := range lines {
		if own := l[0] == "fs" || l[0] == "device"; own && len(h.FileSystems) > 0 {
			continue // each cell's name has its file system
		}
		if l[1] != "" && l[1] != machine.Unknown {
			text += l[0] + ": " + oneLine(l[1]) + "\n"
		}
	}
	return text
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// writeBenchmark writes the Go benchmark format. Each trial in a complete round has a line. Each cell
// has a line with the percentiles of all its trials together, the same as in the tables. Twins and
// empty cells are left out.
func writeBenchmark(w io.Writer, run result.Run) error {
	figures, err := figure.Of(run)
	if err != nil {
		return err
	}
	rows := map[string]figure.Row{}
	for _, g := range figures.Groups {
		for _, r := range g.Rows {
			rows[r.Cell.Name] = r
		}
	}
	var b strings.Builder
	b.WriteString(configuration(run.Header))
	for _, c := range run.Header.Cells {
		if c.Twin != "" || c.Empty || c.StandIn {
			continue
		}
		// The name has parts /key=value, and the number of CPUs as Go itself adds it.
		study := run.Header.Study
		if study != "" {
			study = strings.ToUpper(study[:1]) + study[1:]
		}
		name := "Benchmark" + strings.Join(strings.Fields(study+"/"+c.Name), "_")
		if cpus, err := strconv.Atoi(machine.Get(run.Header.Machine, "GOMAXPROCS").Value); err == nil && cpus > 0 {
			name += fmt.Sprintf("-%d", cpus)
		}
		trials := figures.Rounded(c.Name)
		// The sum of user and system time is exact for a trial of any length. Benchstat treats a unit with
		// zero values separately, which occur where a system counts only ticks.
		hasCPU := !slices.ContainsFunc(trials, func(t *result.Trial) bool { return t.CPU() <= 0 })
		for _, t := range trials {
			fmt.Fprintf(&b, "%s\t%d%s\n", name, t.Records, benchmarkValues(t, figure.LoadOf(c).Costs([]*result.Trial{t})[0], hasCPU))
		}
		l := rows[c.Name].Latency
		line := ""
		for _, v := range []struct {
			value time.Duration
			unit  string
		}{{l.P50, "p50-ns"}, {l.P99, "p99-ns"}, {l.P999, "p999-ns"}, {l.Max, "max-ns"}} {
			if v.value > 0 { // else too few Writes were timed for it
				line += fmt.Sprintf("\t%d %s", v.value.Nanoseconds(), v.unit)
			}
		}
		if line != "" {
			fmt.Fprintf(&b, "%s\t%d%s\n", name, l.Count, line)
		}
	}
	_, err = io.WriteString(w, b.String())
	return err
}

func benchmarkValues(t *result.Trial, cost float64, hasCPU bool) string {
	n := float64(t.Records)
	type value struct {
		value float64
		unit  string
	}
	values := []value{
		{cost, "ns/op"},
		{float64(t.Size) / 1e6 / t.Elapsed.Seconds(), "MB/s"},
		{float64(t.Writer.SystemCalls) / n, "calls/op"},
		{float64(t.Allocated) / n, "B/op"},
		{float64(t.Allocations) / n, "allocs/op"},
	}
	if hasCPU {
		values = slices.Insert(values, 2, value{t.CPU().Seconds() / n, "cpu-sec/op"})
	}
	text := ""
	for _, v := range values {
		text += "\t" + benchNumber(v.value) + " " + v.unit
	}
	for _, name := range valueNames(t) {
		text += "\t" + benchNumber(t.Values[name]) + " " + name
	}
	return text
}

// benchNumber writes a value with a few digits more than go test -bench: further digits are noise.
func benchNumber(x float64) string {
	const digits = 6
	if math.Abs(x) >= 1e6 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', digits, 64)
}
