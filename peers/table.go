package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/lab/stat"
	"github.com/holdfast-go/holdfast/peers/internal/command"
)

// writeTables writes, for each comparison, an overview, a table for each load
// and the notes.
func writeTables(out io.Writer, all []*block, conditions string) {
	fmt.Fprintf(out, "# holdfast and its peers\n\n%s\n", conditions)
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].comparison == all[0].comparison {
			n++
		}
		writeComparison(out, all[:n])
		all = all[n:]
	}
}

func writeComparison(out io.Writer, blocks []*block) {
	fmt.Fprintf(out, "\n## %s\n\n", blocks[0].title)
	writeOverview(out, blocks)
	for _, b := range blocks {
		writeBlock(out, b)
	}
	fmt.Fprintln(out)
	for _, n := range blocks[0].notes {
		fmt.Fprintf(out, "- %s\n", n)
	}
	for _, a := range blocks[0].arms {
		if slices.ContainsFunc(blocks, func(b *block) bool { return b.find(a.name) != nil }) {
			fmt.Fprintf(out, "- `%s`: %s.\n", a.name, a.note)
		}
	}
}

// writeOverview writes the medians alone, a column for each load.
func writeOverview(out io.Writer, blocks []*block) {
	fmt.Fprint(out, "| time a record (median), by goroutines |")
	for _, b := range blocks {
		fmt.Fprintf(out, " %d |", b.load.goroutines)
	}
	fmt.Fprintf(out, "\n|---|%s\n", strings.Repeat("--:|", len(blocks)))
	for _, a := range blocks[0].arms {
		row, any := "| "+a.name+" |", false
		for _, b := range blocks {
			text := ""
			if c := b.find(a.name); c != nil {
				text, any = c.median(), true
			}
			row += " " + text + " |"
		}
		if any {
			fmt.Fprintln(out, row)
		}
	}
}

// median is the median time of a record in words.
func (c *cell) median() string {
	if c.Failure() != nil {
		return "wrong"
	}
	return figure(stat.Summarize(c.perRecord(elapsed)).Median)
}

func writeBlock(out io.Writer, b *block) {
	fmt.Fprintf(out, "\n### %s\n\n", words(b.cells[0].work))
	fmt.Fprintln(out, "| arm | time a record | min–max | records/s | time ÷ holdfast | 95 % interval | than holdfast | CPU a record | open ms | close ms |")
	fmt.Fprintln(out, "|---|--:|--:|--:|--:|--:|---|--:|--:|--:|")
	floor, base := b.floor(), b.find(baseline)
	for _, c := range b.cells {
		writeCell(out, c, base, floor)
	}
	fmt.Fprintf(out, "\nNoise floor, from the same code run twice: %s. *faster*, *slower* and *same* (within %.0f %%) are proven over at least %d rounds.\n",
		command.Percent(floor), stat.Band*100, stat.VerdictRounds)
}

func words(w work) string {
	s := "s"
	if w.goroutines == 1 {
		s = ""
	}
	return fmt.Sprintf("%d goroutine%s, %d records in all (%.1f MB)", w.goroutines, s, w.records(), float64(w.bytes())/1e6)
}

func writeCell(out io.Writer, c, base *cell, floor float64) {
	if err := c.Failure(); err != nil {
		fmt.Fprintf(out, "| %s | does not count: %s | | | | | | | | |\n", c.arm.name, strings.ReplaceAll(err.Error(), "|", "/"))
		return
	}
	per := c.perRecord(elapsed)
	median := stat.Summarize(per).Median
	fmt.Fprintf(out, "| %s | %s | %s–%s | %s | %s | %s | %s | %s |\n", c.arm.name,
		figure(median), figure(slices.Min(per)), figure(slices.Max(per)), count(1e9/median),
		compared(c, base, floor), figure(stat.Summarize(c.perRecord(cpu)).Median),
		millis(c.values(opened)), millis(c.values(closed)))
}

