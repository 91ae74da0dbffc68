// Package study is the core of what can be measured. It says what a study is: a
// question, the arms that answer it, and the published claims that it tests. It has
// what all studies need: evidence, figures, verdicts, and the words of tables. Each
// study is a package below this one; package all lists them.
//
// A study decides what is run. Package [trial] runs it, and the report prints it.
// Package sweep has what is no study: one workload under many policies.
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

// A Study is one question of a published document, with what answers it.
type Study struct {
	Name     string
	Question string // without its question mark
	Source   string // the documents that asked it

	// Takes are the settings that the user may choose.
	Takes []string

	// Published are the tables as they were printed there.
	Published []Table

	// Arms returns what is run, in the order of the tables. Presets change how
	// much an arm does and which arms there are, but the time of a record must not
	// depend on it.
	Arms func(Choice) []Arm

	// Flat says that the arms make no directories, and no file names of more than 14 bytes.
	// So they can be run on a bfs, which has neither.
	Flat bool

	// Rounds returns how many rounds the choice, whose preset is the study's, makes
	// where none were chosen; nil is the preset's.
	Rounds func(Choice) int

	// Twin names the arm that is run twice to learn the noise; empty is the first
	// that can be run.
	Twin string

	// Show returns what was measured, in whole rounds of the arms.
	Show func(Evidence) Shown

	// Across returns what a run on several file systems shows of all of them together.
	// It gets one Evidence for each, in the order in which they were given; nil shows
	// nothing but each by itself.
	Across func([]Evidence) Shown

	Claims []Claim
}

// An Arm is one way to do a study's work.
type Arm struct {
	// Cell says what the arm is. Name is unique in the study. Group is the same
	// for arms that do the same work, which are compared. Records and RecordBytes
	// are what a trial does unless the task reports others.
	result.Cell

	// Missing says why the arm can't be run here, or is empty. Elsewhere are then
	// the flags with which it could be, such as --dir A_DIRECTORY_ON_A_DISK, if any.
	Missing, Elsewhere string

	Time  time.Duration // that one trial takes, about, for the plan
	Bytes int64         // that one trial writes, about
	Room  int64         // that it takes on the disk at once; 0 is Bytes
	Files int64         // that one trial makes and that stay until the end of the run, if they are many

	Task func() trial.Task
}

// Shown is what a study shows of a run.
type Shown struct {
	Tables  []Table     // the published columns with our figures first, then what else was seen
	Picture *chart.Dots // nil: none
	Learnt  string      // one sentence without its full stop, made from the figures; empty if there are none
}

// A Table is texts in rows.
type Table struct {
	Title  string
	Source string // of published figures: the document
	Head   []string
	Rows   [][]string
	Notes  []string // what a reader must know: one sentence each

	// Where a line has no room for all columns, those from Apart on stand below the
	// others, in a table with the same first columns. 0 is those that have no room.
	Apart int
}

// ErrNoArm says that none of the arms can be run here; the reason follows.
var ErrNoArm = errors.New("nothing of the study can be run here")

// Prepare returns what is to be run on g: every arm that can be run here, one of them twice. It also returns what can't
// be, even with ErrNoArm. The number of rounds is fixed; a run that takes longer than its time ends before, with whole
// rounds.
func (s Study) Prepare(g *trial.WorkDir, c Choice) (trial.Matrix, result.Plan, []result.Missing, error) {
	c = c.on(g)
	m, plan, missing := s.Matrix(c)
	if err := s.nothing(m, missing); err != nil {
		return m, plan, missing, err
	}
	return m, plan, missing, errors.Join(g.Need(plan.Room), g.NeedFiles(plan.Files))
}

// noReflink says why no two files in the work directory can share their bytes, or is empty:
// it tries.
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
		_ = errors.Join(from.Close(), to.Close(), os.Remove(from.Name()), os.Remove(to.Name())) // what is left goes with the work directory
	}()
	if _, err := from.Write(make([]byte, PageBytes)); err != nil {
		return err.Error()
	}
	if err := Reflinks(int(from.Fd()), int(to.Fd())); err != nil {
		return fmt.Sprintf("files on %s can't share their bytes: FICLONE: %v", g.FileSystem, err)
	}
	return ""
}

// on returns the choice with what can't be had on g.
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

// Check returns ErrNoArm where nothing of what is chosen could run in any work directory.
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

// Outline returns what Prepare would run.
func (s Study) Outline(c Choice) ([]result.Cell, result.Plan) {
	m, plan, _ := s.Matrix(c)
	var cells []result.Cell
	for _, c := range m.Cells {
		cells = append(cells, c.Cell)
	}
	return cells, plan
}

// Matrix returns what the choice runs in any work directory, its plan, and what can't be run.
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
	// The warm-up and one round are run however little time there is; of the others those
	// that are begun before the limit.
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

// A Part is one of the study's.
type Part string

// The parts, by the names of the repetition; write and sync are exercises 13-2 and
// 13-3.
const (
	PartA     Part = "A"     // by the size of the file
	PartB     Part = "B"     // with O_SYNC
	PartC     Part = "C"     // 100 MiB, to be run on several file systems
	PartWrite Part = "write" // without reading
	PartSync  Part = "sync"  // fflush and fsync of a stdio stream
)

// Parts returns all of them.
func Parts() []Part { return []Part{PartA, PartB, PartC, PartWrite, PartSync} }

// ParsePart reads the name of a part.
func ParsePart(text string) (Part, error) {
	if p := Part(text); slices.Contains(Parts(), p) {
		return p, nil
	}
	return "", fmt.Errorf("%q is not a part of a study; the study copy has A, B, C, write and sync", text)
}

// The published documents, by the names that docs/studies.md has for them.
const (
	FileIOExperiment   = "go-file-io-experiment"
	EfficientBuffering = "go-efficient-buffering"
	BufferingDrill     = "os-course-buffering-drill"
	CopyBufferSizes    = "tlpi-copy-buffer-sizes"
	WriterBenchmarks   = "go-writer-package-benchmarks"
)
