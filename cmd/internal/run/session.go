package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/sweep"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/cmd/internal/place"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/workdir"
)

// A Session is one run on one ground: it prints the plan and the progress, keeps
// the results, and has at last what was measured.
type Session struct {
	stderr io.Writer
	ground *trial.WorkDir
	dir    string // as the user gave it
	host   string // the name that the user gave this machine, or empty
	Place  place.Place
	subject
	counts
	results
	show  *cli.Progress
	shown int  // the last round that was shown
	told  bool // the first figures
	clock clock

	// Enough says if what was measured decides what is asked: the run ends then. Nil: it is not asked.
	Enough func(result.Run) bool
}

// A subject is the study or sweep that is measured.
type subject struct{ name, question string }

// Counts are of system calls.
type counts struct {
	counting trial.Counting
	traced   map[string]*result.SystemCalls // by cell, where there are no tracepoints
	unseen   string                         // why system calls can't be counted at all, or empty
}

// Results are the measured results, and the file that keeps them.
type results struct {
	Run       result.Run
	output    string   // the results file, or empty
	OutputDir *os.Root // the directory to make it in; nil: its path's
	file      *result.File
}

// New begins a session that counts system calls by tracepoints if it can.
func New(stderr io.Writer, ground *trial.WorkDir, dir, output string) *Session {
	s := &Session{
		stderr: stderr, ground: ground, Place: (&place.Volumes{}).In(ground), dir: dir, results: results{output: output},
		counts: counts{unseen: trial.TracepointsUnseen()}, show: cli.NewProgress(stderr, false), shown: -1,
	}
	if s.unseen == "" {
		s.counting = trial.Tracepoints
	}
	ground.Second = place.SecondProcess
	s.sayBeside(ground.Neighbours())
	return s
}

// sayBeside names the directories of other runs beside the ground, live or stale. It does
// not name a directory that no run has made.
func (s *Session) sayBeside(all []trial.Neighbour) {
	var stale, alive, foreign []string
	for _, n := range all {
		var others *workdir.ForeignError
		switch {
		case n.Err == nil:
			stale = append(stale, n.Dir)
		case errors.Is(n.Err, trial.ErrAlive):
			alive = append(alive, n.Dir)
		case errors.As(n.Err, &others), errors.Is(n.Err, fs.ErrPermission):
			foreign = append(foreign, n.Dir)
		}
	}
	if len(stale) > 0 {
		s.Say("found %s, which looks like a leftover of a killed run; holdfast volumes --clean %q removes leftovers", cli.FirstOf(stale), filepath.Dir(stale[0]))
	}
	if len(alive) > 0 {
		s.Say("another run is going on in %s, and disturbs this one", cli.FirstOf(alive))
	}
	if len(foreign) > 0 {
		s.Say("found %s of another user: either a run that goes on there disturbs this one, or a killed run left it", cli.FirstOf(foreign))
	}
}

// Measure plans the chosen sweep, prints the plan, and runs it. Run holds the results, also with an
// error.
func (s *Session) Measure(ctx context.Context, of sweep.Sweep, c study.Choice) error {
	c.Counting = s.counting
	matrix, plan, err := s.Calibrate(ctx, of, c)
	if err != nil {
		return err
	}
	if err := s.trace(ctx, matrix); err != nil {
		return err
	}
	h := s.Header(matrix, plan)
	if len(h.FileSystems) > 0 {
		h.Settings, h.Missing = c.Settings(), s.Place.Missing()
	}
	s.sayMissing(h.Missing)
	return s.begin(ctx, h, matrix)
}

// Calibrate plans the chosen sweep with short runs.
func (s *Session) Calibrate(ctx context.Context, of sweep.Sweep, c study.Choice) (trial.Matrix, result.Plan, error) {
	s.name, s.question = of.Name, of.Question
	s.Say("calibrating with short runs in %s on %s", s.ground.Dir(), s.Place.Names())
	matrix, plan, err := s.Place.Sweep(ctx, of, c, s.showProbing)
	s.show.Clear()
	return matrix, plan, err
}

// showProbing follows the calibration, on a terminal alone.
func (s *Session) showProbing(done, all int) {
	s.show.Steps("calibrating", done, all)
	if done+1 == all {
		s.show.Clear()
	}
}

