package run

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/compare"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/place"
	"github.com/holdfast-go/holdfast/internal/lab/figure"
	"github.com/holdfast-go/holdfast/internal/lab/report"
	"github.com/holdfast-go/holdfast/internal/lab/result"
	"github.com/holdfast-go/holdfast/internal/lab/stat"
	"github.com/holdfast-go/holdfast/internal/lab/study"
	"github.com/holdfast-go/holdfast/internal/lab/study/sweep"
	"github.com/holdfast-go/holdfast/internal/lab/trial"
)

const (
	// againstTime is the default --time. In a simulation 20 pairs find 10 % under 5 % of noise.
	againstTime  = 2 * time.Minute
	againstPairs = 20

	// alternate is the key of a plan's settings by which a round does not count system calls
	// in a run of its own.
	alternate = "alternate"
)

// withAgainst are the flags that may be given together with --against.
var withAgainst = []string{"against", "threshold", "dir", "policy", "record", "writers", "rate", "cache", "time", "rounds", "seed", "allow-tmpfs", "export"}

// An alternation runs one plan by two programs, a round at a time, each in a process of its own:
// A B, B A, A B. What differs from one process to the next is in the differences of the
// pairs, and what the machine does meanwhile is in both of a pair.
type alternation struct {
	program string // A
	dir     string
	memory  bool   // --allow-tmpfs
	own     string // the directory for the plan and the results of a round
	plan    result.Header
	a, b    result.Run
}

// runAgainst is bench --against.
func (b *benchmark) runAgainst(cmd *cobra.Command, choice study.Choice) error {
	for _, name := range given(cmd) {
		if !slices.Contains(withAgainst, name) {
			return cli.Misuse("leave one out", "--against runs two programs alternately, and --%s can't be given with it", name)
		}
	}
	if b.study.Name != "" {
		return cli.Misuse("leave it out; --policy chooses what is measured", "--against compares policies, and %s is a study", b.study.Name)
	}
	program, err := exec.LookPath(b.baseline.Program)
	if err == nil {
		program, err = filepath.Abs(program)
	}
	if err != nil {
		return cli.Misuse("give the path of another build of holdfast", "--against %s: there is no such program: %w", b.baseline.Program, cli.Cause(err))
	}
	begun := time.Now()
	alt := &alternation{program: program, dir: b.dir, memory: b.allowTmpfs}
	if err := alt.prepare(cmd, choice); err != nil {
		return err
	}
	defer os.RemoveAll(alt.own)
	limit := cmp.Or(choice.Budget, againstTime)
	show := cli.NewProgress(cmd.ErrOrStderr(), false)
	for pair, over := 1, false; !over; pair++ {
		if err := alt.pair(cmd.Context(), pair); err != nil {
			show.Clear()
			return err
		}
		spent := time.Since(begun)
		if choice.Rounds > 0 {
			show.Show(fmt.Sprintf("pair %d of %d, after %v", pair, choice.Rounds, spent.Round(time.Second)))
			over = pair == choice.Rounds
			continue
		}
		show.Show(fmt.Sprintf("pair %d, %v of %v", pair, spent.Round(time.Second), limit))
		// A verdict needs some pairs, however short the time is.
		over = spent+spent/time.Duration(pair) > limit && pair >= stat.GroupRounds(len(alt.plan.Cells)+1)
	}
	show.Clear()
	return alt.show(cmd, b.export, b.baseline.Threshold())
}

// prepare calibrates this program for the plan, whose records hold for both.
func (a *alternation) prepare(cmd *cobra.Command, c study.Choice) (err error) {
	if len(c.Policies) == 0 {
		c.Policies = []holdfast.Policy{holdfast.Unbuffered(), holdfast.Buffered(4 * holdfast.KiB), holdfast.Buffered(64 * holdfast.KiB), holdfast.Durable()}
	}
	if len(c.Writers) == 0 {
		c.Writers = []int{1}
	}
	// A pair is two processes, each with a warm-up and a round.
	rounds := cmp.Or(c.Rounds, againstPairs)
	c.Rounds, c.Budget = rounds, cmp.Or(c.Budget, againstTime)/4
	ground, err := trial.OpenWorkDir(a.dir, a.memory)
	if err != nil {
		return place.CannotOpen(a.dir, err)
	}
	s := newSession(cmd.ErrOrStderr(), ground, a.dir, "")
	s.name, s.question = sweep.Policy().Name, sweep.Policy().Question
	s.say("calibrating with short runs in %s on %s", ground.Dir(), s.place.Names())
	matrix, plan, err := s.place.Sweep(cmd.Context(), sweep.Policy(), c, s.showProbing)
	s.show.Clear()
	if err = place.CloseWorkDir(ground, s.refuse(err)); err != nil {
		return err
	}
	// The pairs show the noise themselves.
	matrix.Cells = slices.DeleteFunc(matrix.Cells, func(c trial.Cell) bool { return c.Twin != "" })
	matrix.Rounds = 1
	if a.own, err = os.MkdirTemp("", "holdfast-against-"); err != nil {
		return err
	}
	a.plan = s.header(matrix, result.Plan{Preset: plan.Preset, Rounds: 1, Estimate: matrix.Estimate(), Size: plan.Size / int64(rounds+1), Room: plan.Room})
	a.plan.WorkDir, a.plan.Settings = "", map[string]string{alternate: "yes"}
	a.a.Header, a.b.Header = a.plan, a.plan
	a.a.Header.Program = ""
	s.say("plan: %d cells by %s and by this program in turn, each round in a process of its own", len(matrix.Cells), a.program)
	return nil
}

