package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/holdfast-go/holdfast/internal/figure"
	"github.com/holdfast-go/holdfast/internal/machine"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/study"
	"github.com/holdfast-go/holdfast/internal/trial"
)

// A session is one run on one ground: it tells the plan and the progress, keeps
// the results, and knows at last what was measured.
type session struct {
	stderr   io.Writer
	name     string // of the study or sweep
	question string
	ground   *trial.Ground
	dir      string // as the user gave it
	output   string // the results file, or empty
	made     *made  // file systems of the run's own; nil: it is on ground

	counting trial.Counting
	traced   map[string]*result.SystemCalls // by cell, where tracepoints can't be had
	unseen   string                         // why system calls can't be counted at all, or empty

	run   result.Run
	file  *result.File
	show  *progress
	clock clock
}

// newSession begins a session that counts system calls by tracepoints if it can.
func newSession(stderr io.Writer, ground *trial.Ground, dir, output string) *session {
	s := &session{
		stderr: stderr, ground: ground, dir: dir, output: output,
		unseen: trial.TracepointsUnseen(), show: newProgress(stderr),
	}
	if s.unseen == "" {
		s.counting = trial.Tracepoints
	}
	ground.Second = secondProcess
	if others := ground.Neighbours(); len(others) > 0 {
		s.say("beside it is %s: of a run that still goes on and disturbs this one, or left by one that was killed; then remove it", strings.Join(others, ", "))
	}
	return s
}

// measure plans a sweep of what is chosen, tells the plan, and runs it. What was
// measured is in run, also with an error.
func (s *session) measure(ctx context.Context, sweep study.Sweep, c study.Choice) error {
	s.name, s.question = sweep.Name, sweep.Question
	s.say("calibrating with short runs in %s on %s", s.ground.Dir(), s.fileSystem())
	c.Counting = s.counting
	matrix, plan, err := s.prepareSweep(ctx, sweep, c)
	s.show.end()
	if err != nil {
		return err
	}
	if err := s.trace(ctx, matrix); err != nil {
		return err
	}
	h := s.header(matrix, plan)
	if s.made != nil {
		h.Settings, h.Missing = c.Settings(), s.made.missing
	}
	s.sayMissing(h.Missing)
	return s.begin(ctx, h, matrix)
}

func (s *session) prepareSweep(ctx context.Context, sweep study.Sweep, c study.Choice) (trial.Matrix, result.Plan, error) {
	switch {
	case s.made != nil && s.made.inside != nil:
		m, plan, err := sweep.PrepareOn(ctx, s.made.sites, c.Part(1), s.show.probing)
		return s.made.inside.beside(m, plan, err)
	case s.made != nil:
		return sweep.PrepareOn(ctx, s.made.sites, c, s.show.probing)
	}
	return sweep.Prepare(ctx, s.ground, c, s.show.probing)
}

