package study

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/trial"
)

// runStudy runs a study for real, in a folder of the test's own.
func runStudy(t *testing.T, s Study, c Choice) result.Run {
	t.Helper()
	return runStudyIn(t, t.TempDir(), s, c)
}

// runStudyIn runs a study in a folder that it makes in dir.
func runStudyIn(t *testing.T, dir string, s Study, c Choice) result.Run {
	t.Helper()
	g, err := trial.OpenGround(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	g.Second = secondTest
	defer func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}()
	m, plan, missing, err := s.Prepare(g, c)
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
	w.Trials = append(w.Trials, t)
	return nil
}

// planted makes a run by hand: as many rounds as plant is asked for, in which it
// fills in what each arm has measured. A trial is of one record unless it says else.
func planted(rounds int, plant func(arm string, round int, m *result.Measurement), arms ...string) Evidence {
	var run result.Run
	for _, arm := range arms {
		run.Header.Cells = append(run.Header.Cells, result.Cell{Name: arm, Group: "planted"})
		for round := 1; round <= rounds; round++ {
			m := result.Measurement{Records: 1}
			plant(arm, round, &m)
			run.Trials = append(run.Trials, result.Trial{Cell: arm, Round: round, Measurement: m})
		}
	}
	return EvidenceOf(run)
}