// pair runs a round of each program, in an order of cells that only this pair has.
func (a *alternation) pair(ctx context.Context, number int) error {
	a.plan.Seed = a.b.Header.Seed + uint64(number)
	path := filepath.Join(a.own, fmt.Sprintf("plan%d.jsonl", number))
	f, err := result.Create(path, a.plan)
	if err == nil {
		err = f.Close(result.End{State: result.Interrupted})
	}
	if err != nil {
		return err
	}
	sides := []func() error{
		func() error {
			return a.round(ctx, number, path, &a.a, func(ctx context.Context, args ...string) *exec.Cmd {
				return exec.CommandContext(ctx, a.program, args...)
			}, "--against "+a.program)
		},
		func() error { return a.round(ctx, number, path, &a.b, place.ThisProgram, "this program") },
	}
	if number%2 == 0 {
		slices.Reverse(sides)
	}
	for _, side := range sides {
		if err := side(); err != nil {
			return err
		}
	}
	return nil
}

// round runs the plan once by a program, and adds its trials to the run.
func (a *alternation) round(ctx context.Context, number int, plan string, run *result.Run, program func(context.Context, ...string) *exec.Cmd, name string) error {
	out := filepath.Join(a.own, "round.jsonl")
	defer os.Remove(out)
	args := []string{"bench", "--from", plan, "--dir", a.dir, "-o", out}
	if a.memory {
		args = append(args, "--allow-tmpfs")
	}
	patience := time.Minute + 20*a.plan.Plan.Estimate
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := program(limited, args...)
	var told bytes.Buffer
	cmd.Stderr = &told
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it removes its files
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	const hint = "give another build of holdfast that repeats a plan: holdfast bench --from"
	switch {
	case ctx.Err() != nil:
		return &cli.Refusal{Code: cli.ExitInterrupted, Err: fmt.Errorf("interrupted in pair %d", number)}
	case limited.Err() != nil:
		return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("%s: a round did not end within %v", name, patience.Round(time.Second)), Hint: hint}
	case err != nil:
		return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("%s can't run the plan: %s", name, lastError(told.String(), err)), Hint: hint}
	}
	one, err := cli.ReadRun(out, nil)
	switch {
	case err != nil:
		return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("%s wrote no results of the plan: %w", name, cli.Cause(err)), Hint: hint}
	case one.Rounds() != 1 || !slices.Equal(one.Header.Cells, a.plan.Cells):
		return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("%s measured something else than the plan", name), Hint: hint}
	}
	if number == 1 {
		run.Header.Program = one.Header.Program
	}
	for _, t := range one.Trials {
		if t.Round > 0 {
			t.Round = number
			run.Trials = append(run.Trials, t)
		}
	}
	return nil
}

// lastError is what a program said before it failed: its last line that is no hint.
func lastError(told string, err error) string {
	lines := strings.Split(strings.TrimSpace(told), "\n")
	for _, line := range slices.Backward(lines) {
		if line != "" && !strings.HasPrefix(line, "hint: ") {
			return strings.TrimPrefix(line, "holdfast: ")
		}
	}
	return err.Error()
}

// show prints how B stands to A, and returns the refusal of a regression.
func (a *alternation) show(cmd *cobra.Command, format report.Format, threshold float64) error {
	var sides []figure.Side
	for _, of := range []struct {
		name string
		run  result.Run
	}{{a.program, a.a}, {"this program", a.b}} {
		rounds := of.run.Rounds()
		of.run.Header.Plan.Rounds = rounds
		of.run.End = &result.End{State: result.Complete, Rounds: rounds}
		side, err := figure.NewSide(cli.OneLine(of.name), of.run)
		if err != nil {
			return err
		}
		sides = append(sides, side)
	}
	c, err := compare.Contrast(sides[0], sides[1], true, threshold)
	if err != nil {
		return err
	}
	return errors.Join(report.Contrast(cmd.OutOrStdout(), c, format), compare.Regression(c))
}
