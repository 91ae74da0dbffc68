package main

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// The tests of this file ask the machine itself, for minutes, what a sceptic
// would: go test ./cmd/holdfast -run Sceptic -v -sceptic=10
var (
	scepticRuns   = flag.Int("sceptic", 0, "ask this machine what a sceptic would, in as many runs")
	scepticRounds = flag.Int("sceptic.rounds", 20, "rounds of such a run")
	scepticDir    = flag.String("sceptic.dir", "", "where to write (default: a temporary directory)")
)

func skipWithoutSceptic(t *testing.T) {
	t.Helper()
	if *scepticRuns == 0 {
		t.Skip("it takes minutes of a quiet machine: -sceptic=10 asks for ten runs")
	}
}

// An askedCell is a cell under a name of its own, so that the same one may be there
// more than once.
type askedCell struct {
	name, twin string
	append     trial.Append
}

// ask runs cells for the rounds, and calls between after each.
func ask(t *testing.T, seed uint64, cells []askedCell, between func(round int)) figure.Figures {
	t.Helper()
	dir := *scepticDir
	if dir == "" {
		dir = t.TempDir()
	}
	g, err := trial.OpenWorkDir(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	w := &asked{between: between}
	m := trial.Matrix{Rounds: *scepticRounds, Seed: seed}
	w.run.Header = result.Header{
		SchemaVersion: result.SchemaVersion, Study: "sceptic", Dir: dir, Seed: seed,
		Plan: result.Plan{Rounds: *scepticRounds}, Machine: machine.Read(dir),
	}
	for _, c := range cells {
		a := c.append
		cell := result.Cell{
			Name: c.name, Twin: c.twin, Empty: a.Empty, Policy: a.Policy,
			RecordBytes: a.RecordBytes, Writers: a.Writers, Records: a.Records, LatencyStride: a.Stride,
		}
		run := func(ctx context.Context, g *trial.WorkDir, _ bool) (result.Measurement, error) { return a.Run(ctx, g) }
		m.Cells = append(m.Cells, trial.Cell{Cell: cell, Run: run})
		w.run.Header.Cells = append(w.run.Header.Cells, cell)
	}
	if _, _, err := m.Run(t.Context(), g, w); err != nil {
		t.Fatal(err)
	}
	w.run.End = &result.End{State: result.Complete, Rounds: *scepticRounds}
	f, err := figure.Of(w.run)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// An asked run is kept in memory.
type asked struct {
	run     result.Run
	between func(round int)
}

func (a *asked) Begin(trial.Step) {}

func (a *asked) Done(t result.Trial) error {
	a.run.Trials = append(a.run.Trials, &t)
	if t.Position == len(a.run.Header.Cells) {
		a.between(t.Round)
	}
	return nil
}

func nothing(int) {}

// loads are a buffered one and one that waits for the disk.
func loads() map[string]trial.Append {
	return map[string]trial.Append{
		"buffered":  {Policy: holdfast.Buffered(64 * holdfast.KiB), RecordBytes: 128, Writers: 1, Records: 400_000, Stride: 31},
		"together":  {Policy: holdfast.Buffered(64 * holdfast.KiB), RecordBytes: 128, Writers: 64, Records: 400_000, Stride: 31},
		"durable":   {Policy: holdfast.EachDurable(), RecordBytes: 128, Writers: 1, Records: 500, Stride: 1},
		"durable64": {Policy: holdfast.Durable(), RecordBytes: 128, Writers: 64, Records: 20_000, Stride: 1},
	}
}

// second returns the comparison of the run's cells that is not a cell with itself.
func second(f figure.Figures) stat.Comparison {
	for _, r := range f.Groups[0].Rows {
		if !r.Fastest {
			return r.Cost.Comparison
		}
	}
	return stat.Comparison{}
}

// tell logs a comparison.
func tellComparison(t *testing.T, what string, c stat.Comparison, f figure.Figures) {
	t.Helper()
	var codes []string
	for _, w := range f.Warnings {
		if !slices.Contains(codes, w.Code) {
			codes = append(codes, w.Code)
		}
	}
	t.Logf("%-10s %.3f (%.3f to %.3f) %-10s floor %4.1f %%  warnings: %s", what, c.Ratio, c.Low, c.High, c.Verdict, f.Noise.Floor*100, strings.Join(codes, " "))
}

// same is a cell, the same under a second name for the floor, and the same under a
// third name, which is compared with it.
func same(a trial.Append) []askedCell {
	return []askedCell{{"one", "", a}, {"one/again", "one", a}, {"other", "", a}}
}

// TestScepticSameCode compares code with itself: every faster or slower is false.
func TestScepticSameCode(t *testing.T) {
	skipWithoutSceptic(t)
	verdicts, wrong := 0, 0
	for run := range *scepticRuns {
		for name, a := range loads() {
			f := ask(t, uint64(run), same(a), nothing)
			c := second(f)
			tellComparison(t, name, c, f)
			verdicts++
			if c.Verdict == stat.Faster || c.Verdict == stat.Slower {
				wrong++
			}
		}
	}
	t.Logf("%d of %d verdicts are false", wrong, verdicts)
	if float64(wrong) > 0.05*float64(verdicts)+1 {
		t.Errorf("%d of %d verdicts are false, more than one of twenty", wrong, verdicts)
	}
}

// A spinning Writer wastes a part of the time that a record takes.
type spinning struct {
	*holdfast.Writer
	waste time.Duration // after every batch of Writes
	n     int
}

// spinBatch is how many Writes share one waste: so many that reading the clock
// around it is next to nothing.
const spinBatch = 2048

func (s *spinning) Write(record []byte) (int, error) {
	if s.n++; s.n == spinBatch {
		s.n = 0
		for begun := time.Now(); time.Since(begun) < s.waste; {
		}
	}
	return s.Writer.Write(record)
}

// spin returns the workload under a spinning Writer.
func spin(a trial.Append, waste time.Duration) trial.Append {
	a.Open = func(path string) (trial.Target, error) {
		w, err := holdfast.Create(path, a.Policy)
		return &spinning{Writer: w, waste: waste}, err
	}
	return a
}

// TestScepticPlantedSlowdown plants 10 % and wants it found, with its interval
// around it. Its counterpart spins as well, for no time.
func TestScepticPlantedSlowdown(t *testing.T) {
	skipWithoutSceptic(t)
	found, covered := 0, 0
	for run := range *scepticRuns {
		a := spin(loads()["buffered"], 0)
		slowed := spin(a, time.Duration(0.10*perRecord(t, a)*spinBatch))
		f := ask(t, uint64(run), []askedCell{{"one", "", a}, {"one/again", "one", a}, {"slowed", "", slowed}}, nothing)
		c := second(f)
		tellComparison(t, "+10 %", c, f)
		if c.Verdict == stat.Slower && !f.Groups[0].Rows[1].Fastest {
			found++
		}
		if c.Low <= 1.10 && 1.10 <= c.High {
			covered++
		}
	}
	t.Logf("found in %d of %d runs, 10 %% is in the interval of %d", found, *scepticRuns, covered)
	if found*2 < *scepticRuns {
		t.Errorf("a slowdown of 10 %% was found in %d of %d runs", found, *scepticRuns)
	}
}

// perRecord is the median time of a record in nanoseconds.
func perRecord(t *testing.T, a trial.Append) float64 {
	t.Helper()
	return float64(ask(t, 1, []askedCell{{"one", "", a}}, nothing).Groups[0].Rows[0].Time.Median)
}

// TestScepticNoisyNeighbour starts programs in the middle of the run that take all
// CPUs: the run has to warn, and not to invent a difference.
func TestScepticNoisyNeighbour(t *testing.T) {
	skipWithoutSceptic(t)
	wrong, warned := 0, 0
	for run := range *scepticRuns {
		var hogs []*exec.Cmd
		f := ask(t, uint64(run), same(loads()["buffered"]), func(round int) {
			if round == *scepticRounds/2 {
				hogs = startHogs(t)
			}
		})
		for _, hog := range hogs {
			_ = hog.Process.Kill()
			_ = hog.Wait()
		}
		c := second(f)
		tellComparison(t, "neighbour", c, f)
		if c.Verdict == stat.Faster || c.Verdict == stat.Slower {
			wrong++
		}
		if slices.ContainsFunc(f.Warnings, func(w figure.Warning) bool { return w.Code == "busy" }) {
			warned++
		}
	}
	t.Logf("warned of in %d of %d runs, %d false verdicts", warned, *scepticRuns, wrong)
	if warned < *scepticRuns || wrong > 1+*scepticRuns/20 {
		t.Errorf("warned of in %d of %d runs, %d false verdicts", warned, *scepticRuns, wrong)
	}
}

func startHogs(t *testing.T) (hogs []*exec.Cmd) {
	t.Helper()
	for range 2 {
		hog := exec.Command(os.Args[0])
		hog.Env = append(os.Environ(), asHog+"=1")
		if err := hog.Start(); err != nil {
			t.Fatal(err)
		}
		hogs = append(hogs, hog)
	}
	return hogs
}

// TestScepticHarness prints what measuring takes: cells that write nothing.
func TestScepticHarness(t *testing.T) {
	skipWithoutSceptic(t)
	for name, a := range loads() {
		if a.Stride == 1 {
			continue
		}
		empty := a
		empty.Empty = true
		f := ask(t, 1, []askedCell{{"one", "", a}, {"empty", "", empty}}, nothing)
		h := f.Harness[0]
		t.Logf("%-10s %.2f ns a record (%.2f to %.2f) of %.1f", name, h.Time.Median, h.Time.Low, h.Time.High, f.Groups[0].Rows[0].Time.Median)
	}
}
