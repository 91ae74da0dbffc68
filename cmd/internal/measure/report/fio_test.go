package report_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/report"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

// lone returns a run of one cell, whose Writer counted the given flushes and syncs in each trial.
func lone(t *testing.T, c result.Cell, policy string, flushes, syncs int64) result.Run {
	t.Helper()
	run := planted(t, 10)
	p, err := holdfast.ParsePolicy(policy)
	if err != nil {
		t.Fatal(err)
	}
	c.Name, c.Policy, c.RecordBytes, c.Records = policy, p, 128, 10000
	run.Header.Cells, run.Trials = []result.Cell{c}, nil
	for round := range 11 {
		trial := plantedTrial(t, c, 1, round)
		trial.Writer = result.WriterCalls{Writes: 10000, Flushes: flushes, Syncs: syncs}
		run.Trials = append(run.Trials, trial)
	}
	return run
}

func fioJob(t *testing.T, run result.Run) string {
	t.Helper()
	var b bytes.Buffer
	if err := report.Fio(&b, run); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// fioRuns has a run for every kind of policy and load that has a job of its own.
func fioRuns(t *testing.T) map[string]result.Run {
	one, many := result.Cell{Writers: 1}, result.Cell{Writers: 64}
	odd := result.Cell{Writers: 2, Rate: 50_000, Cache: result.Cold, Steady: true}
	return map[string]result.Run{
		"unbuffered":  lone(t, one, "buffer=0", 10000, 0),
		"buffered":    lone(t, many, "buffer=64KiB", 20, 0),
		"close":       lone(t, one, "buffer=256KiB,sync=close", 5, 1),
		"period":      lone(t, one, "buffer=4KiB,flush=100ms,sync=10ms", 400, 4),
		"period_long": lone(t, one, "buffer=64KiB,sync=1s", 21, 1),
		"bytes":       lone(t, one, "buffer=256KiB,flush=64KiB,sync=128KiB", 21, 11),
		"both":        lone(t, one, "buffer=64KiB,sync=1s/256KiB", 21, 6),
		"group":       lone(t, many, "buffer=64KiB,sync=group", 200, 200),
		"each":        lone(t, many, "sync=each", 10000, 10000),
		"odd":         lone(t, odd, "buffer=64KiB,flush=1ms", 100, 0),
	}
}

func TestFioJobs(t *testing.T) {
	for name, run := range fioRuns(t) {
		job := fioJob(t, run)
		golden(t, "fio_"+name+".fio", job)
		for _, line := range strings.Split(job, "\n") {
			if utf8.RuneCountInString(line) > 100 || strings.Contains(line, "NaN") {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}

// TestFioJobSaysWhatFioDoes checks the job's system calls, not only its bytes: the length of a write
// and the number of writes for a sync.
func TestFioJobSaysWhatFioDoes(t *testing.T) {
	check := func(policy string, flushes, syncs int64, want string) {
		t.Helper()
		job := fioJob(t, lone(t, result.Cell{Writers: 8}, policy, flushes, syncs))
		got := strings.Join(regexp.MustCompile(`(?m)^(bs|size|fdatasync|end_fsync)=\d+$`).FindAllString(job, -1), " ")
		if got != want {
			t.Errorf("%s, %d flushes, %d syncs: got %s, want %s", policy, flushes, syncs, got, want)
		}
	}
	check("buffer=0", 10000, 0, "bs=128 size=1280000")
	check("buffer=100B", 10000, 0, "bs=128 size=1280000")
	check("buffer=128B", 10000, 0, "bs=128 size=1280000")
	check("buffer=64KiB", 20, 0, "bs=65536 size=1310720")
	check("buffer=64KiB", 21, 0, "bs=65536 size=1310720")
	check("buffer=64KiB", 0, 0, "bs=65536 size=1310720") // of results without the counts
	check("buffer=64KiB,flush=1ms", 40, 0, "bs=32000 size=1280000")
	check("buffer=64KiB,sync=close", 20, 1, "bs=65536 size=1310720 end_fsync=1")
	check("buffer=64KiB,sync=1s", 20, 1, "bs=65536 size=1310720 end_fsync=1")
	check("buffer=4KiB,sync=1ms", 320, 32, "bs=4096 size=1282048 fdatasync=10 end_fsync=1")
	check("buffer=64KiB,sync=100KiB", 20, 11, "bs=65536 size=1310720 fdatasync=2 end_fsync=1")
	check("buffer=0,sync=1kB", 10000, 1250, "bs=128 size=1280000 fdatasync=8 end_fsync=1")
	check("buffer=64KiB,sync=1h/256KiB", 20, 5, "bs=65536 size=1310720 fdatasync=4 end_fsync=1")
	check("buffer=1MiB,flush=64KiB", 20, 0, "bs=65536 size=1310720")
	check("buffer=64KiB,sync=group", 1250, 1250, "bs=1024 size=1280000 fdatasync=1")
	check("buffer=0,sync=group", 10000, 1250, "bs=128 size=1280000 fdatasync=8")
	check("sync=each", 10000, 10000, "bs=128 size=1280000 fdatasync=1")
}

func TestFioJobIsOfTheAdvisedPolicy(t *testing.T) {
	job := fioJob(t, paced(t, 10))
	if !strings.Contains(job, "; The cell: buffer=64KiB,flush=100ms,sync=1s, 128B records, 1 writer, 10000 records a trial (the\n;   policy that the advice names).") {
		t.Errorf("the job is of another cell:\n%s", job)
	}
	if job := fioJob(t, lone(t, result.Cell{Writers: 1}, "buffer=0", 1, 0)); !strings.Contains(job, "(the fastest policy)") {
		t.Errorf("without advice the job is not of the fastest:\n%s", job)
	}
}

func TestFioJobNeedsARound(t *testing.T) {
	run := planted(t, 1)
	run.Trials = run.Trials[:len(run.Trials)-1]
	var b bytes.Buffer
	if err := report.Fio(&b, run); !errors.Is(err, figure.ErrNoRound) || b.Len() > 0 {
		t.Errorf("%v, %d bytes", err, b.Len())
	}
}

// runFio runs fio in a directory on a job, and skips the test where there is no fio.
func runFio(t *testing.T, dir, job string, flags ...string) (string, error) {
	t.Helper()
	fio, err := exec.LookPath("fio")
	if err != nil {
		t.Skipf("fio is not installed (Debian: apt-get install fio): %v", err)
	}
	cmd := exec.Command(fio, append(flags, "-")...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(job)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestFioTakesTheJobs(t *testing.T) {
	for name, run := range fioRuns(t) {
		if out, err := runFio(t, t.TempDir(), fioJob(t, run), "--parse-only"); err != nil || out != "" {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// TestFioJobIsSafe follows the job's comments: without the new directory nothing is run, and with it
// nothing is left.
func TestFioJobIsSafe(t *testing.T) {
	dir, job := t.TempDir(), fioJob(t, fioRuns(t)["close"])
	if out, err := runFio(t, dir, job); err == nil {
		t.Errorf("fio runs without the directory:\n%s", out)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("fio left %v, %v", left, err)
	}
	directory := filepath.Join(dir, regexp.MustCompile(`(?m)^directory=(\S+)$`).FindStringSubmatch(job)[1])
	if err := os.Mkdir(directory, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := runFio(t, dir, job); err != nil || !strings.Contains(out, "issued rwts: total=0,5,0,0") {
		t.Errorf("%v, want 5 writes\n%s", err, out)
	}
	if err := os.Remove(directory); err != nil {
		t.Errorf("rmdir: %v", err)
	}
}