// Study plans a study, prints the plan, and runs it.
func (s *Session) Study(ctx context.Context, of study.Study, c study.Choice) error {
	s.name, s.question = of.Name, of.Question
	c.Counting = s.counting
	matrix, plan, missing, err := s.Place.Study(of, c)
	if err != nil {
		s.Run.Header.Missing = missing
		return err
	}
	s.sayMissing(missing)
	h := s.Header(matrix, plan)
	h.Settings, h.Missing = c.Settings(), missing
	return s.begin(ctx, h, matrix)
}

func (s *Session) sayMissing(missing []result.Missing) {
	for _, m := range study.MissingByReason(missing) {
		s.Say("not run: %s", m)
	}
}

// again makes the matrix of an earlier run, and counts its system calls where that needs
// a run of its own. A study needs none: the kernel counts its reads and writes in every
// trial.
func (s *Session) again(ctx context.Context, studies study.List, h result.Header, uncounted bool) (trial.Matrix, error) {
	s.name, s.question = h.Study, h.Question
	matrix, err := s.Place.Again(studies, h, s.counting)
	if err != nil {
		return matrix, &cli.Refusal{Code: cli.ExitCannot, Err: err, Hint: "use the holdfast that made the results, or start a new run of the study"}
	}
	if study.Is(h) || !uncounted {
		return matrix, nil
	}
	return matrix, s.trace(ctx, matrix)
}

// begin makes the results file and runs the matrix.
func (s *Session) begin(ctx context.Context, h result.Header, m trial.Matrix) (err error) {
	s.Run.Header = h
	switch {
	case s.OutputDir != nil:
		s.file, err = result.CreateIn(s.OutputDir, filepath.Base(s.output), h)
	case s.output != "":
		s.file, err = result.Create(s.output, h)
	}
	if err != nil {
		return &outputError{workdir.Named(err, s.output)}
	}
	return s.execute(ctx, m)
}

// Resume goes on with the unfinished run of the output file.
func (s *Session) Resume(ctx context.Context, studies study.List, earlier result.Run) (err error) {
	matrix, err := s.again(ctx, studies, earlier.Header, !allCounted(earlier))
	if err != nil {
		return err
	}
	r := result.Resumption{Program: cli.Program(), StartedAt: now(), WorkDir: s.ground.Name(), Machine: s.machine(s.dir)}
	s.Run, s.file, err = result.Resume(s.output, r, func(now result.Run) bool { return reflect.DeepEqual(cli.PlainRun(now), earlier) })
	if err != nil {
		return fmt.Errorf("--resume: %w", err)
	}
	s.Run.Resumed, s.Run.End = append(s.Run.Resumed, r), nil
	s.Run.Torn, s.Run.TornAt = false, 0
	matrix.Whole, matrix.Before = earlier.Rounds(), earlier.LastRound()
	if matrix.Limit > 0 {
		matrix.Limit = max(1, matrix.Limit-earlier.Spent())
	}
	s.Say("continuing in %s on %s after %s complete rounds", s.ground.Dir(), s.Place.Names(), earlier.DoneText())
	return s.execute(ctx, matrix)
}

// Repeat runs the plan of an earlier run again: the same cells with the same
// records, in the same order. The run may be of one of these studies.
func (s *Session) Repeat(ctx context.Context, studies study.List, h result.Header) error {
	matrix, err := s.again(ctx, studies, h, true)
	if err != nil {
		return err
	}
	if err := s.Place.Need(h.Plan); err != nil {
		return err
	}
	s.Say("repeating a run in %s on %s", s.ground.Dir(), s.Place.Names())
	again := s.Header(matrix, h.Plan)
	again.Settings, again.Missing = h.Settings, h.Missing
	return s.begin(ctx, again, matrix)
}

// allCounted reports whether each cell that is traced has its counts.
func allCounted(run result.Run) bool {
	for _, c := range tracedCells(run.Header.Cells) {
		if _, ok := run.Counted(c.Name); !ok {
			return false
		}
	}
	return true
}