// study plans a study, tells the plan, and runs it.
func (s *session) study(ctx context.Context, of study.Study, c study.Choice) error {
	s.name, s.question = of.Name, of.Question
	c.Counting = s.counting
	matrix, plan, missing, err := s.prepareStudy(of, c)
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

func (s *session) prepareStudy(of study.Study, c study.Choice) (trial.Matrix, result.Plan, []result.Missing, error) {
	if s.made == nil {
		return of.Prepare(s.ground, c)
	}
	if s.made.inside != nil {
		m, plan, missing, err := of.PrepareOn(s.made.sites, c.Part(1))
		m.Seed = c.Seed // also where there is no arm outside
		m, plan, err = s.made.inside.beside(m, plan, err)
		return m, plan, append(missing, s.made.missing...), err
	}
	m, plan, missing, err := of.PrepareOn(s.made.sites, c)
	return m, plan, append(missing, s.made.missing...), err
}

// fileSystem names what the run is on.
func (s *session) fileSystem() string {
	if s.made != nil {
		return s.made.names()
	}
	return s.ground.FileSystem
}

// repeat runs the plan of an earlier run again: the same cells with the same
// records, in the same order.
func (s *session) repeat(ctx context.Context, h result.Header) error {
	matrix, err := s.again(ctx, h, true)
	if err != nil {
		return err
	}
	if s.made == nil { // else they are as large as they were
		err = errors.Join(s.ground.Need(h.Plan.Room), s.ground.NeedFiles(h.Plan.Files))
	}
	if err != nil {
		return err
	}
	s.say("repeating a run in %s on %s", s.ground.Dir(), s.fileSystem())
	again := s.header(matrix, h.Plan)
	again.Settings, again.Missing = h.Settings, h.Missing
	return s.begin(ctx, again, matrix)
}

// again makes the matrix of an earlier run, and counts its system calls where that
// takes a run of its own. A study does without: the kernel counts its reads and
// writes in every trial.
func (s *session) again(ctx context.Context, h result.Header, uncounted bool) (trial.Matrix, error) {
	s.name, s.question = h.Study, h.Question
	matrix, err := s.matrixAgain(h)
	if err != nil {
		return matrix, &refusal{exitCannot, err, "use the holdfast that made the results, or run the study anew"}
	}
	if isStudy(h) || !uncounted {
		return matrix, nil
	}
	return matrix, s.trace(ctx, matrix)
}

func (s *session) matrixAgain(h result.Header) (trial.Matrix, error) {
	switch {
	case s.made != nil && s.made.inside != nil:
		m, err := study.AgainOn(parted(h, false), s.counting, s.made.sites)
		if err != nil {
			return m, err
		}
		return s.made.inside.again(h, m)
	case s.made != nil:
		return study.AgainOn(h, s.counting, s.made.sites)
	}
	return study.Again(h, s.counting)
}

// begin makes the results file and runs the matrix.
func (s *session) begin(ctx context.Context, h result.Header, m trial.Matrix) (err error) {
	s.run.Header = h
	if s.output != "" {
		if s.file, err = result.Create(s.output, h); err != nil {
			return &outputError{err}
		}
	}
	return s.execute(ctx, m)
}

// resume goes on with the unfinished run of the output file.
func (s *session) resume(ctx context.Context, earlier result.Run) (err error) {
	matrix, err := s.again(ctx, earlier.Header, !allCounted(earlier))
	if err != nil {
		return err
	}
	r := result.Resumption{Program: program(), StartedAt: now(), Folder: s.ground.Name(), Machine: machine.Read(s.dir)}
	s.run, s.file, err = result.Resume(s.output, r)
	if err != nil {
		return fmt.Errorf("--resume: %w", err)
	}
	s.run.Resumed, s.run.End = append(s.run.Resumed, r), nil
	s.run.Torn, s.run.TornAt = false, 0
	matrix.Whole, matrix.Before = earlier.Rounds(), earlier.LastRound()
	if matrix.Limit > 0 {
		matrix.Limit = max(1, matrix.Limit-earlier.Spent())
	}
	s.say("going on in %s on %s after %d whole rounds of %d", s.ground.Dir(), s.fileSystem(), matrix.Whole, matrix.Rounds)
	return s.execute(ctx, matrix)
}

// execute runs the matrix and ends the results.
func (s *session) execute(ctx context.Context, m trial.Matrix) error {
	plan := s.run.Header.Plan
	if plan.Width > 0 {
		m.Settled = func() bool { _, ok := figure.Settled(s.run, plan.Width); return ok }
	}
	s.say("plan: %s", planText(len(m.Cells), plan, m.Seed))
	s.clock = startClock()
	_, stop, err := m.Run(ctx, s.ground, s)
	s.show.end()
	e := s.end(stop, err)
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

func (s *session) say(format string, args ...any) {
	fmt.Fprintf(s.stderr, "holdfast: "+format+"\n", args...)
}

func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

func (s *session) header(m trial.Matrix, plan result.Plan) result.Header {
	dir, err := filepath.Abs(s.dir)
	if err != nil {
		dir = s.dir
	}
	h := result.Header{
		SchemaVersion: result.SchemaVersion, Program: program(),
		Study: s.name, Question: s.question, StartedAt: now(),
		Dir: dir, Folder: s.ground.Name(), Seed: m.Seed, Plan: plan, Machine: machine.Read(dir), SystemCallsUnseen: s.unseen,
	}
	for _, c := range m.Cells {
		h.Cells = append(h.Cells, c.Cell)
	}
	if s.made != nil {
		h.FileSystems = s.made.described(h.Machine)
	}
	return h
}

// Begin and Done make the session a trial.Watcher.
func (s *session) Begin(step trial.Step) { s.show.begin(step) }

func (s *session) Done(t result.Trial) error {
	s.clock.look()
	if t.Round == 0 && t.SystemCalls == nil {
		t.SystemCalls = s.traced[t.Cell]
	}
	s.run.Trials = append(s.run.Trials, t)
	if s.file == nil {
		return nil
	}
	if err := s.file.Trial(t); err != nil {
		return &outputError{err}
	}
	return nil
}

// end says how the run ended.
func (s *session) end(stop trial.Stop, err error) result.End {
	e := result.End{State: result.Complete, Rounds: s.run.Rounds(), Elapsed: time.Since(s.clock.begun), ClockJump: s.clock.jump}
	plan := s.run.Header.Plan
	if plan.Width > 0 {
		e.Width, _ = figure.Settled(s.run, plan.Width)
	}
	switch {
	case errors.Is(err, context.Canceled):
		e.State = result.Interrupted
	case err != nil:
		e.State, e.Reason = result.Failed, err.Error()
	case stop == trial.AtLimit:
		e.State, e.Reason = result.OutOfTime, fmt.Sprintf("the time of %v was up", plan.Limit.Round(time.Second))
	}
	return e
}

func bytesText(n int64) string { return humanize.IBytes(uint64(n)) }

// A clock watches the time of day beside the monotonic clock, by which all is
// timed.
type clock struct {
	begun time.Time
	jump  time.Duration // the largest that was seen, 0 for less than jumpLeast
}

// jumpLeast is far more than a clock is ever slewed by between two looks.
const jumpLeast = time.Second

func startClock() clock { return clock{begun: time.Now()} }

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

// An outputError says that the results can't be kept.
type outputError struct{ err error }

func (e *outputError) Error() string { return "-o: " + e.err.Error() }
func (e *outputError) Unwrap() error { return e.err }

// refuse gives an error of the run its exit code and its hint.
func (s *session) refuse(err error) error {
	var content *trial.ContentError
	var room *trial.RoomError
	var cache *trial.CacheError
	var output *outputError
	var refused *refusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return err
	case errors.Is(err, context.Canceled):
		return s.interrupted()
	case errors.Is(err, study.ErrNoArm):
		return &refusal{code: exitCannot, err: err}
	case errors.As(err, &content):
		return &refusal{exitNotMet, err, "this must not happen on a sound disk; please report it together with the file system and kernel"}
	case errors.As(err, &cache):
		return &refusal{exitCannot, err, hintCache}
	case errors.As(err, &output) && len(s.run.Trials) == 0:
		return &refusal{exitCannot, err, "give a new file in a folder that you may write to, on a disk with some room"}
	case errors.As(err, &output):
		return &refusal{exitCannot, err, s.kept("free some space where the results are")}
	case errors.As(err, &room), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &refusal{exitCannot, err, s.kept(hintRoom)}
	case s.groundIsGone():
		return &refusal{exitCannot, fmt.Errorf("the folder %s vanished while it was measured: %w", s.ground.Dir(), cause(err)), s.kept("let nobody clean up there meanwhile")}
	}
	return &refusal{exitCannot, err, s.kept("nothing was written but in a folder of its own")}
}

const hintCache = "--cache try-cold measures anyhow and tells how much stayed, --cache drop empties the whole page cache (root)"

// kept adds to a hint where the results are.
func (s *session) kept(hint string) string {
	if s.file == nil || len(s.run.Trials) == 0 {
		return hint
	}
	return hint + "; what was measured is in " + s.output + ", and --resume goes on"
}

func (s *session) groundIsGone() bool {
	_, err := os.Stat(s.ground.Dir())
	return errors.Is(err, fs.ErrNotExist)
}

func (s *session) interrupted() error {
	when := fmt.Sprintf("after %d of %d rounds", s.run.Rounds(), s.run.Header.Plan.Rounds)
	if s.run.Rounds() == 0 {
		when = "before the first round was done"
	}
	hint := "give -o results.jsonl to keep what is measured until then"
	if s.file != nil {
		hint = fmt.Sprintf("what was measured until then is in %s; holdfast bench --resume %[1]s goes on", s.output)
	}
	return &refusal{exitInterrupted, errors.New("interrupted " + when), hint}
}
