package study

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

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
	g := groundIn(t, dir)
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

// wiggle makes the rounds of a plant differ a little, as real ones do.
func wiggle(ns float64, round int) time.Duration {
	return time.Duration(ns * (1 + float64(round%3)/100))
}

// ground is a folder of the test's own, with a second process.
func ground(t *testing.T) *trial.Ground {
	t.Helper()
	return groundIn(t, t.TempDir())
}

func groundIn(t *testing.T, dir string) *trial.Ground {
	t.Helper()
	g, err := trial.OpenGround(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	g.Second = secondTest
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// claimOf returns the study's claim of that name.
func claimOf(t *testing.T, s Study, name string) Claim {
	t.Helper()
	i := slices.IndexFunc(s.Claims, func(c Claim) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("the study %s has no claim %q", s.Name, name)
	}
	return s.Claims[i]
}

// looksRight holds what is shown to its own form: no more cells than heads, and no
// figure that is none. It returns all texts.
func looksRight(t *testing.T, s Shown) string {
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

// looksFilled is looksRight of tables that have a text under each head.
func looksFilled(t *testing.T, s Shown) {
	t.Helper()
	looksRight(t, s)
	for _, table := range s.Tables {
		for _, row := range table.Rows {
			if len(row) != len(table.Head) || slices.Contains(row, "") {
				t.Errorf("%s: %q under %q", table.Title, row, table.Head)
			}
		}
	}
}
