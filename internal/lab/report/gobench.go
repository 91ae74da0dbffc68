package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/internal/lab/figure"
	"github.com/holdfast-go/holdfast/internal/lab/machine"
	"github.com/holdfast-go/holdfast/internal/lab/result"
)

// configuration returns the lines "key: value" by which benchstat distinguishes
// machines. What differs between runs of the same thing, such as the seed, is no
// key: benchstat would not compare the two.
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

// writeBenchmark writes the Go benchmark format: a line for each trial in a whole
// round. As in the tables, it leaves out the cell that repeats another and the one that
// writes nothing.
func writeBenchmark(w io.Writer, run result.Run) error {
	if run.Rounds() == 0 {
		return figure.ErrNoRound
	}
	var b strings.Builder
	b.WriteString(configuration(run.Header))
	for _, c := range run.Header.Cells {
		if c.Twin != "" || c.Empty {
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
		for _, t := range run.Rounded(c.Name) {
			cost := figure.LoadOf(c).Costs([]result.Trial{t})[0]
			fmt.Fprintf(&b, "%s\t%d%s\n", name, t.Records, benchmarkValues(t, cost))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func benchmarkValues(t result.Trial, cost float64) string {
	n := float64(t.Records)
	values := []struct {
		value float64
		unit  string
	}{
		{cost, "ns/op"},
		{float64(t.Size) / 1e6 / t.Elapsed.Seconds(), "MB/s"},
		{float64(t.User) / n, "user-ns/op"},
		{float64(t.System) / n, "sys-ns/op"},
		{float64(t.Writer.SystemCalls) / n, "calls/op"},
		{float64(t.Allocated) / n, "B/op"},
		{float64(t.Allocations) / n, "allocs/op"},
		{float64(t.Latency.P50), "p50-ns"},
		{float64(t.Latency.P99), "p99-ns"},
		{float64(t.Latency.P999), "p999-ns"},
		{float64(t.Latency.Max), "max-ns"},
	}
	text := ""
	for _, v := range values {
		if strings.HasSuffix(v.unit, "-ns") && v.value == 0 {
			continue // too few Writes were timed for it
		}
		text += "\t" + strconv.FormatFloat(v.value, 'g', -1, 64) + " " + v.unit
	}
	for _, name := range valueNames([]result.Trial{t}) {
		text += "\t" + strconv.FormatFloat(t.Values[name], 'g', -1, 64) + " " + name
	}
	return text
}
