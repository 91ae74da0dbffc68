package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/machine"
	"github.com/holdfast-go/holdfast/internal/report"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/study"
	"github.com/holdfast-go/holdfast/internal/trial"
)

// A benchmark is what the flags of bench say.
type benchmark struct {
	dir         string
	policies    []holdfast.Policy
	quick, full bool
	rounds      int
	seed        uint64
	output      string
	records     []holdfast.Size
	writers     []int
	budget      time.Duration
	allowTmpfs  bool
}

func newBench() *cobra.Command {
	b := &benchmark{dir: ".", seed: uint64(rand.Uint32())}
	cmd := &cobra.Command{
		Use:   "bench [flags]",
		Short: "measure what each policy costs on this disk",
		Long: `Bench writes files under several policies of buffering, flushing and syncing and
prints what each costs on this disk: records a second, CPU time, system calls,
the latency of a Write, and what a crash takes at worst. It ends with the policy
to use. It takes less than a minute, writes only in a new folder of its own, and
removes that folder at the end.

A policy is one line of text, such as buffer=64KiB,flush=100ms,sync=1s:
  buffer  bytes gathered in memory before they go to the kernel (0: none)
  flush   the longest that a byte waits in memory
  sync    when bytes are made to reach the disk: never, close (at the end), a
          duration (the longest that a byte waits), group (Write returns when
          its bytes are on the disk, together with others), each (on its own)`,
		Example: `  holdfast bench --quick
  holdfast bench --dir . --policy buffer=64KiB,sync=1s --policy sync=group -o results.jsonl`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return b.run(cmd) },
	}
	b.addFlags(cmd)
	return cmd
}

func (b *benchmark) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(once("folder", &b.dir, given), "dir", "measure the disk that holds this folder (default: the current folder)")
	f.Var(many("policy", &b.policies, holdfast.ParsePolicy), "policy", "measure this policy; give it again for each further one\n(default: eight usual policies)")
	f.BoolVar(&b.quick, "quick", false, "take about 10 seconds; three rounds are too few to prove a difference")
	f.BoolVar(&b.full, "full", false, "take about 5 minutes, with more record sizes, writers and rounds")
	f.Var(once("number", &b.rounds, parseNumber("rounds", maxRounds)), "rounds", "run every policy this many times (default: 20, or as many\nas the time allows)")
	f.Var(once("number", &b.seed, parseSeed), "seed", "repeat the order of an earlier run (default: a new one)")
	f.VarP(once("file", &b.output, given), "output", "o", "keep all results in this new file (JSON Lines), for holdfast report")
	f.Var(many("size", &b.records, parseRecord), "record", "size of a record; may be given again (default: 128B)")
	f.Var(many("number", &b.writers, parseNumber("writers", maxWriters)), "writers", "goroutines that write to one file; may be given again\n(default: 1 and 64)")
	f.DurationVar(&b.budget, "time", 0, "fit the run into this time, calibration included (default: 45s)")
	f.BoolVar(&b.allowTmpfs, "allow-tmpfs", false, "measure a file system in memory too, where nothing is ever durable")
	inGroup(f, "The load", "record", "writers", "time")
	inGroup(f, "Where", "allow-tmpfs")
}

// given refuses an empty text.
func given(text string) (string, error) {
	if text == "" {
		return "", errors.New("a name is missing")
	}
	return text, nil
}

// choice checks the flags against each other.
func (b *benchmark) choice(cmd *cobra.Command) (study.Choice, error) {
	c := study.Choice{
		Preset: study.Default(), Policies: b.policies, Records: b.records, Writers: b.writers,
		Rounds: b.rounds, Budget: b.budget, Seed: b.seed,
	}
	switch {
	case b.quick && b.full:
		return c, misuse("give one of the two, or neither for a run of about 45 seconds", "--quick and --full contradict each other")
	case cmd.Flags().Changed("time") && b.budget < time.Second:
		return c, misuse("give at least 1s", "--time %v is too short to measure anything", b.budget)
	case b.quick:
		c.Preset = study.Quick()
	case b.full:
		c.Preset = study.Full()
	}
	return c, b.outputIsFree()
}

// outputIsFree refuses a results file that exists, or can't be made.
func (b *benchmark) outputIsFree() error {
	if b.output == "" {
		return nil
	}
	if _, err := os.Lstat(b.output); err == nil {
		return misuse("choose another name, or remove it first", "-o %s: the file exists, and results are never overwritten", b.output)
	}
	folder := filepath.Dir(b.output)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return misuse("make the folder first, or choose another one", "-o %s: there is no folder %s", b.output, folder)
	}
	return nil
}

func (b *benchmark) run(cmd *cobra.Command) (err error) {
	choice, err := b.choice(cmd)
	if err != nil {
		return err
	}
	ground, err := trial.OpenGround(b.dir, b.allowTmpfs)
	if err != nil {
		return b.cannotOpen(err)
	}
	defer func() {
		if closeErr := ground.Close(); closeErr != nil && err == nil {
			err = &refusal{exitCannot, closeErr, "remove " + ground.Dir() + " by hand"}
		}
	}()
	s := &session{benchmark: b, study: study.Policy(), ground: ground, stderr: cmd.ErrOrStderr()}
	run, err := s.measure(cmd.Context(), choice)
	if run.Rounds() > 0 {
		if printErr := report.Text(cmd.OutOrStdout(), run); err == nil && printErr != nil {
			return printErr
		}
	}
	return s.refuse(err)
}

