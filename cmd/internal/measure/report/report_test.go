package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"html"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/lab"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/report"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

var update = flag.Bool("update", false, "write the golden files anew")

// planted returns a run with a known time for each cell. The first policy's trials take 10 ms, the
// next's 20, and so on, a little different in each round.
func planted(t *testing.T, rounds int) result.Run {
	t.Helper()
	run := result.Run{Header: result.Header{
		SchemaVersion: result.SchemaVersion, Program: "holdfast v0.0.0", Study: "policy", Question: "what is it worth",
		StartedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Dir: "/data", Seed: 42,
		Plan: result.Plan{Preset: "default", Rounds: rounds},
		Machine: []machine.Fact{
			{Name: "CPU model", Value: "abacus <9000>", Source: "/proc/cpuinfo"}, {Name: "CPUs", Value: "2", Source: "asked"},
			{Name: "virtualisation", Value: machine.Unknown, Source: "/proc/cpuinfo"}, {Name: "file system", Value: "ext4", Source: "statfs"},
		},
	}}
	policies := []string{"buffer=0", "buffer=64KiB", "buffer=64KiB,flush=100ms,sync=1s", "buffer=64KiB,sync=group"}
	for _, writers := range []int{1, 64} {
		for _, text := range policies {
			p, err := holdfast.ParsePolicy(text)
			if err != nil {
				t.Fatal(err)
			}
			run.Header.Cells = append(run.Header.Cells, result.Cell{Name: fmt.Sprint(p, writers), Policy: p, RecordBytes: 128, Writers: writers, Records: 10000, LatencyStride: 31})
		}
	}
	twin := run.Header.Cells[1]
	twin.Name, twin.Twin = twin.Name+"/again", twin.Name
	run.Header.Cells = append(run.Header.Cells, twin)
	for round := range rounds + 1 {
		for i, c := range run.Header.Cells {
			run.Trials = append(run.Trials, plantedTrial(t, c, i, round))
		}
	}
	run.End = &result.End{State: result.Complete, Rounds: rounds, Elapsed: 41 * time.Second}
	return run
}

var plantedTimes = []int{140, 10, 11, 300, 180, 12, 13, 25, 10} // ms a trial

func plantedTrial(t testing.TB, c result.Cell, i, round int) *result.Trial {
	t.Helper()
	elapsed := time.Duration(plantedTimes[i])*time.Millisecond + time.Duration((round*7+i*3)%5)*20*time.Microsecond
	m := result.Measurement{
		Records: c.Records, Size: c.Records * c.RecordBytes, Elapsed: elapsed, Usage: result.Usage{User: elapsed / 4, System: elapsed / 2},
		Writer: result.WriterCalls{SystemCalls: 20}, Latency: plantedLatencies()[i], Allocations: 12,
	}
	if round == 0 {
		m.SystemCalls = &result.SystemCalls{Total: 23, Writes: 20}
	}
	return &result.Trial{Cell: c.Name, Round: round, Measurement: m}
}

// plantedLatencies are the latencies for plantedTimes, computed once: they take longer than the rest of
// a run together.
var plantedLatencies = sync.OnceValue(func() (all []result.Latency) {
	for _, ms := range plantedTimes {
		h := result.NewHistogram()
		for n := range 300 {
			result.Record(h, time.Duration(n+1)*time.Duration(ms)*10)
		}
		latency, err := result.NewLatency(h, stat.Supports)
		if err != nil {
			panic(err)
		}
		all = append(all, latency)
	}
	return all
})

