package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	"github.com/holdfast-go/holdfast/internal/workdir"
)

// A session is one run on one ground: it prints the plan and the progress, keeps
// the results, and has at last what was measured.
type session struct {
	stderr io.Writer
	ground *trial.WorkDir
	dir    string // as the user gave it
	place  place.Place
	subject
	counts
	results
	show  *cli.Progress
	shown int  // the last round that was shown
	told  bool // the first figures
	live  *following
	clock clock
}

// A subject is the study or sweep that is measured.
type subject struct{ name, question string }

// Counts are of system calls.
type counts struct {
	counting trial.Counting
	traced   map[string]*result.SystemCalls // by cell, where there are no tracepoints
	unseen   string                         // why system calls can't be counted at all, or empty
}

// Results are what was measured, and the file that keeps it.
type results struct {
	run       result.Run
	output    string   // the results file, or empty
	outputDir *os.Root // the directory to make it in; nil: that of its path
	file      *result.File
}

// newSession begins a session that counts system calls by tracepoints if it can.
func newSession(stderr io.Writer, ground *trial.WorkDir, dir, output string) *session {
	s := &session{
		stderr: stderr, ground: ground, place: (&place.Volumes{}).In(ground), dir: dir, results: results{output: output},
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
func (s *session) sayBeside(all []trial.Neighbour) {
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
		s.say("beside it is %s, which looks like the files of a killed run; holdfast volumes --clean %q removes such", cli.FirstOf(stale), filepath.Dir(stale[0]))
	}
	if len(alive) > 0 {
		s.say("beside it a run goes on and disturbs this one, in %s", cli.FirstOf(alive))
	}
	if len(foreign) > 0 {
		s.say("beside it is %s of another user, of a run that goes on and disturbs this one, or left by one that was killed", cli.FirstOf(foreign))
	}
}

// measure plans the chosen sweep, prints the plan, and runs it. What was measured is in
// run, also with an error.
func (s *session) measure(ctx context.Context, of sweep.Sweep, c study.Choice) error {
	s.name, s.question = of.Name, of.Question
	s.say("calibrating with short runs in %s on %s", s.ground.Dir(), s.place.Names())
	c.Counting = s.counting
	matrix, plan, err := s.place.Sweep(ctx, of, c, s.showProbing)
	s.show.Clear()
	if err != nil {
		return err
	}
	if err := s.trace(ctx, matrix); err != nil {
		return err
	}
	h := s.header(matrix, plan)
	if len(h.FileSystems) > 0 {
		h.Settings, h.Missing = c.Settings(), s.place.Missing()
	}
	s.sayMissing(h.Missing)
	return s.begin(ctx, h, matrix)
}

// showProbing follows the calibration, on a terminal alone.
func (s *session) showProbing(done, all int) {
	s.show.Steps("calibrating", done, all)
	if done+1 == all {
		s.show.Clear()
	}
}

// study plans a study, prints the plan, and runs it.
func (s *session) study(ctx context.Context, of study.Study, c study.Choice) error {
	s.name, s.question = of.Name, of.Question
	c.Counting = s.counting
	matrix, plan, missing, err := s.place.Study(of, c)
	if err != nil {
		s.run.Header.Missing = missing
		return err
	}
	s.sayMissing(missing)
	h := s.header(matrix, plan)
	h.Settings, h.Missing = c.Settings(), missing
	return s.begin(ctx, h, matrix)
}

func (s *session) sayMissing(missing []result.Missing) {
	for _, m := range study.MissingByReason(missing) {
		s.say("not run: %s", m)
	}
}

// again makes the matrix of an earlier run, and counts its system calls where that needs
// a run of its own. A study needs none: the kernel counts its reads and writes in every
// trial.
func (s *session) again(ctx context.Context, h result.Header, uncounted bool) (trial.Matrix, error) {
	s.name, s.question = h.Study, h.Question
	matrix, err := s.place.Again(h, s.counting)
	if err != nil {
		return matrix, &cli.Refusal{Code: cli.ExitCannot, Err: err, Hint: "use the holdfast that made the results, or run the study anew"}
	}
	if cli.IsStudy(h) || !uncounted {
		return matrix, nil
	}
	return matrix, s.trace(ctx, matrix)
}

// begin makes the results file and runs the matrix.
func (s *session) begin(ctx context.Context, h result.Header, m trial.Matrix) (err error) {
	s.run.Header = h
	switch {
	case s.outputDir != nil:
		s.file, err = result.CreateIn(s.outputDir, filepath.Base(s.output), h)
	case s.output != "":
		s.file, err = result.Create(s.output, h)
	}
	if err != nil {
		return &outputError{workdir.Named(err, s.output)}
	}
	return s.execute(ctx, m)
}

// resume goes on with the unfinished run of the output file.
func (s *session) resume(ctx context.Context, earlier result.Run) (err error) {
	matrix, err := s.again(ctx, earlier.Header, !allCounted(earlier))
	if err != nil {
		return err
	}
	r := result.Resumption{Program: cli.Program(), StartedAt: now(), WorkDir: s.ground.Name(), Machine: machine.Read(s.dir)}
	s.run, s.file, err = result.Resume(s.output, r, func(now result.Run) bool { return reflect.DeepEqual(cli.PlainRun(now), earlier) })
	if err != nil {
		return fmt.Errorf("--resume: %w", err)
	}
	s.run.Resumed, s.run.End = append(s.run.Resumed, r), nil
	s.run.Torn, s.run.TornAt = false, 0
	matrix.Whole, matrix.Before = earlier.Rounds(), earlier.LastRound()
	if matrix.Limit > 0 {
		matrix.Limit = max(1, matrix.Limit-earlier.Spent())
	}
	s.say("going on in %s on %s after %d whole rounds of %d", s.ground.Dir(), s.place.Names(), matrix.Whole, matrix.Rounds)
	return s.execute(ctx, matrix)
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
func (s *session) execute(ctx context.Context, m trial.Matrix) error {
	plan := s.run.Header.Plan
	if plan.Width > 0 {
		m.Settled = func() bool { _, ok := figure.Settled(s.run, plan.Width); return ok }
	}
	s.say("plan: %s", planText(len(m.Cells), plan, m.Seed))
	s.clock = clock{begun: time.Now()}
	blocks := &sweep.Blocks{Matrix: m}
	if !cli.IsStudy(s.run.Header) && plan.Preset != study.PresetQuick { // which looks for larger differences
		blocks = sweep.InBlocks(m, s.ground, s.control)
	}
	_, stop, err := blocks.Matrix.Run(ctx, s.ground, s)
	if closeErr := blocks.Close(); err == nil {
		err = closeErr
	}
	s.show.Clear()
	e := result.End{State: result.Complete, Rounds: s.run.Rounds(), Elapsed: time.Since(s.clock.begun), ClockJump: s.clock.jump}
	if plan.Width > 0 {
		e.Width, _ = figure.Settled(s.run, plan.Width)
	}
	switch {
	case errors.Is(err, context.Canceled):
		e.State = result.Interrupted
	case err != nil:
		e.State, e.Reason = result.Failed, err.Error()
	case stop == trial.AtLimit:
		e.State = result.OutOfTime
	}
	s.say("%s", endText(e, plan))
	s.run.End = &e
	if s.file == nil {
		return err
	}
	if closeErr := s.file.Close(e); closeErr != nil {
		err = errors.Join(err, &outputError{closeErr})
	}
	return err
}

// endText says why a run ended where it did.
func endText(e result.End, plan result.Plan) string {
	done := fmt.Sprintf("ended after %d rounds", e.Rounds)
	if e.Rounds == 1 {
		done = "ended after 1 round"
	}
	width := ""
	if e.Width > 0 {
		width = fmt.Sprintf("; the ratio that is known worst is known to ±%.1f %%", e.Width*100)
	}
	switch {
	case e.State == result.OutOfTime:
		return done + ": the time was up" + width
	case e.State == result.Complete && plan.Width > 0:
		return done + fmt.Sprintf(": every ratio is known to ±%.3g %% or better", plan.Width*100)
	case e.State == result.Complete:
		return done + ": all that were planned" + width
	}
	return done + ": " + string(e.State)
}

// host is the session as its place sees it.
func (s *session) host() place.Host {
	return place.Host{Dir: s.dir, WorkDir: s.ground, Say: s.say, Kept: s.kept}
}

func (s *session) say(format string, args ...any) {
	s.show.Clear() // the bar may stand there
	cli.Say(s.stderr, format, args...)
}

func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

func (s *session) header(m trial.Matrix, plan result.Plan) result.Header {
	dir, err := filepath.Abs(s.dir)
	if err != nil {
		dir = s.dir
	}
	h := result.Header{
		SchemaVersion: result.SchemaVersion, Program: cli.Program(),
		Study: s.name, Question: s.question, StartedAt: now(),
		Dir: dir, WorkDir: s.ground.Name(), Seed: m.Seed, Plan: plan, Machine: machine.Read(dir), SystemCallsUnseen: s.unseen,
	}
	for _, c := range m.Cells {
		h.Cells = append(h.Cells, c.Cell)
	}
	h.FileSystems = s.place.Described(h.Machine)
	return h
}

// Begin and Done make the session a trial.Watcher.
func (s *session) Begin(step trial.Step) {
	if s.live != nil {
		s.live.draw(stepText(step))
		return
	}
	s.showStep(step)
}

func (s *session) Done(t result.Trial) error {
	s.clock.look()
	if t.Round == 0 && t.SystemCalls == nil {
		t.SystemCalls = s.traced[t.Cell]
	}
	s.run.Trials = append(s.run.Trials, &t)
	if s.live != nil {
		s.live.done(s.run.Header, t)
	}
	if s.file == nil {
		return nil
	}
	if err := s.file.Trial(t); err != nil {
		return &outputError{err}
	}
	return nil
}

// control keeps what a round began with.
func (s *session) control(c result.Control) error {
	s.run.Controls = append(s.run.Controls, c)
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

// refuse gives an error of the run its exit code and its hint.
func (s *session) refuse(err error) error {
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
		when := fmt.Sprintf("after %d of %d rounds", s.run.Rounds(), s.run.Header.Plan.Rounds)
		if s.run.Rounds() == 0 {
			when = "before the first round was done"
		}
		hint := "give -o results.jsonl to keep what is measured until then"
		switch {
		case s.file == nil && s.output != "":
			hint = "nothing was measured until then, and " + s.output + " was not made"
		case s.file != nil:
			hint = fmt.Sprintf("what was measured until then is in %s; holdfast bench --resume %[1]s goes on", s.output)
		}
		return &cli.Refusal{Code: cli.ExitInterrupted, Err: errors.New("interrupted " + when), Hint: hint}
	case errors.Is(err, study.ErrNoArm):
		return &cli.Refusal{Code: cli.ExitCannot, Err: err}
	case errors.As(err, &content):
		return &cli.Refusal{Code: cli.ExitNotMet, Err: err, Hint: "this must not happen on a sound disk; please report it together with the file system and kernel"}
	case errors.As(err, &cache):
		return &cli.Refusal{Code: cli.ExitCannot, Err: err, Hint: hintCache}
	case errors.As(err, &output) && len(s.run.Trials) == 0:
		return &cli.Refusal{Code: cli.ExitCannot, Err: err, Hint: "give a new file in a directory that you may write to, on a disk with some room"}
	case errors.As(err, &output):
		return &cli.Refusal{Code: cli.ExitCannot, Err: err, Hint: s.kept("free some space where the results are")}
	case errors.As(err, &room), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &cli.Refusal{Code: cli.ExitCannot, Err: err, Hint: s.kept(place.HintRoom)}
	}
	if _, gone := os.Stat(s.ground.Dir()); errors.Is(gone, fs.ErrNotExist) {
		return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("the directory %s vanished while it was measured: %w", s.ground.Dir(), cli.Cause(err)), Hint: s.kept("remove nothing there while it runs")}
	}
	return &cli.Refusal{Code: cli.ExitCannot, Err: err, Hint: s.kept(cmp.Or(cli.DiskHint(err), "nothing was written but in a directory of its own"))}
}

const hintCache = "--cache try-cold measures anyhow and reports how much stayed, --cache drop empties the whole page cache (root)"

// kept adds to a hint where the results are.
func (s *session) kept(hint string) string {
	if s.file == nil || len(s.run.Trials) == 0 {
		return hint
	}
	return hint + "; what was measured is in " + s.output + ", and --resume goes on"
}

// showStep shows the next trial: on a terminal each, else the first one of each round. It
// writes between trials, off the clock.
func (s *session) showStep(step trial.Step) {
	if step.Round == 1 && !s.told {
		s.told = true
		if text := firstFigures(s.run); text != "" {
			s.say("%s", text)
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
	return fmt.Sprintf("first figures, of one short trial each: a record takes from %s (%v) to %s (%v), %s",
		study.Duration(least), cheapest.Policy, study.Duration(most), dearest.Policy, cli.CountText(int64(load.Writers), "writer"))
}