// execute runs the matrix and ends the results.
func (s *Session) execute(ctx context.Context, m trial.Matrix) error {
	plan := s.Run.Header.Plan
	if plan.Width > 0 {
		m.Settled = func() bool { return s.settled() || s.enough() }
		m.Resting = func(cell string, round int) bool { return s.Run.Resting(cell, round) }
	} else if s.Enough != nil {
		m.Settled, m.MostRounds = s.enough, m.Rounds
	}
	s.Say("plan: %s", planText(len(m.Cells), plan, m.Seed))
	s.clock = clock{begun: time.Now()}
	blocks := &sweep.Blocks{Matrix: m}
	if !study.Is(s.Run.Header) && plan.Preset != study.PresetQuick { // which looks for larger differences
		blocks = sweep.InBlocks(m, s.ground, s.control)
	}
	_, stop, err := blocks.Matrix.Run(ctx, s.ground, s)
	if closeErr := blocks.Close(); err == nil {
		err = closeErr
	}
	s.show.Clear()
	e := result.End{State: result.Complete, Rounds: s.Run.Rounds(), Elapsed: time.Since(s.clock.begun), ClockJump: s.clock.jump}
	needs := 0
	if plan.Words {
		e.Width, needs = s.widest()
	} else if plan.Width > 0 {
		e.Width, _ = figure.Settled(s.Run, plan.Width)
	}
	switch {
	case errors.Is(err, context.Canceled):
		e.State = result.Interrupted
	case err != nil:
		e.State, e.Reason = result.Failed, err.Error()
	case stop == trial.AtLimit:
		e.State = result.OutOfTime
	}
	if text := endText(e, plan, needs); e.State == result.Complete && s.enough() {
		s.Say("ended after %d rounds: the question is decided", e.Rounds)
	} else {
		s.Say("%s", text)
	}
	s.Run.End = &e
	if s.file == nil {
		return err
	}
	if closeErr := s.file.Close(e); closeErr != nil {
		err = errors.Join(err, &outputError{closeErr})
	}
	return err
}

// settled is the stop rule of a run with a width. Where words end the run, cells of which enough is known rest from now on.
func (s *Session) settled() bool {
	plan := s.Run.Header.Plan
	if !plan.Words {
		_, ok := figure.Settled(s.Run, plan.Width)
		return ok
	}
	needs, ok := figure.Needs(s.Run, plan.Width)
	if !ok || len(needs) == 0 {
		return ok
	}
	if cells := figure.AtRest(s.Run, needs); len(cells) > 0 {
		rest := result.Rest{Round: s.Run.LastRound(), Cells: cells}
		if s.file == nil || s.file.Rest(rest) == nil { // what the file does not say would make its later rounds incomplete
			s.Run.Rests = append(s.Run.Rests, rest)
		}
	}
	return false
}

// widest returns the number of cells of which a run that words end does not know enough, and the largest half-width among them, or
// 0 if it is not known.
func (s *Session) widest() (width float64, needs int) {
	all, _ := figure.Needs(s.Run, s.Run.Header.Plan.Width)
	for _, n := range all {
		width = max(width, n.Width)
	}
	if !(width > 0) { // NaN too
		width = 0
	}
	return width, len(all)
}

// enough reports whether the run may end because its question is decided.
func (s *Session) enough() bool { return s.Enough != nil && s.Enough(s.Run) }

// endText says why a run ended where it did. Needs is the number of cells of which a run that words end does not know enough.
func endText(e result.End, plan result.Plan, needs int) string {
	done := fmt.Sprintf("ended after %d rounds", e.Rounds)
	if e.Rounds == 1 {
		done = "ended after 1 round"
	}
	width := ""
	if e.Width > 0 {
		width = fmt.Sprintf("; the least certain ratio is known to ±%.1f %%", e.Width*100)
		if e.Width > 1 { // beyond, a figure says nothing
			width = "; the least certain ratio is not known to a factor of two"
		}
	}
	if needs > 0 {
		width = fmt.Sprintf("; %s still uncertain by more than ±%.3g %%", cli.CountText(int64(needs), "figure"), plan.Width*100)
		switch {
		case e.Width > 1:
			width += ", the worst by more than a factor of two"
		case e.Width > 0:
			width += fmt.Sprintf(", the worst by ±%.0f %%", math.Ceil(e.Width*100))
		}
	}
	switch {
	case e.State == result.OutOfTime:
		return done + ": time ran out" + width
	case e.State == result.Complete && plan.Words && needs == 0:
		return done + fmt.Sprintf(": each time is known to ±%.3g %%, and each comparison is decided", plan.Width*100)
	case e.State == result.Complete && plan.Width > 0 && !plan.Words:
		return done + fmt.Sprintf(": every ratio is known to ±%.3g %% or better", plan.Width*100)
	case e.State == result.Complete:
		return done + ": all planned rounds" + width
	}
	return done + ": " + string(e.State)
}

