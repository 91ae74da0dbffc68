// Package studytest helps to test studies. It runs a study for real, plants results by hand, and checks
// the output.
//
// Start with [RunStudy] and [Planted].
package studytest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// RunStudy runs a study for real, in a directory of the test's own.
func RunStudy(t *testing.T, s study.Study, c study.Choice) result.Run {
	t.Helper()
	return RunStudyIn(t, t.TempDir(), s, c)
}

// RunStudyIn runs a study in a directory that it makes in dir.
func RunStudyIn(t *testing.T, dir string, s study.Study, c study.Choice) result.Run {
	t.Helper()
	g := workDirIn(t, dir)
	m, plan, missing, err := s.Prepare(g, c)
	if errors.Is(err, study.ErrNoArm) && runtime.GOOS != "linux" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	run := result.Run{Header: result.Header{Study: s.Name, Plan: plan, Settings: c.Settings(), Missing: missing}}
	for _, cell := range m.Cells {
		run.Header.Cells = append(run.Header.Cells, cell.Cell)
	}
	if _, _, err := m.Run(context.Background(), g, (*runWatcher)(&run)); err != nil {
		t.Fatal(err)
	}
	return run
}

type runWatcher result.Run

func (w *runWatcher) Begin(trial.Step) {}
func (w *runWatcher) Done(t result.Trial) error {
	w.Trials = append(w.Trials, &t)
	return nil
}

// Planted makes a run by hand: it calls plant for each arm and round, which fills in the measurement. A
// trial has one record unless plant says otherwise.
func Planted(rounds int, plant func(arm string, round int, m *result.Measurement), arms ...string) study.Evidence {
	var run result.Run
	for _, arm := range arms {
		run.Header.Cells = append(run.Header.Cells, result.Cell{Name: arm, Group: "planted"})
		for round := 1; round <= rounds; round++ {
			m := result.Measurement{Records: 1}
			plant(arm, round, &m)
			run.Trials = append(run.Trials, &result.Trial{Cell: arm, Round: round, Measurement: m})
		}
	}
	return study.EvidenceOf(run)
}

// Wiggle makes planted rounds differ a little, as real ones do.
func Wiggle(ns float64, round int) time.Duration {
	return time.Duration(ns * (1 + float64(round%3)/100))
}

// WorkDir is a directory of the test's own, with a second process.
func WorkDir(t *testing.T) *trial.WorkDir {
	t.Helper()
	return workDirIn(t, t.TempDir())
}

func workDirIn(t *testing.T, dir string) *trial.WorkDir {
	t.Helper()
	g, err := trial.OpenWorkDir(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	g.Second = SecondTest
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// ClaimOf returns the study's claim of that name.
func ClaimOf(t *testing.T, s study.Study, name string) study.Claim {
	t.Helper()
	i := slices.IndexFunc(s.Claims, func(c study.Claim) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("the study %s has no claim %q", s.Name, name)
	}
	return s.Claims[i]
}

// Judge checks that the study's claim of that name gets the wanted verdict on the evidence, with a
// reason.
func Judge(t *testing.T, s study.Study, name string, e study.Evidence, want study.Verdict) study.Finding {
	t.Helper()
	f := ClaimOf(t, s, name).Find(e)
	if f.Verdict != want || f.Why == "" || strings.Contains(f.Measured+f.Why, "NaN") {
		t.Errorf("%s: %+v, want %q", name, f, want)
	}
	return f
}

// LooksRight checks the form of the output: no row has more cells than heads, and no figure is NaN or
// infinite. It returns all texts.
func LooksRight(t *testing.T, s study.Shown) string {
	t.Helper()
	texts := []string{s.Learnt}
	for _, table := range s.Tables {
		texts = append(texts, table.Title, strings.Join(table.Head, " | "))
		for _, row := range table.Rows {
			if len(row) > len(table.Head) {
				t.Errorf("%s: %q has more cells than %q", table.Title, row, table.Head)
			}
			texts = append(texts, strings.Join(row, " | "))
		}
		texts = append(texts, table.Notes...)
	}
	if s.Picture != nil {
		texts = append(texts, s.Picture.Text(80), string(s.Picture.SVG()))
	}
	text := strings.Join(texts, "\n")
	if strings.HasSuffix(s.Learnt, ".") {
		t.Errorf("the sentence has its full stop: %s", s.Learnt)
	}
	for _, wrong := range []string{"NaN", "Inf", "%!"} {
		if strings.Contains(text, wrong) {
			t.Errorf("%s is shown:\n%s", wrong, text)
		}
	}
	return text
}

// LooksFilled is LooksRight for tables in which every column must have a text.
func LooksFilled(t *testing.T, s study.Shown) {
	t.Helper()
	LooksRight(t, s)
	for _, table := range s.Tables {
		for _, row := range table.Rows {
			if len(row) != len(table.Head) || slices.Contains(row, "") {
				t.Errorf("%s: %q under %q", table.Title, row, table.Head)
			}
		}
	}
}

// RunOnce runs a task once on a directory of the test's own.
func RunOnce(t *testing.T, task trial.Task, records int64) result.Measurement {
	t.Helper()
	g := WorkDir(t)
	m, err := task.Run(context.Background(), g, trial.NotCounting, records, 0)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// ArmTask returns the task of the study's arm of that name.
func ArmTask(t *testing.T, s study.Study, name string) trial.Task {
	t.Helper()
	for _, a := range s.Arms(study.Choice{Preset: study.Audit()}) {
		if a.Name == name {
			return a.Task()
		}
	}
	t.Fatalf("the study %s has no arm %q", s.Name, name)
	return trial.Task{}
}

// Spoil changes the first byte of the last file at path.
func Spoil(path string) error {
	last := ""
	err := filepath.WalkDir(path, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			last = path
		}
		return err
	})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(last, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	first := []byte{0}
	if _, err = f.ReadAt(first, 0); err == nil {
		_, err = f.WriteAt([]byte{^first[0]}, 0)
	}
	return errors.Join(err, f.Close())
}

// asSecond makes the test binary be the second process of an arm.
const asSecond = "HOLDFAST_TEST_AS_SECOND"

// Main is a package's TestMain: it runs the tests, or in a second process the role that an arm asks
// for.
func Main(m *testing.M, roles map[string]study.Role) {
	if os.Getenv(asSecond) == "" {
		os.Exit(isolate.Tests{M: m}.Run())
	}
	if err := study.RunRole(context.Background(), roles, os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// SecondTest is a [trial.WorkDir]'s Second.
func SecondTest(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), asSecond+"=1", "GORACE=atexit_sleep_ms=0") // else it sleeps for a second when it ends
	return cmd
}

// WrongBytesAreNoTrial checks that a trial of the task counts, and that it does not count if its last
// file is spoilt before the check.
func WrongBytesAreNoTrial(t *testing.T, g *trial.WorkDir, name string, task trial.Task) {
	t.Helper()
	if _, err := task.Run(t.Context(), g, trial.NotCounting, 1, 1); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	do := task.Do
	task.Do = func(ctx context.Context, c *trial.Clock) error { return errors.Join(do(ctx, c), Spoil(c.Path)) }
	var wrong *trial.ContentError
	if _, err := task.Run(t.Context(), g, trial.NotCounting, 1, 1); !errors.As(err, &wrong) {
		t.Errorf("%s with a wrong byte: err = %v", name, err)
	}
}
