// Package study is the core of all measurements. It defines a study: a question, the arms that answer
// it, and the published claims that it tests. It has what all studies need: evidence, figures,
// verdicts, and the words of tables. Each study is a package of its own; package lab lists them.
//
// A study decides which work is run. Package [trial] runs it, and the report prints it. Package sweep
// runs one workload under many policies, which is no study.
//
// Start with [Study]; docs/design/new-study.md shows how to add one.
package study

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/chart"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// A Study is one question of a published document, with the arms that answer it.
type Study struct {
	Name     string
	Question string // without its question mark
	Source   string // the documents that ask it

	// Takes are the settings that the user may choose.
	Takes []string

	// Published are the tables as the document printed them.
	Published []Table

	// Arms returns the arms, in the order of the tables. The preset changes the size of an arm's work
	// and the list of arms, but the time of a record must not depend on it.
	Arms func(Choice) []Arm

	// Flat means that the arms make no directories, and no file names of more than 14 bytes, so that
	// they can run on a bfs, which allows neither.
	Flat bool

	// Rounds returns the number of rounds for a choice with the study's preset, if no number was
	// chosen; nil: the preset's.
	Rounds func(Choice) int

	// Twin names the arm that runs twice to learn the noise; empty: the first arm that can run.
	Twin string

	// Show returns the tables and the result for complete rounds of the arms.
	Show func(Evidence) Shown

	// Across returns the comparison of all file systems of a run on several. It gets one Evidence for
	// each, in the order in which they were given; nil: each file system is only shown by itself.
	Across func([]Evidence) Shown

	Claims []Claim
}

// An Arm is one way to do a study's work.
type Arm struct {
	// Cell describes the arm. Name is unique in the study. Group is the same for arms that do the same
	// work, which are compared. Records and RecordBytes are the numbers of a trial unless the task
	// reports others.
	result.Cell

	// Missing is the reason why the arm can't run here, or empty. Elsewhere are then the flags with
	// which it could, such as --dir A_DIRECTORY_ON_A_DISK, if there are any.
	Missing, Elsewhere string

	Time  time.Duration // approximate duration of a trial, for the plan
	Bytes int64         // approximate bytes that one trial writes
	Room  int64         // bytes that it needs on the disk at once; 0 is Bytes
	Files int64         // files that one trial makes and that stay until the end of the run, if they are many

	Task func() trial.Task
}

// Shown is a study's presentation of a run.
type Shown struct {
	Tables  []Table     // the published columns with our figures first, then the others
	Picture *chart.Dots // nil: none
	Learnt  string      // one sentence without its full stop, made from the figures; empty if there are none
}

// A Table is rows of texts.
type Table struct {
	Title  string
	Source string // of published figures: the document
	Head   []string
	Rows   [][]string
	Notes  []string // notes for the reader: one sentence each

	// If a line has no room for all columns, the columns from Apart on are printed below the others, in
	// a table with the same first columns. 0: only the columns that have no room.
	Apart int
}

// ErrNoArm means that none of the arms can run here; the reason follows.
var ErrNoArm = errors.New("nothing of the study can be run here")

// Prepare returns the matrix to run on g: every arm that can run here, one of them twice. It also returns the arms that
// can't, even with ErrNoArm. The number of rounds is fixed; a run that takes longer than its time ends earlier, after a
// complete round.
func (s Study) Prepare(g *trial.WorkDir, c Choice) (trial.Matrix, result.Plan, []result.Missing, error) {
	c = c.on(g)
	m, plan, missing := s.Matrix(c)
	if err := s.nothing(m, missing); err != nil {
		return m, plan, missing, err
	}
	return m, plan, missing, errors.Join(g.Need(plan.Room), g.NeedFiles(plan.Files))
}

// noReflink is the reason why no two files in the work directory can share their bytes, or empty: it
// tries.
func noReflink(g *trial.WorkDir) string {
	from, err := os.CreateTemp(g.Inside(), "reflink-from-*")
	if err != nil {
		return err.Error()
	}
	to, err := os.CreateTemp(g.Inside(), "reflink-to-*")
	if err != nil {
		_ = errors.Join(from.Close(), os.Remove(from.Name()))
		return err.Error()
	}
	defer func() {
		_ = errors.Join(from.Close(), to.Close(), os.Remove(from.Name()), os.Remove(to.Name())) // Close of the work directory removes files that remain
	}()
	if _, err := from.Write(make([]byte, PageBytes)); err != nil {
		return err.Error()
	}
	if err := Reflinks(int(from.Fd()), int(to.Fd())); err != nil {
		return fmt.Sprintf("files on %s can't share their bytes: FICLONE: %v", g.FileSystem, err)
	}
	return ""
}

// on returns the choice with the limits of g: page cache, sync and reflink.
func (c Choice) on(g *trial.WorkDir) Choice {
	why := func(asked result.Cache) string {
		if err := g.Can(asked); err != nil {
			return err.Error()
		}
		return ""
	}
	c.NeverCold, c.NeverWarm = why(result.Cold), why(result.Warm)
	c.NeverReflink = noReflink(g)
	if err := g.CanSync(); err != nil {
		c.NeverSync = err.Error()
	}
	return c
}

