package lab_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/lab"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/sweep"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// sites are work directories that stand for file systems.
func sites(t *testing.T, names ...string) (all []study.Site) {
	t.Helper()
	for _, name := range names {
		g, err := trial.OpenWorkDir(t.TempDir(), true)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = g.Close() })
		all = append(all, study.Site{FileSystem: name, WorkDir: g})
	}
	return all
}

// record gathers the trials of a run.
type record struct{ trials []*result.Trial }

func (*record) Begin(trial.Step)            {}
func (r *record) Done(t result.Trial) error { r.trials = append(r.trials, &t); return nil }

// cheap is a choice whose run takes no time.
func cheap() study.Choice {
	return study.Choice{Preset: study.Quick(), Rounds: 1, Count: 20, Only: []string{"file, bufio", "file, one write a line"}, Seed: 7}
}

func TestEveryArmRunsOnceOnEachFileSystemInEveryRound(t *testing.T) {
	locks, _ := lab.Studies().Find("locks")
	on := sites(t, "ext4", "xfs")
	c := cheap()
	c.FileSystems = []string{"ext4", "xfs"}
	m, plan, _, err := locks.PrepareOn(on, c)
	if err != nil {
		t.Fatal(err)
	}
	var done record
	if _, _, err := m.Run(t.Context(), nil, &done); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, trial := range done.trials {
		seen[trial.Cell]++
	}
	if len(m.Cells) != 6 || len(seen) != 6 || seen["ext4: file, bufio"] != 2 || seen["xfs: file, bufio"] != 2 {
		t.Errorf("%d cells, and trials %v", len(m.Cells), seen)
	}
	var cells []result.Cell
	for _, cell := range m.Cells {
		cells = append(cells, cell.Cell)
	}
	run := result.Run{Header: result.Header{Study: "locks", Cells: cells, Plan: plan, Seed: 7, Settings: c.Settings()}, Trials: done.trials}
	alone, _ := locks.Outline(cheap())
	if got := run.On("xfs").Header.Cells; !slices.Equal(got, alone) {
		t.Errorf("on xfs it is\n%+v\nwant\n%+v", got, alone)
	}
	again, err := sweep.AgainOn(lab.Studies(), run.Header, trial.NotCounting, on)
	if err != nil || len(again.Cells) != 6 || again.Cells[4].Cell != m.Cells[4].Cell {
		t.Errorf("again it is %+v, %v", again.Cells, err)
	}
	if _, err := sweep.AgainOn(lab.Studies(), run.Header, trial.NotCounting, on[:1]); err == nil || !strings.Contains(err.Error(), "xfs") {
		t.Errorf("without xfs: %v", err)
	}
}

