package report_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/cmd/internal/lab"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/report"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

func export(t *testing.T, run result.Run, format report.Format) string {
	t.Helper()
	var b bytes.Buffer
	if err := report.Export(&b, lab.Studies(), run, format); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// table reads a CSV export: a map for each row.
func table(t *testing.T, run result.Run) (head []string, rows []map[string]string) {
	t.Helper()
	lines, err := csv.NewReader(strings.NewReader(export(t, run, report.CSV))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, name := range lines[0] {
			row[name] = line[i]
		}
		rows = append(rows, row)
	}
	return lines[0], rows
}

func TestCSVHasARowForEachTrial(t *testing.T) {
	run := planted(t, 2)
	steal := 5 * time.Millisecond
	run.Trials[0].Activity = &machine.Activity{CPUSteal: &steal}
	run.Trials[0].Before = &result.Residency{Pages: 8, Source: "cachestat, or \"mincore\""}
	run.Trials = run.Trials[:len(run.Trials)-1]
	_, rows := table(t, run)
	if len(rows) != len(run.Trials) {
		t.Fatalf("%d rows of %d trials", len(rows), len(run.Trials))
	}
	check := func(row int, key, want string) {
		t.Helper()
		if got := rows[row][key]; got != want {
			t.Errorf("row %d: %s is %q, want %q", row, key, got, want)
		}
	}
	check(0, "seed", "42")
	check(0, "policy", "buffer=0,sync=never")
	check(0, "round", "0")
	check(0, "whole_round", "false")
	check(0, "system_calls_total", "23")
	check(0, "activity_cpu_steal_ns", "5000000")
	check(0, "cache_before_resident_pages", "0")
	check(0, "cache_before_source", "cachestat, or \"mincore\"")
	check(9, "whole_round", "true")
	check(9, "records", "10000")
	check(9, "records_planned", "10000")
	check(9, "elapsed_ns", fmt.Sprint(int64(run.Trials[9].Elapsed)))
	check(9, "latency_p99_ns", "")
	check(9, "activity_cpu_steal_ns", "")
	check(9, "cache_before_pages", "")
	check(17, "twin_of", run.Header.Cells[1].Name)
	check(18, "whole_round", "false")
}

func TestCSVNamesEveryColumnOnce(t *testing.T) {
	head, _ := table(t, planted(t, 1))
	for i, name := range head {
		if slices.Contains(head[:i], name) || !regexp.MustCompile(`^[a-z0-9_]+$`).MatchString(name) {
			t.Errorf("column %d is %q", i+1, name)
		}
	}
}

func TestCSVColumnsAreDocumented(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "results.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(data), "<!-- columns:begin -->")
	section, _, _ = strings.Cut(section, "<!-- columns:end -->")
	var documented []string
	for _, name := range regexp.MustCompile("`([a-z0-9_]+)`").FindAllStringSubmatch(section, -1) {
		documented = append(documented, name[1])
	}
	head, _ := table(t, planted(t, 1))
	if !slices.Equal(documented, head) {
		t.Errorf("docs/results.md names the columns\n`%s`\nand the export has\n`%s`", strings.Join(documented, "`, `"), strings.Join(head, "`, `"))
	}
}

func TestJSONHoldsFiguresHeaderAndWarnings(t *testing.T) {
	var d struct {
		Kind    string
		Version int `json:"figures_version"`
		Header  result.Header
		End     *result.End
		Missing string `json:"not_complete"`
		Advice  struct{ Policy, Sentence string }
		Losses  []struct {
			Policy string
			Power  string `json:"lost_when_machine_dies"`
		}
		Figures struct {
			Rounds   int
			Warnings []figure.Warning
			Groups   []struct {
				Writers int
				Rows    []struct {
					Cell    result.Cell
					Fastest bool
					Cost    struct{ Ratio, Low *float64 }
					Memory  string `json:"buffers"`
				}
			}
		}
	}
	text := export(t, paced(t, 3), report.JSON)
	if err := json.Unmarshal([]byte(text), &d); err != nil || d.Advice.Sentence == "" {
		t.Errorf("paced: %v, %+v", err, d.Advice)
	}
	d.Advice.Sentence = ""
	text = export(t, planted(t, 3), report.JSON)
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	if d.Kind != "figures" || d.Version != 2 || d.Header.Seed != 42 || d.End == nil || d.Missing != "" || d.Advice.Sentence != "" {
		t.Errorf("%+v", d)
	}
	if len(d.Losses) != 4 || d.Losses[0].Power != "anything not synced" {
		t.Errorf("losses %+v", d.Losses)
	}
	if len(d.Figures.Warnings) != 1 || d.Figures.Warnings[0].Code != "too-few-rounds" || d.Figures.Rounds != 3 {
		t.Errorf("%+v", d.Figures)
	}
	row := d.Figures.Groups[1].Rows[0]
	if row.Cell.Writers != 64 || row.Cost.Ratio == nil || *row.Cost.Ratio < 14 || row.Cost.Low != nil || d.Figures.Groups[1].Rows[1].Memory != "128KiB" {
		t.Errorf("%+v", row)
	}
}

func TestExportsOfOneRunAreTheSameBytes(t *testing.T) {
	for _, format := range report.Formats() {
		first, second := export(t, planted(t, 10), format), export(t, planted(t, 10), format)
		if first != second {
			t.Errorf("%s differs from itself", format)
		}
	}
}

func TestExportNeedsARound(t *testing.T) {
	run := planted(t, 1)
	run.Trials = run.Trials[:3]
	for _, format := range report.Formats() {
		var b bytes.Buffer
		err := report.Export(&b, lab.Studies(), run, format)
		if raw := format == report.CSV; raw != (err == nil) || !raw && (!errors.Is(err, figure.ErrNoRound) || b.Len() > 0) {
			t.Errorf("%s: %v, %d bytes", format, err, b.Len())
		}
	}
}

func TestTwinsAndEmptyCellsAreInNoTable(t *testing.T) {
	run := planted(t, 10)
	run.Header.Cells[0].Empty = true
	for _, format := range []report.Format{report.Benchmark, report.Markdown} {
		text := export(t, run, format)
		if strings.Contains(text, "/again") || strings.Contains(text, run.Header.Cells[0].Name+" ") {
			t.Errorf("%s:\n%s", format, text)
		}
	}
	if got, want := strings.Count(export(t, run, report.Benchmark), "\nBenchmark"), 7*10+7; got != want {
		t.Errorf("%d lines, want %d", got, want)
	}
}

// TestBenchmarkHasThePercentilesOfTheTable: the trials differ, so the median of their percentiles is
// not the percentile of all Writes together.
func TestBenchmarkHasThePercentilesOfTheTable(t *testing.T) {
	run := planted(t, 10)
	of := run.Header.Cells[1].Name
	of200 := func(d time.Duration) result.Latency {
		h := result.NewHistogram()
		for range 200 {
			result.Record(h, d)
		}
		l, err := result.NewLatency(h, stat.Supports)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	for i := range run.Trials {
		tr := run.Trials[i]
		if tr.Cell == of { // slow in three of the ten rounds, and no round has samples for a p99
			tr.Latency = of200(time.Millisecond)
			if tr.Round <= 3 {
				tr.Latency = of200(5 * time.Millisecond)
			}
		}
		tr.Elapsed = time.Second
	}
	f, err := figure.Of(run)
	if err != nil {
		t.Fatal(err)
	}
	text := export(t, run, report.Benchmark)
	for _, g := range f.Groups {
		for _, r := range g.Rows {
			if r.Cell.Name != of {
				continue
			}
			if want := fmt.Sprintf("\t2000\t%d p50-ns\t%d p99-ns\t", r.Latency.P50, r.Latency.P99); !strings.Contains(text, want) || r.Latency.P99 < 4*r.Latency.P50 {
				t.Errorf("no %q in\n%s", want, text)
			}
			if q, ok := r.Quantile(0.99); !ok || q.Value != r.Latency.P99 {
				t.Errorf("%+v is not %v", q, r.Latency.P99)
			}
			var b strings.Builder
			if err := report.Text(&b, lab.Studies(), run, 160, true); err != nil {
				t.Fatal(err)
			}
			// In the table's row of the cell, in JSON, and the word for it.
			for of, want := range map[string]string{
				b.String():                      " " + strings.Replace(fmt.Sprintf("%.2fms", r.Latency.P99.Seconds()*1000), ".00ms", "ms", 1),
				export(t, run, report.JSON):     fmt.Sprintf(`"p99_ns": %d`, r.Latency.P99),
				b.String() + " ":                "over all rounds",
				export(t, run, report.Markdown): "over all rounds",
			} {
				if !strings.Contains(strings.Join(strings.Fields(of), " "), strings.TrimSpace(want)) {
					t.Errorf("no %q in\n%s", want, of)
				}
			}
		}
	}
	if got, want := strings.Count(text, "p50-ns"), 8; got != want {
		t.Errorf("%d lines with percentiles, want %d", got, want)
	}
	if got, want := strings.Count(text, " cpu-sec/op"), 8*10; got != want {
		t.Errorf("%d lines with CPU time, want %d", got, want)
	}
	// The sum is exact for a trial of any length. If one trial of a cell has none, the cell has none.
	one := run.Trials[slices.IndexFunc(run.Trials, func(tr *result.Trial) bool { return tr.Cell == of && tr.Round > 0 })]
	one.User, one.System = 0, 0
	if got, want := strings.Count(export(t, run, report.Benchmark), " cpu-sec/op"), 7*10; got != want {
		t.Errorf("%d lines with CPU time, want %d", got, want)
	}
}

func TestGoldenExports(t *testing.T) {
	golden(t, "ten_rounds.md", export(t, planted(t, 10), report.Markdown))
	lines := strings.SplitAfter(export(t, planted(t, 10), report.Benchmark), "\n")
	golden(t, "ten_rounds_begin.bench.txt", strings.Join(lines[:12], ""))
}

func TestFormatsAreReadByName(t *testing.T) {
	for _, format := range report.Formats() {
		if got, err := report.ParseFormat(string(format)); got != format || err != nil {
			t.Errorf("%s: %s, %v", format, got, err)
		}
	}
	if _, err := report.ParseFormat("xml"); err == nil || err.Error() != `"xml" is not a format; the formats are csv, json, bench, markdown` {
		t.Errorf("%v", err)
	}
}

// beside compares a run with one whose first policy takes 20 % longer.
func beside(t *testing.T, change func(*result.Run)) figure.Contrast {
	t.Helper()
	later := planted(t, 10)
	for i := range later.Trials {
		if later.Trials[i].Cell == later.Header.Cells[0].Name {
			later.Trials[i].Elapsed = later.Trials[i].Elapsed * 120 / 100
		}
	}
	change(&later)
	a, errA := figure.NewSide("before.jsonl", planted(t, 10))
	b, errB := figure.NewSide("after.jsonl", later)
	c, err := figure.Compare(a, b, false, 0.05)
	if err := errors.Join(errA, errB, err); err != nil {
		t.Fatal(err)
	}
	return c
}

func contrast(t *testing.T, c figure.Contrast, format report.Format) string {
	t.Helper()
	return contrastWithin(t, c, format, 100)
}

func contrastWithin(t *testing.T, c figure.Contrast, format report.Format, columns int) string {
	t.Helper()
	var b bytes.Buffer
	if err := report.Contrast(&b, c, format, columns); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGoldenContrast(t *testing.T) {
	same := beside(t, func(*result.Run) {})
	golden(t, "contrast.txt", contrast(t, same, ""))
	golden(t, "contrast.md", contrast(t, same, report.Markdown))
	other := beside(t, func(r *result.Run) {
		r.Header.Machine = append(slices.Clone(r.Header.Machine), machine.Fact{Name: "kernel", Value: "7.0", Source: "uname"})
		r.Header.Cells[2].Records *= 2
		r.Header.Cells[7].Name = "another"
		for i := range r.Trials {
			if strings.HasSuffix(r.Trials[i].Cell, "group64") {
				r.Trials[i].Cell = "another"
			}
		}
		r.End = nil
	})
	golden(t, "contrast_unpaired.txt", contrast(t, other, ""))
	golden(t, "contrast_60.txt", contrastWithin(t, other, "", 60))
	other.Machines[0].A = strings.Repeat("a value of many words ", 6)
	for _, columns := range []int{60, 80, 100} {
		for line := range strings.Lines(contrastWithin(t, other, "", columns)) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > columns {
				t.Errorf("%d columns of %d: %s", n, columns, line)
			}
		}
	}
}

func TestContrastAsJSON(t *testing.T) {
	var d struct {
		Kind      string
		Regressed bool
		A         struct{ Name string }
		Unpaired  string `json:"unpaired_because"`
		Cells     []struct {
			Cell      result.Cell
			Regressed bool
			Cost      struct{ Verdict string }
		}
		Overall struct{ Ratio float64 }
	}
	if err := json.Unmarshal([]byte(contrast(t, beside(t, func(*result.Run) {}), report.JSON)), &d); err != nil {
		t.Fatal(err)
	}
	if d.Kind != "comparison" || !d.Regressed || d.A.Name != "before.jsonl" || d.Unpaired != "" || len(d.Cells) != 8 {
		t.Errorf("%+v", d)
	}
	if !d.Cells[0].Regressed || d.Cells[1].Regressed || d.Cells[0].Cost.Verdict != "slower" || d.Overall.Ratio <= 1 {
		t.Errorf("%+v", d.Cells)
	}
}

// TestHowTheMachineMovedIsShown: within a run and between two.
func TestHowTheMachineMovedIsShown(t *testing.T) {
	run := func(name string, slower, fdatasync int) figure.Side {
		r := planted(t, 10)
		for i := range r.Trials {
			if r.Trials[i].Cell == r.Header.Cells[3].Name { // sync=group
				r.Trials[i].Elapsed = r.Trials[i].Elapsed * time.Duration(slower) / 100
			}
		}
		for round := range 10 {
			d := func(ns int) time.Duration { return time.Duration(ns * (1000 + round%3)) }
			r.Controls = append(r.Controls, result.Control{Round: round + 1, Write: d(20), Fdatasync: d(fdatasync)})
		}
		if shown, want := text(t, r), "the machine: write(2) ±1 %, fdatasync(2) ±1 % in nine rounds of ten"; !strings.Contains(strings.Join(strings.Fields(shown), " "), want) {
			t.Errorf("no %q in\n%s", want, shown)
		}
		r.Header.StartedAt = r.Header.StartedAt.Add(time.Duration(fdatasync) * time.Hour)
		side, err := figure.NewSide(name, r)
		if err != nil {
			t.Fatal(err)
		}
		return side
	}
	c, err := figure.Compare(run("a", 100, 100), run("b", 120, 150), false, stat.Band)
	if err != nil {
		t.Fatal(err)
	}
	shown := strings.Join(strings.Fields(contrast(t, c, "")), " ")
	for _, want := range []string{"not proven: the machine moved by 50 %", "write(2) 1.00x, fdatasync(2) 1.50x"} {
		if !strings.Contains(shown, want) {
			t.Errorf("no %q in\n%s", want, shown)
		}
	}
}