// compared fills the columns that set c against the baseline.
func compared(c, base *cell, floor float64) string {
	if c == base || base == nil || base.Failure() != nil {
		return "| |"
	}
	r := stat.Compare(base.perRecord(elapsed), c.perRecord(elapsed), floor, stat.Band)
	if !r.HasInterval() {
		return fmt.Sprintf("%s | | %s", ratio(r.Ratio), r.Verdict)
	}
	return fmt.Sprintf("%s | %s–%s | %s", ratio(r.Ratio), ratio(r.Low), ratio(r.High), r.Verdict)
}

// floor is what two runs of the baseline differ by, or NaN.
func (b *block) floor() float64 {
	first, second := b.find(baseline), b.find(again)
	if first == nil || second == nil {
		return stat.Floor(nil, nil)
	}
	return stat.Floor(first.perRecord(elapsed), second.perRecord(elapsed))
}

func (b *block) find(name string) *cell {
	for _, c := range b.cells {
		if c.arm.name == name {
			return c
		}
	}
	return nil
}

func elapsed(s sample) time.Duration { return s.elapsed }
func cpu(s sample) time.Duration     { return s.cpu }
func opened(s sample) time.Duration  { return s.open }
func closed(s sample) time.Duration  { return s.close }

// values returns one of the times of every round in nanoseconds.
func (c *cell) values(of func(sample) time.Duration) []float64 {
	ns := make([]float64, len(c.samples))
	for i, s := range c.samples {
		ns[i] = float64(of(s))
	}
	return ns
}

func (c *cell) perRecord(of func(sample) time.Duration) []float64 {
	ns := c.values(of)
	for i := range ns {
		ns[i] /= float64(c.work.records())
	}
	return ns
}

// writeBench writes a trial as a line that benchstat reads.
func writeBench(out io.Writer, c *cell, s sample) {
	n := c.work.records()
	name := strings.ToUpper(c.name[:1]) + c.name[1:]
	fmt.Fprintf(out, "Benchmark%s-%d\t%d\t%.2f ns/op\t%.2f MB/s\t%.2f cpu-ns/op\n", name, runtime.GOMAXPROCS(0), n,
		float64(s.elapsed)/float64(n), float64(c.work.bytes())/1e6/s.elapsed.Seconds(), float64(s.cpu)/float64(n))
}

// versions names Go's and each peer's.
func versions() string {
	peers := command.Versions("go.uber.org/zap", "gopkg.in/natefinch/lumberjack.v2", "github.com/DeRuina/timberjack", "go.etcd.io/etcd/server/v3", "github.com/cockroachdb/pebble/v2",
		"github.com/hashicorp/raft-wal", "github.com/tidwall/wal", "go.etcd.io/bbolt", "github.com/dgraph-io/badger/v4", "modernc.org/sqlite")
	return strings.Join(append([]string{runtime.Version()}, peers...), ", ")
}

// figure prints a time with three digits: more would be noise.
func figure(ns float64) string {
	switch {
	case ns < 1e3:
		return digits(ns) + " ns"
	case ns < 1e6:
		return digits(ns/1e3) + " µs"
	default:
		return digits(ns/1e6) + " ms"
	}
}

func digits(x float64) string {
	if x < 100 {
		return fmt.Sprintf("%.3g", x)
	}
	return fmt.Sprintf("%.0f", x)
}

func ratio(x float64) string { return fmt.Sprintf("%.2f", x) }

func count(x float64) string {
	switch {
	case x >= 1e6:
		return fmt.Sprintf("%.3gM", x/1e6)
	case x >= 1e4:
		return fmt.Sprintf("%.3gk", x/1e3)
	default:
		return fmt.Sprintf("%.0f", x)
	}
}

func millis(ns []float64) string { return fmt.Sprintf("%.2f", stat.Summarize(ns).Median/1e6) }