// Host is the session as its place sees it.
func (s *Session) Host() place.Host {
	return place.Host{Dir: s.dir, WorkDir: s.ground, Say: s.Say, Kept: s.kept}
}

func (s *Session) Say(format string, args ...any) {
	s.show.Clear() // the bar may stand there
	cli.Say(s.stderr, format, args...)
}

func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

func (s *Session) Header(m trial.Matrix, plan result.Plan) result.Header {
	dir, err := filepath.Abs(s.dir)
	if err != nil {
		dir = s.dir
	}
	h := result.Header{
		SchemaVersion: result.SchemaVersion, Program: cli.Program(),
		Study: s.name, Question: s.question, StartedAt: now(),
		Dir: dir, WorkDir: s.ground.Name(), Seed: m.Seed, Plan: plan, Machine: s.machine(dir), SystemCallsUnseen: s.unseen,
	}
	for _, c := range m.Cells {
		h.Cells = append(h.Cells, c.Cell)
	}
	h.FileSystems = s.Place.Described(h.Machine)
	return h
}

// machine returns the facts of this machine, under the name that the user gave it.
func (s *Session) machine(dir string) []machine.Fact {
	facts := machine.Read(dir)
	for i := range facts {
		if facts[i].Name == machine.HostName && s.host != "" {
			facts[i].Value, facts[i].Source = s.host, "--host"
		}
	}
	return facts
}

// Begin and Done make the session a trial.Watcher.
func (s *Session) Begin(step trial.Step) { s.showStep(step) }

func (s *Session) Done(t result.Trial) error {
	s.clock.look()
	if t.Round == 0 && t.SystemCalls == nil {
		t.SystemCalls = s.traced[t.Cell]
	}
	s.Run.Trials = append(s.Run.Trials, &t)
	if s.file == nil {
		return nil
	}
	if err := s.file.Trial(t); err != nil {
		return &outputError{err}
	}
	return nil
}

// control keeps what a round began with.
func (s *Session) control(c result.Control) error {
	s.Run.Controls = append(s.Run.Controls, c)
	if s.file == nil {
		return nil
	}
	if err := s.file.Control(c); err != nil {
		return &outputError{err}
	}
	return nil
}

// A clock compares the time of day with the monotonic clock, which times everything.
type clock struct {
	begun time.Time
	jump  time.Duration // the largest so far; 0 if it was less than jumpLeast
}

// jumpLeast is far more than a clock is ever slewed between two looks.
const jumpLeast = time.Second

func (c *clock) look() {
	t := time.Now()
	// Round(0) takes the monotonic reading away.
	c.take(t.Round(0).Sub(c.begun.Round(0)), t.Sub(c.begun))
}

// take compares how far the two clocks went since the beginning.
func (c *clock) take(day, monotonic time.Duration) {
	jump := day - monotonic
	if jump.Abs() >= jumpLeast && jump.Abs() > c.jump.Abs() {
		c.jump = jump
	}
}

// An outputError says that the results can't be saved.
type outputError struct{ err error }

func (e *outputError) Error() string { return "-o: " + e.err.Error() }
func (e *outputError) Unwrap() error { return e.err }