// TestCellsRunOnTheirOwnWorkDir: a work directory that is closed stops its own cells alone.
func TestCellsRunOnTheirOwnWorkDir(t *testing.T) {
	locks, _ := lab.Studies().Find("locks")
	on := sites(t, "ext4", "xfs")
	m, _, _, err := locks.PrepareOn(on, cheap())
	if err != nil {
		t.Fatal(err)
	}
	if err := on[1].WorkDir.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range m.Cells {
		_, err := c.Run(t.Context(), nil, false)
		if gone := c.FileSystem == "xfs"; gone != (err != nil) {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}

func TestSweepIsCalibratedOnEachFileSystem(t *testing.T) {
	c := study.Choice{Preset: study.Quick(), Rounds: 1, Budget: 1, Writers: []int{1}, Policies: []holdfast.Policy{holdfast.Buffered(4096)}, FileSystems: []string{"ext4", "xfs"}}
	m, plan, err := sweep.Policy().PrepareOn(t.Context(), sites(t, "ext4", "xfs"), c, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Cells) != 6 || m.Rounds != 1 || plan.Rounds != 1 || m.Cells[4].Twin != m.Cells[3].Name || m.Cells[3].FileSystem != "xfs" {
		t.Errorf("%d rounds of %+v", m.Rounds, m.Cells)
	}
}

func TestStudyThatRunsNowhereIsNoArm(t *testing.T) {
	s := study.Study{Name: "none", Arms: func(study.Choice) []study.Arm {
		return []study.Arm{{Cell: result.Cell{Name: "a"}, Missing: "it is not here"}}
	}}
	_, _, missing, err := s.PrepareOn(sites(t, "ext4", "xfs"), study.Choice{Preset: study.Quick()})
	if !errors.Is(err, study.ErrNoArm) || len(missing) != 2 || missing[1].Cell != "xfs" {
		t.Errorf("%v, %+v", err, missing)
	}
}

// TestClaimOfOneFileSystemIsJudgedThereAlone: the others are judged on each.
func TestClaimOfOneFileSystemIsJudgedThereAlone(t *testing.T) {
	judge := func(e study.Evidence) study.Finding {
		return study.Finding{Verdict: study.Holds, Why: "on " + e.Fact("file system")}
	}
	s := study.Study{Name: "s", Claims: []study.Claim{{Name: "any", Decide: judge}, {Name: "one", Of: "xfs", Decide: judge}, {Name: "none", Of: "jfs", Decide: judge}}}
	alone := result.Run{Header: result.Header{Study: "s", Cells: []result.Cell{{Name: "a"}}}}
	run := result.Run{Header: result.Header{Study: "s"}}
	for _, name := range []string{"ext4", "xfs", "uml-xfs"} {
		run.Header.Cells = append(run.Header.Cells, alone.Header.Cells[0].Placed(name))
		run.Header.FileSystems = append(run.Header.FileSystems, result.FileSystem{Name: name})
	}
	var got []string
	for _, j := range s.JudgeOn(run) {
		got = append(got, j.Name+" "+j.FileSystem+" "+j.Why)
	}
	want := []string{"any ext4 on ext4", "any xfs on xfs", "any uml-xfs on xfs", "one xfs on xfs", "one uml-xfs on xfs", "none ext4 the claim is about jfs, and this directory is on ext4"}
	if !slices.Equal(got, want) {
		t.Errorf("judged %q", got)
	}
	if got := s.JudgeOn(alone); len(got) != 3 || got[0].FileSystem != "" {
		t.Errorf("alone: %+v", got)
	}
}

// TestArmsOfARunWithAGuestAreOfTheSameSizesAgain: what a call took inside is a setting,
// from which the sizes of the arms are made again, on both sides.
func TestArmsOfARunWithAGuestAreOfTheSameSizesAgain(t *testing.T) {
	copying, _ := lab.Studies().Find("copy")
	c := study.Choice{
		Preset: study.Quick(), Parts: []study.Part{"C"}, Seed: 7, Budget: time.Minute,
		FileSystems: []string{"ext4", "uml-ext4"}, PlanSlower: 15 * time.Microsecond,
	}
	cells, plan := copying.OutlineOn(c)
	quick := c
	quick.PlanSlower = 0
	if fast, _ := copying.OutlineOn(quick); slices.Equal(fast, cells) {
		t.Fatal("a call that takes longer makes no arm smaller")
	}
	h := result.Header{Study: "copy", Plan: study.Sum(plan, plan), Seed: 7, Settings: c.Settings()}
	for _, cell := range cells {
		h.Cells = append(h.Cells, cell.Placed("ext4"))
	}
	on := []study.Site{{FileSystem: "ext4"}}
	m, err := sweep.AgainOn(lab.Studies(), h, trial.NotCounting, on)
	if err != nil || len(m.Cells) != len(cells) {
		t.Errorf("%d cells of %d; %v", len(m.Cells), len(cells), err)
	}
	part := c.Part(1)
	if part.Budget != 30*time.Second {
		t.Errorf("one of two file systems has %v", part.Budget)
	}
}