func text(t *testing.T, run result.Run) string {
	t.Helper()
	var b bytes.Buffer
	if err := report.Text(&b, lab.Studies(), run, 100, true); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func page(t *testing.T, run result.Run) string {
	t.Helper()
	var b bytes.Buffer
	if err := report.HTML(&b, lab.Studies(), run, report.More{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// body is the content of the page, without its style and its script.
func body(t *testing.T, run result.Run) string {
	t.Helper()
	_, site, _ := strings.Cut(page(t, run), "<main>\n")
	site, _, found := strings.Cut(site, "</main>")
	if !found {
		t.Error("the page has no main part")
	}
	return site
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != strings.ReplaceAll(string(want), "\r\n", "\n") {
		t.Errorf("%s is not what is made now (-update writes it):\n%s", path, got)
	}
}

func TestGolden(t *testing.T) {
	golden(t, "ten_rounds.txt", text(t, planted(t, 10)))
	golden(t, "ten_rounds.html", body(t, planted(t, 10)))

	short := planted(t, 3)
	short.Header.SystemCallsUnseen = "tracefs is not mounted"
	short.Header.Plan.Rounds = 20
	short.End = &result.End{State: result.Interrupted, Rounds: 3}
	for i := range short.Trials {
		short.Trials[i].SystemCalls = nil
	}
	golden(t, "interrupted.txt", text(t, short))
}

// TestTextFitsTheTerminal: a narrow terminal has fewer columns, but always the policy, its cost and the
// word.
func TestTextFitsTheTerminal(t *testing.T) {
	isolate.Once(t)
	columns := map[int]int{}
	for _, width := range []int{40, 60, 80, 100, 160} {
		for _, run := range []result.Run{planted(t, 10), paced(t, 10)} {
			shown := textWithin(t, run, width)
			for line := range strings.Lines(shown) {
				line = strings.TrimSuffix(line, "\n")
				if n := utf8.RuneCountInString(line); n > max(60, width) {
					t.Errorf("%d columns, wanted %d: %s", n, width, line)
				}
				if strings.TrimRight(line, " ") != line {
					t.Errorf("spaces at the end of %q", line)
				}
			}
			columns[width] = len(regexp.MustCompile(`(?m)^policy .*cost.*$`).FindString(shown))
			if !regexp.MustCompile(`(?m)^buffer=0,sync=never .* 14x .* ?slower`).MatchString(shown) {
				t.Errorf("at %d columns there is no cost or word in\n%s", width, shown)
			}
		}
	}
	if columns[60] >= columns[80] || columns[80] >= columns[100] || columns[100] >= columns[160] {
		t.Errorf("heads of %v characters", columns)
	}
}

func textWithin(t *testing.T, run result.Run, width int) string {
	t.Helper()
	var b bytes.Buffer
	if err := report.Text(&b, lab.Studies(), run, width, true); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestTextInASCII: only characters of names stay outside ASCII, and no replacement takes more room.
func TestTextInASCII(t *testing.T) {
	shown := text(t, paced(t, 10))
	plain := report.ASCII(shown)
	if utf8.RuneCountInString(shown) != len(plain) || strings.ContainsAny(plain, "µ…–±") || !strings.Contains(plain, "us ") || plain == shown {
		t.Errorf("%d characters, in ASCII %d:\n%s", utf8.RuneCountInString(shown), len(plain), plain)
	}
	if got := report.ASCII("/data/bücher"); got != "/data/bücher" {
		t.Error(got)
	}
	for _, s := range lab.Studies() {
		for _, c := range s.Claims {
			for _, r := range report.ASCII(c.Source + c.Says + c.Published) {
				if r >= 0x80 {
					t.Errorf("the claim %s keeps %q", c.Name, r)
				}
			}
		}
	}
}

// paced adds to a planted run empty cells, a twin on the disk, and trials in which the
// period of sync=1s falls due. In these trials a Write takes 140 ns, 120 ns in the control, and 20 ns
// in the empty cell; in the bursts the empty cell takes 10 ns.
func paced(t *testing.T, rounds int) result.Run {
	t.Helper()
	run := planted(t, rounds)
	for i := range run.Trials {
		run.Trials[i].Write = run.Trials[i].Elapsed
	}
	add := func(c result.Cell, measure func(round int) result.Measurement) {
		run.Header.Cells = append(run.Header.Cells, c)
		for round := range rounds + 1 {
			m := measure(round)
			m.Records, m.Size, m.Writer.SystemCalls = c.Records, c.Records*c.RecordBytes, 20
			if round == 0 {
				m.SystemCalls = &result.SystemCalls{Total: 13}
			}
			run.Trials = append(run.Trials, &result.Trial{Cell: c.Name, Round: round, Measurement: m})
		}
	}
	group := run.Header.Cells[3]
	group.Name, group.Twin = group.Name+"/again", group.Name
	add(group, func(round int) result.Measurement {
		d := 300*time.Millisecond + time.Duration(round%4)*10*time.Millisecond
		return result.Measurement{Elapsed: d, Write: d}
	})
	latency := func(d time.Duration) result.Latency {
		h := result.NewHistogram()
		for n := range 1000 {
			result.Record(h, d+time.Duration(n%20))
		}
		l, err := result.NewLatency(h, stat.Supports)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	for _, writers := range []int{1, 64} {
		empty := result.Cell{Name: fmt.Sprint("empty", writers), Empty: true, RecordBytes: 128, Writers: writers, Records: 10000, LatencyStride: 31}
		add(empty, func(int) result.Measurement {
			return result.Measurement{Elapsed: 100 * time.Microsecond, Write: 100 * time.Microsecond, Latency: latency(20)}
		})
	}
	for i, of := range []int{1, 2, 1, -1} {
		c := result.Cell{Name: fmt.Sprint("paced", i), RecordBytes: 128, Writers: 1, Records: 160000, Rate: 50000, LatencyStride: 1, Every: 1}
		write, syncs := []time.Duration{120, 140, 120, 20}[i], int64(0)
		if c.Empty = of < 0; !c.Empty {
			c.Policy = run.Header.Cells[of].Policy
		}
		if i == 1 {
			syncs = 3
		}
		if i == 2 {
			c.Twin = "paced0"
		}
		add(c, func(round int) result.Measurement {
			service := latency(write + time.Duration(round%3))
			return result.Measurement{
				Elapsed: 3200 * time.Millisecond, Write: 3200 * time.Millisecond, Service: &service, Latency: latency(write + 500_000),
				Usage: result.Usage{User: 50 * time.Millisecond, System: time.Duration(write) * time.Millisecond}, SyncsWriting: syncs,
				Oldest: 1010 * time.Millisecond, Writer: result.WriterCalls{Syncs: syncs + 1, LongestSync: 12 * time.Millisecond},
			}
		})
	}
	return run
}

// TestPacedTrialsAreTheEvidence: the burst tells nothing about a period, and the advice uses the trials
// in which it fell due.
func TestPacedTrialsAreTheEvidence(t *testing.T) {
	run := paced(t, 10)
	golden(t, "paced.txt", text(t, run))
	shown := text(t, run)
	for _, want := range []string{
		`(?m)^buffer=64KiB,flush=100ms,sync=1s .* period not reached `,
		`(?m)^buffer=64KiB,flush=100ms,sync=1s .* 1\.20x \(1\.[0-9]+-1\.[0-9]+\) slower +1\.01s +3 `,
		`(?m)^buffer=64KiB,sync=never .* control `,
		`(?m)^use  buffer=64KiB,flush=100ms,sync=1s\n     costs 1\.20x \(1\.[0-9]+-1\.[0-9]+\) against buffer=64KiB,sync=never, at 50k/s; a power cut`,
		`1s \+ the longest of 40 syncs; 93 % take no longer`,
		`(?m)^noise: at most 0\.[0-9]+ % \(buffer=64KiB,sync=never, 1 writer\); at most [0-9.]+ % \(buffer=64KiB,sync=group,`,
	} {
		if !regexp.MustCompile(want).MatchString(shown) {
			t.Errorf("there is no %s in\n%s", want, shown)
		}
	}
	if use := shown[strings.Index(shown, "\nuse  ")+1:]; strings.Count(use, "\n") > 5 || !strings.Contains(use, "\n     chosen by rule, ") {
		t.Errorf("more than four lines and the rule:\n%s", use)
	}
}

// TestAllFormsHaveTheSameCost looks for the paced policy's cost and interval in each form.
func TestAllFormsHaveTheSameCost(t *testing.T) {
	run := paced(t, 10)
	cost := regexp.MustCompile(`1\.20x +(\(1\.[0-9]+-1\.[0-9]+\)) slower`).FindStringSubmatch(text(t, run))
	if len(cost) != 2 {
		t.Fatalf("no cost in\n%s", text(t, run))
	}
	for form, shown := range map[string]string{"page": page(t, run), "Markdown": export(t, run, report.Markdown)} {
		if !strings.Contains(shown, "1.20x") || !strings.Contains(shown, cost[1]) {
			t.Errorf("the %s lacks 1.20x %s", form, cost[1])
		}
	}
	var d struct {
		Figures struct {
			Groups []struct {
				Paced bool
				Rows  []struct {
					Cost struct{ Ratio, Low, High float64 }
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(export(t, run, report.JSON)), &d); err != nil {
		t.Fatal(err)
	}
	for _, g := range d.Figures.Groups {
		if c := g.Rows[1].Cost; g.Paced && fmt.Sprintf("%.2fx (%.2f-%.2f)", c.Ratio, c.Low, c.High) != "1.20x "+cost[1] {
			t.Errorf("JSON has %+v, the table 1.20x %s", c, cost[1])
		}
	}
}

// TestAtMostFiveDoubts: further ones are counted.
func TestAtMostFiveDoubts(t *testing.T) {
	run := planted(t, 3)
	run.End.ClockJump, run.Header.SystemCallsUnseen = time.Minute, "none"
	run.Header.Machine = append(run.Header.Machine, machine.Fact{Name: "CPU boost", Value: "on"}, machine.Fact{Name: "device stack", Value: "dm-0 (LVM thin) on sda"})
	run.Header.Machine[2].Value = "virtual machine (QEMU)"
	run.Resumed = make([]result.Resumption, 1)
	shown := text(t, run)
	if n := strings.Count(shown, "\ndoubtful: "); n != 6 || !regexp.MustCompile(`\ndoubtful: and [2-9] more; the HTML report has all\n`).MatchString(shown) {
		t.Errorf("%d doubts in\n%s", n, shown)
	}
}

// TestWordsAgreeWithIntervals: a slower policy has its whole interval above 1. If another policy may be
// as fast as the first, the first is among the fastest.
func TestWordsAgreeWithIntervals(t *testing.T) {
	run := planted(t, 10)
	for i := range run.Trials {
		if trial := run.Trials[i]; trial.Cell == run.Header.Cells[0].Name { // now as fast as the fastest, within the noise
			trial.Write = 10*time.Millisecond + time.Duration(trial.Round%5-2)*500*time.Microsecond
		}
	}
	f, err := figure.Of(run)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range f.Groups {
		for _, r := range g.Rows {
			if c := r.Cost; c.Verdict == stat.Slower && c.Low <= 1 || c.Verdict == stat.NotProven && !r.Fastest && r.Period == nil && c.Low > 1+2*float64(f.Noise.Floor) {
				t.Errorf("%s is %q with %v to %v", r.Cell.Name, c.Verdict, c.Low, c.High)
			}
		}
	}
	if shown := text(t, run); strings.Count(shown, " among the fastest") != 1 || !regexp.MustCompile(`(?m)^buffer=\S+,sync=never .* 1\.00x +fastest `).MatchString(shown) {
		t.Error(shown)
	}
}

// TestFileMakesTheSameBytes writes the run to a results file and reads it back.
func TestFileMakesTheSameBytes(t *testing.T) {
	run := planted(t, 10)
	path := filepath.Join(t.TempDir(), "results.jsonl")
	f, err := result.Create(path, run.Header)
	if err != nil {
		t.Fatal(err)
	}
	for _, trial := range run.Trials {
		err = errors.Join(err, f.Trial(*trial))
	}
	if err := errors.Join(err, f.Close(*run.End)); err != nil {
		t.Fatal(err)
	}
	stored, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := result.Read(bytes.NewReader(stored))
	if err != nil {
		t.Fatal(err)
	}
	if text(t, run) != text(t, again) || page(t, run) != page(t, again) {
		t.Error("the report of the file differs from that of the run")
	}
}

// TestLossesComeFromThePolicy looks for the words of each policy's Loss.
func TestLossesComeFromThePolicy(t *testing.T) {
	run := planted(t, 10)
	table, site := text(t, run), html.UnescapeString(page(t, run))
	for _, c := range run.Header.Cells {
		loss := c.Policy.Loss()
		line := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(c.Policy.String()) + ` +` + regexp.QuoteMeta(loss.Process.String()) + ` +` + regexp.QuoteMeta(loss.Power.String()) + `$`)
		if !line.MatchString(table) {
			t.Errorf("the table does not say what %v loses", c.Policy)
		}
		if row := fmt.Sprintf("<th scope=\"row\">%v</th><td>%v</td><td>%v</td>", c.Policy, loss.Process, loss.Power); !strings.Contains(site, row) {
			t.Errorf("the page lacks %s", row)
		}
	}
}

func TestWarmUpIsInNoFigure(t *testing.T) {
	run := planted(t, 10)
	want := text(t, run)
	for i := range run.Trials {
		if run.Trials[i].Round == 0 {
			run.Trials[i].Elapsed, run.Trials[i].User = time.Hour, time.Hour
		}
	}
	if got := text(t, run); got != want {
		t.Errorf("a slow warm-up shows:\n%s", got)
	}
}

func TestRunsThatAreNotCompleteAreMarked(t *testing.T) {
	check := func(want string, change func(*result.Run)) {
		t.Helper()
		run := planted(t, 10)
		change(&run)
		for _, got := range []string{text(t, run), page(t, run)} {
			if !strings.Contains(strings.ToLower(got), "not complete: "+want) {
				t.Errorf("%q is not in %.300s", want, got)
			}
		}
	}
	check("torn: ", func(r *result.Run) { r.Torn = true })
	check("no end: ", func(r *result.Run) { r.End = nil })
	check("interrupted: 10 of 20 rounds are complete", func(r *result.Run) { r.End.State, r.Header.Plan.Rounds = result.Interrupted, 20 })
	// Where cells rest, a run may have more rounds than were planned.
	check("interrupted: 10 rounds are complete", func(r *result.Run) { r.End.State, r.Header.Plan.Rounds = result.Interrupted, 9 })
	check("out of time: the limit of 50s was reached; 10 of 20", func(r *result.Run) {
		r.End.State, r.End.Reason, r.Header.Plan.Rounds = result.OutOfTime, "the limit of 50s was reached", 20
	})
	if got := text(t, planted(t, 10)); strings.Contains(got, "not complete") {
		t.Error("a complete run is marked")
	}
}

func TestNothingIsWrittenWithoutARound(t *testing.T) {
	run := planted(t, 1)
	run.Trials = run.Trials[:len(run.Trials)-1]
	var b bytes.Buffer
	if err := report.Text(&b, lab.Studies(), run, 100, true); !errors.Is(err, figure.ErrNoRound) || b.Len() > 0 {
		t.Errorf("Text: %v, %d bytes", err, b.Len())
	}
	if err := report.HTML(&b, lab.Studies(), run, report.More{}); !errors.Is(err, figure.ErrNoRound) || b.Len() > 0 {
		t.Errorf("HTML: %v, %d bytes", err, b.Len())
	}
}

// TestFewRoundsProveLittle: with four cells nine rounds prove only large differences, five only gross ones, and two
// none.
func TestFewRoundsProveLittle(t *testing.T) {
	for rounds, want := range map[int]string{2: " not proven ", 5: " far slower, at least 29x ", 9: "(30-30)     far slower "} {
		got := text(t, planted(t, rounds))
		if !strings.Contains(got, want) || (rounds == 2) == strings.Contains(got, "slower") {
			t.Errorf("%d rounds:\n%s", rounds, got)
		}
	}
}

// TestPercentilesNeedSamples has 300 timed Writes in a trial: a p99 needs 1,000.
func TestPercentilesNeedSamples(t *testing.T) {
	p99 := func(rounds int) string {
		row := regexp.MustCompile(`(?m)^buffer=0,sync=never +14\.0µs .* 10\.5µs +(\S+).*$`).FindStringSubmatch(text(t, planted(t, rounds)))
		if len(row) != 2 {
			t.Fatal("there is no such row")
		}
		return row[1]
	}
	if few := p99(3); few != "-" {
		t.Errorf("900 Writes: %s", few)
	}
	if many := p99(4); many != "418µs" {
		t.Errorf("1200 Writes: %s", many)
	}
}

// TestSteadyRunsShowHowTheyCameToRest plants a trial that begins at 4 MiB/s and
// becomes steady at 1.
func TestSteadyRunsShowHowTheyCameToRest(t *testing.T) {
	run := planted(t, 1)
	for i := range run.Header.Cells {
		run.Header.Cells[i].Steady = true
	}
	for i := range run.Trials {
		trial := run.Trials[i]
		trial.Steady = true
		for n, mib := range []int64{4, 2, 1, 1, 1, 1, 1} {
			trial.Samples = append(trial.Samples, result.Sample{
				At: time.Duration(n+1) * time.Second, Size: mib << 20, Dirty: 7 << 20, Throttle: 7<<20 - int64(n/6),
			})
		}
	}
	want := regexp.MustCompile(`(?m)^buffer=64KiB,sync=never +4.00 MiB/s +1.00 MiB/s +25 % +7.00s +up to 7.00 MiB +1 of 7$`)
	if got := text(t, run); !want.MatchString(got) || !strings.Contains(got, "SNIA") {
		t.Errorf("no %v in:\n%s", want, got)
	}
	if site := page(t, run); !strings.Contains(site, "<td>25 %</td>") || !strings.Contains(site, "became steady") {
		t.Error("the page lacks the table of steady trials")
	}
}

func TestPageIsWholeAndNeedsNothingElse(t *testing.T) {
	site := page(t, planted(t, 10))
	for _, bad := range []string{"http:", "https:", "src=", "<link", ">NaN<", "abacus <9000>"} {
		if strings.Contains(site, bad) {
			t.Errorf("the page has %s", bad)
		}
	}
	for _, want := range []string{`name="viewport"`, "prefers-color-scheme: dark", "<svg", "abacus &lt;9000&gt;", "/proc/cpuinfo"} {
		if !strings.Contains(site, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	start := strings.Index(site, "<svg")
	decoder := xml.NewDecoder(strings.NewReader(site[start : strings.Index(site, "</svg>")+6]))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