// Refuse gives an error of the run its exit code and its hint.
func (s *Session) Refuse(err error) error {
	var content *trial.ContentError
	var room *trial.RoomError
	var cache *trial.CacheError
	var output *outputError
	var refused *cli.Refusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return err
	case errors.Is(err, context.Canceled):
		when := fmt.Sprintf("after %s rounds", s.Run.DoneText())
		if s.Run.Rounds() == 0 {
			when = "before the first round was done"
		}
		hint := "with -o results.jsonl, the results until then would be kept"
		switch {
		case s.file == nil && s.output != "":
			hint = "nothing had been measured, and " + s.output + " was not made"
		case s.file != nil:
			hint = fmt.Sprintf("the results until then are in %s; holdfast bench --resume %[1]s continues the run", s.output)
		}
		return &cli.Refusal{Code: cli.ExitInterrupted, Err: errors.New("interrupted " + when), Hint: hint}
	case errors.Is(err, study.ErrNoArm):
		return &cli.Refusal{Code: cli.ExitCannot, Err: err}
	case errors.As(err, &content):
		return &cli.Refusal{Code: cli.ExitNotMet, Err: err, Hint: "this must not happen on a healthy disk; please report it with the file system and the kernel's version"}
	case errors.As(err, &cache):
		hint := "use --cache try-cold to measure anyway and report the cached part, or --cache drop to empty the whole page cache (root)"
		if cache.Asked == result.Dropped || cache.Asked == result.Remount {
			hint = "--cache try-cold measures anyway, and reports the cached part"
		}
		return &cli.Refusal{Code: cli.ExitCannot, Err: err, Hint: hint}
	case errors.As(err, &output) && len(s.Run.Trials) == 0:
		return &cli.Refusal{Code: cli.ExitCannot, Err: err, Hint: "name a new file in a directory that you may write to, on a disk with some room"}
	case errors.As(err, &output):
		return &cli.Refusal{Code: cli.ExitCannot, Err: err, Hint: s.kept("free some space on the disk of the results")}
	case errors.As(err, &room), retry.Is(err, syscall.ENOSPC, syscall.EDQUOT):
		return &cli.Refusal{Code: cli.ExitCannot, Err: err, Hint: s.kept(place.HintRoom)}
	}
	if _, gone := os.Stat(s.ground.Dir()); errors.Is(gone, fs.ErrNotExist) {
		return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("the directory %s was removed during the measurement: %w", s.ground.Dir(), cli.Cause(err)), Hint: s.kept("don't remove it while holdfast runs")}
	}
	return &cli.Refusal{Code: cli.ExitCannot, Err: err, Hint: s.kept(cmp.Or(cli.DiskHint(err), "only a directory of its own was written to"))}
}

// kept adds to a hint where the results are.
func (s *Session) kept(hint string) string {
	if s.file == nil || len(s.Run.Trials) == 0 {
		return hint
	}
	return hint + "; the results so far are in " + s.output + ", and --resume continues the run"
}

// showStep shows the next trial: on a terminal each, else the first one of each round. It
// writes between trials, off the clock.
func (s *Session) showStep(step trial.Step) {
	if step.Round == 1 && !s.told {
		s.told = true
		if text := firstFigures(s.Run); text != "" {
			s.Say("%s", text)
		}
	}
	if s.show.IsTerminal {
		s.show.Steps(stepText(step), step.Trial-1, max(step.Trials, step.Trial))
		return
	}
	if step.Round == s.shown {
		return
	}
	s.shown = step.Round
	round, left := fmt.Sprintf("round %d of %d", step.Round, step.Rounds), step.Left.Round(time.Second).String()
	if step.Open { // both are the most that it may take
		round, left = fmt.Sprintf("round %d of about %d", step.Round, max(step.Round, step.Rounds)), "at most "+left
	}
	if step.Round == 0 {
		round = "warm-up"
	}
	s.show.Show(fmt.Sprintf("%s, %s left", round, left))
}

// firstFigures says what a record took in the warm-up, at the least and at the most. They come
// long before the table of a run. It is empty where there are not two policies of a load.
func firstFigures(run result.Run) string {
	var load figure.Load
	var least, most float64
	var cheapest, dearest result.Cell
	for _, c := range run.Header.Cells {
		of := figure.LoadOf(c)
		if c.Empty || c.Twin != "" || of.Group != "" || of.Open() || least > 0 && of != load {
			continue
		}
		for _, t := range run.Trials {
			if t.Cell != c.Name || t.Round != 0 {
				continue
			}
			cost := of.Costs([]*result.Trial{t})[0]
			if least == 0 || cost < least {
				least, cheapest = cost, c
			}
			if cost > most {
				most, dearest = cost, c
			}
			load = of
		}
	}
	if cheapest.Name == dearest.Name {
		return ""
	}
	return fmt.Sprintf("first figures, from one short trial each: %s (%v) to %s (%v) a record, %s",
		study.Duration(least), cheapest.Policy, study.Duration(most), dearest.Policy, cli.CountText(int64(load.Writers), "writer"))
}

// stepText is the line for a trial. The arms of a study have names.
func stepText(s trial.Step) string {
	left, cell := s.Left.Round(time.Second).String(), s.Cell.Name
	if s.Open {
		left = "≤" + left
	}
	if s.Cell.Group == "" {
		cell = fmt.Sprintf("%d x %v", s.Cell.Writers, s.Cell.Policy)
	}
	return fmt.Sprintf("round %d/%d, %s left, %s", s.Round, max(s.Round, s.Rounds), left, cell)
}