// Check returns ErrNoArm if nothing in the choice could run in any work directory.
func (s Study) Check(c Choice) error {
	m, _, missing := s.Matrix(c)
	return s.nothing(m, missing)
}

func (s Study) nothing(m trial.Matrix, missing []result.Missing) error {
	if len(m.Cells) > 0 {
		return nil
	}
	return fmt.Errorf("%w: %s: %s", ErrNoArm, s.Name, missing[0].Why)
}

// Outline returns the plan of Prepare.
func (s Study) Outline(c Choice) ([]result.Cell, result.Plan) {
	m, plan, _ := s.Matrix(c)
	var cells []result.Cell
	for _, c := range m.Cells {
		cells = append(cells, c.Cell)
	}
	return cells, plan
}

// Matrix returns the matrix that the choice runs in any work directory, its plan, and the arms that
// can't run.
func (s Study) Matrix(c Choice) (trial.Matrix, result.Plan, []result.Missing) {
	c = c.OfStudy()
	if s.Rounds != nil && c.Rounds == 0 && !c.Steady {
		c.Preset.Rounds = s.Rounds(c)
	}
	var arms []Arm
	var missing []result.Missing
	for _, a := range s.Arms(c) {
		switch {
		case c.Only != nil && !slices.Contains(c.Only, a.Name):
		case a.Missing != "":
			missing = append(missing, result.Missing{Cell: a.Name, Why: a.Missing, Elsewhere: a.Elsewhere})
		default:
			arms = append(arms, a)
		}
	}
	m := trial.Matrix{Rounds: c.RoundsToRun(), Seed: c.Seed}
	if c.Rounds == 0 {
		m.Limit = c.TimeToTake()
	}
	plan := result.Plan{Preset: c.Preset.Name, Rounds: m.Rounds, Limit: m.Limit}
	for _, a := range s.withTwin(arms) {
		run := func(ctx context.Context, g *trial.WorkDir, warmUp bool) (result.Measurement, error) {
			count := trial.NotCounting
			if warmUp {
				count = c.Counting
			}
			t := a.Task()
			t.Name = a.Name
			return t.Run(ctx, g, count, a.Records, a.Records*a.RecordBytes)
		}
		m.Cells = append(m.Cells, trial.Cell{Cell: a.Cell, Run: run, Estimate: a.Time})
		prepared := trial.PreparedBytes(a.Task().Writes)
		plan.Size += a.Bytes + prepared // of one round
		plan.Files += a.Files * int64(m.Rounds+1)
		plan.Room = max(plan.Room, a.Bytes, a.Room, prepared)
	}
	// The warm-up and one round run in any case; further rounds run if they start before the limit.
	const leastRounds = 2
	rounds := int64(m.Rounds + 1)
	each := m.Estimate() / time.Duration(rounds)
	if m.Limit > 0 && each > 0 {
		rounds = min(rounds, max(leastRounds, int64((m.Limit+each-1)/each)))
	}
	plan.Size = max(plan.Size*rounds, plan.Room)
	plan.Room += 4 << 20 // the file system's books
	plan.Estimate = each * time.Duration(rounds)
	if m.Limit > 0 && rounds > leastRounds {
		plan.Estimate = min(plan.Estimate, m.Limit)
	}
	return m, plan, missing
}

// withTwin repeats one arm under a second name.
func (s Study) withTwin(arms []Arm) []Arm {
	if len(arms) == 0 {
		return nil
	}
	twin := arms[max(0, slices.IndexFunc(arms, func(a Arm) bool { return a.Name == s.Twin }))]
	twin.Twin = twin.Name
	twin.Name += "/again"
	return append(slices.Clip(arms), twin)
}

// A Part is a part of the repetition study.
type Part string

// The names of the parts; write and sync are exercises 13-2 and 13-3.
const (
	PartA     Part = "A"     // by the size of the file
	PartB     Part = "B"     // with O_SYNC
	PartC     Part = "C"     // 100 MiB, to be run on several file systems
	PartWrite Part = "write" // without reading
	PartSync  Part = "sync"  // fflush and fsync of a stdio stream
)

// Parts returns all parts.
func Parts() []Part { return []Part{PartA, PartB, PartC, PartWrite, PartSync} }

// ParsePart reads the name of a part.
func ParsePart(text string) (Part, error) {
	if p := Part(text); slices.Contains(Parts(), p) {
		return p, nil
	}
	return "", fmt.Errorf("%q is not a part of a study; the study copy has A, B, C, write and sync", text)
}

// The published documents, by their names in docs/studies.md.
const (
	FileIOExperiment   = "go-file-io-experiment"
	EfficientBuffering = "go-efficient-buffering"
	BufferingDrill     = "os-course-buffering-drill"
	CopyBufferSizes    = "tlpi-copy-buffer-sizes"
	WriterBenchmarks   = "go-writer-package-benchmarks"
)