// cannotOpen says why nothing can be measured in the folder given.
func (b *benchmark) cannotOpen(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return misuse("give an existing folder on the disk to measure", "--dir %s: there is no such folder", b.dir)
	case errors.Is(err, trial.ErrNotFolder):
		return misuse("give the folder that it is in", "--dir: %w", err)
	case errors.Is(err, trial.ErrMemoryOnly):
		return &refusal{exitCannot, fmt.Errorf("--dir: %w", err), "give a folder on a disk, or --allow-tmpfs to measure memory alone"}
	case errors.Is(err, syscall.ENOSPC):
		return &refusal{exitCannot, err, hintRoom}
	}
	return &refusal{exitCannot, fmt.Errorf("--dir: can't make a folder in %s: %w", b.dir, cause(err)), "give a folder that you may write to"}
}

const hintRoom = "free some space, or give a folder on another disk to --dir"

// cause takes the name of a temporary file off an error.
func cause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// A session is one run of bench.
type session struct {
	*benchmark
	study  study.Study
	ground *trial.Ground
	stderr io.Writer
	run    result.Run
	file   *result.File // nil without -o
	show   *progress
}

// measure plans, tells the plan, and runs it. It returns what was measured, also
// with an error.
func (s *session) measure(ctx context.Context, c study.Choice) (result.Run, error) {
	begun := time.Now()
	s.show = newProgress(s.stderr)
	defer s.show.end()
	s.say("calibrating with short runs in %s on %s", s.ground.Dir(), s.ground.FileSystem)
	unseen := trial.CallsUnseen()
	c.CountCalls = unseen == ""
	matrix, plan, err := s.study.Prepare(ctx, s.ground, c, s.show.probing)
	if err != nil {
		return s.run, err
	}
	s.run.Header = s.header(matrix, plan, unseen)
	if err := s.create(); err != nil {
		return s.run, err
	}
	s.say("plan: %d cells, each once in a warm-up and in rounds 1 to %d, in an order by seed %d; about %v; writes %s, at most %s at once",
		len(matrix.Cells), plan.Rounds, c.Seed, max(time.Second, plan.Estimate.Round(time.Second)), bytesText(plan.Size), bytesText(plan.Room))
	rounds, _, err := matrix.Run(ctx, s.ground, s)
	return s.run, errors.Join(err, s.close(end(err, rounds, plan, time.Since(begun))))
}

func (s *session) say(format string, args ...any) {
	fmt.Fprintf(s.stderr, "holdfast: "+format+"\n", args...)
}

func bytesText(n int64) string { return humanize.IBytes(uint64(n)) }

func (s *session) header(m trial.Matrix, plan result.Plan, unseen string) result.Header {
	dir, err := filepath.Abs(s.dir)
	if err != nil {
		dir = s.dir
	}
	h := result.Header{
		SchemaVersion: result.SchemaVersion, Program: program(),
		Study: s.study.Name, Question: s.study.Question, StartedAt: time.Now().UTC().Truncate(time.Second),
		Dir: dir, Seed: m.Seed, Plan: plan, Machine: machine.Read(dir), SystemCallsUnseen: unseen,
	}
	for _, c := range m.Cells {
		h.Cells = append(h.Cells, c.Cell)
	}
	return h
}

func (s *session) create() (err error) {
	if s.output == "" {
		return nil
	}
	s.file, err = result.Create(s.output, s.run.Header)
	if err != nil {
		return fmt.Errorf("-o: %w", err)
	}
	return nil
}

// Begin and Done make the session a trial.Watcher.
func (s *session) Begin(step trial.Step) { s.show.begin(step) }

func (s *session) Done(t result.Trial) error {
	if s.file != nil {
		if err := s.file.Trial(t); err != nil {
			return fmt.Errorf("-o: %w", err)
		}
	}
	s.run.Trials = append(s.run.Trials, t)
	return nil
}

// end says how the run ended.
func end(err error, rounds int, plan result.Plan, elapsed time.Duration) result.End {
	e := result.End{State: result.Complete, Rounds: rounds, Elapsed: elapsed}
	switch {
	case errors.Is(err, context.Canceled):
		e.State = result.Interrupted
	case err != nil:
		e.State, e.Reason = result.Failed, err.Error()
	case rounds < plan.Rounds:
		e.State, e.Reason = result.OutOfTime, fmt.Sprintf("the limit of %v was reached", plan.Limit.Round(time.Second))
	}
	return e
}

func (s *session) close(e result.End) error {
	s.run.End = &e
	if s.file == nil {
		return nil
	}
	if err := s.file.Close(e); err != nil {
		return fmt.Errorf("-o: %w", err)
	}
	return nil
}

// refuse gives an error of the run its exit code and its hint.
func (s *session) refuse(err error) error {
	var content *trial.ContentError
	var room *trial.RoomError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return s.interrupted()
	case errors.As(err, &content):
		return &refusal{exitNotMet, err, "this must not happen on a sound disk; please report it together with the file system and kernel"}
	case errors.As(err, &room), errors.Is(err, syscall.ENOSPC):
		return &refusal{exitCannot, err, hintRoom}
	}
	return &refusal{exitCannot, err, "the folder was removed; nothing else was touched"}
}

func (s *session) interrupted() error {
	when := fmt.Sprintf("after %d of %d rounds", s.run.Rounds(), s.run.Header.Plan.Rounds)
	if s.run.Rounds() == 0 {
		when = "before the first round was done"
	}
	hint := "give -o results.jsonl to keep what is measured until then"
	if s.file != nil {
		hint = "what was measured until then is in " + s.output
	}
	return &refusal{exitInterrupted, errors.New("interrupted " + when), hint}
}
