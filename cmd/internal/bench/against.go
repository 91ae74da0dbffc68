package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/compare"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/report"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/sweep"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/cmd/internal/place"
	"github.com/holdfast-go/holdfast/cmd/internal/run"
)

const (
	// againstTime is the default --time. In a simulation 20 pairs find 10 % under 5 % of noise.
	againstTime  = time.Minute
	againstPairs = 20

	// In a pair each of the two processes runs a cell this number of times, and the least trial counts. Other
	// processes only add time, and on a busy machine some of many short trials are spared. Cells of long trials, at
	// a rate, run once.
	againstTurns = 15
	shortTurn    = 5 * time.Millisecond
	longTurn     = 300 * time.Millisecond
)

// withAgainst are the flags that may be given together with --against.
var withAgainst = []string{"against", "threshold", "dir", "policy", "record", "writers", "rate", "cache", "time", "rounds", "seed", "allow-tmpfs", "export", "output"}

// An alternation runs the same cells by two programs. Each pair of rounds is in two new processes, so what
// differs from one process to the next is in the differences of the pairs. These two run each cell in turn,
// A B, B A, A B: what the machine does meanwhile is in both.
type alternation struct {
	program  string // A
	ground   *trial.WorkDir
	cells    []trial.Cell
	patience time.Duration // for a pair
	a, b     result.Run
}

// runAgainst is bench --against.
func (b *benchmark) runAgainst(cmd *cobra.Command, choice study.Choice) error {
	for _, name := range given(cmd) {
		if !slices.Contains(withAgainst, name) {
			return cli.Misuse("leave one out", "--%s can't be combined with --against, which runs two programs alternately", name)
		}
	}
	if err := errors.Join(cli.IsFree("-o", b.File), cli.IsFree("-o", besideFile(b.File))); err != nil {
		return err
	}
	program, err := exec.LookPath(b.baseline.Program)
	if err == nil {
		program, err = filepath.Abs(program)
	}
	if err != nil {
		return cli.Misuse("give the path of another build of holdfast", "--against %s: program not found: %w", b.baseline.Program, cli.Cause(err))
	}
	begun := time.Now()
	ground, err := trial.OpenWorkDir(b.Dir, b.AllowTmpfs)
	if err != nil {
		return place.CannotOpen(b.Dir, err)
	}
	alt := &alternation{program: program, ground: ground}
	if err := place.CloseWorkDir(ground, alt.run(cmd, b.Dir, choice, begun)); err != nil {
		return err
	}
	return alt.show(cmd, b.Export, b.File, b.baseline.Threshold())
}

// besideFile is the name of the file that keeps the other program's results: results-against.jsonl beside results.jsonl.
func besideFile(file string) string {
	if file == "" {
		return ""
	}
	ext := filepath.Ext(file)
	return strings.TrimSuffix(file, ext) + "-against" + ext
}

// keep writes the results of both programs. compare finds from them that they were run alternately.
func (a *alternation) keep(file string, sides []figure.Side) error {
	if file == "" {
		return nil
	}
	for i, name := range []string{besideFile(file), file} {
		if err := cli.WriteOut(nil, name, func(w io.Writer) error { return result.Write(w, sides[i].Results()) }); err != nil {
			return err
		}
	}
	return nil
}

// run runs pairs until the time is over, or as many as are asked for.
func (a *alternation) run(cmd *cobra.Command, dir string, choice study.Choice, begun time.Time) error {
	text, err := exec.CommandContext(cmd.Context(), a.program, "version").Output()
	version, _, _ := strings.Cut(strings.TrimSpace(string(text)), ", ")
	if refused := (*fs.PathError)(nil); errors.As(err, &refused) {
		return cli.Misuse(cmp.Or(cli.DiskHint(err), "give the path of another build of holdfast"), "--against %s can't be run: %w", a.program, refused)
	}
	if cmd.Context().Err() == nil && (err != nil || !strings.HasPrefix(version, "holdfast ")) {
		return cli.Misuse("give the path of another build of holdfast", "--against %s is not holdfast, by the output of \"%s version\"", a.program, a.program)
	}
	if err := a.prepare(cmd, dir, choice, version); err != nil {
		return err
	}
	limit := cmp.Or(choice.Budget, againstTime)
	show := cli.NewProgress(cmd.ErrOrStderr(), false)
	for pair, over := 1, false; !over; pair++ {
		if err := a.pair(cmd.Context(), pair); err != nil {
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
		over = spent+spent/time.Duration(pair) > limit && pair >= stat.GroupRounds(len(a.cells)+1)
	}
	show.Clear()
	return nil
}

// prepare calibrates this program for the cells, whose records hold for both.
func (a *alternation) prepare(cmd *cobra.Command, dir string, c study.Choice, version string) error {
	if len(c.Policies) == 0 {
		c.Policies = []holdfast.Policy{holdfast.Unbuffered(), holdfast.Buffered(4 * holdfast.KiB), holdfast.Buffered(64 * holdfast.KiB), holdfast.Durable()}
	}
	if len(c.Writers) == 0 {
		c.Writers = []int{1}
	}
	// A third of the time is for each of the two, and one for the rest of the run.
	c.Rounds, c.Budget = againstTurns*cmp.Or(c.Rounds, againstPairs), cmp.Or(c.Budget, againstTime)/3
	s := run.New(cmd.ErrOrStderr(), a.ground, dir, "")
	matrix, plan, err := s.Calibrate(cmd.Context(), sweep.Policy(), c)
	if err != nil {
		return s.Refuse(err)
	}
	// The pairs show the noise themselves.
	matrix.Cells = slices.DeleteFunc(matrix.Cells, func(c trial.Cell) bool { return c.Twin != "" })
	a.cells, a.patience = matrix.Cells, time.Minute
	for i := range a.cells {
		c := &a.cells[i]
		c.Estimate, c.Turns = c.Estimate/time.Duration(max(1, c.Turns)), 0 // pairs have turns of their own
		a.patience += 20 * 2 * againstTurns * c.Estimate
		c.Control = 0
		if each := int64(c.Writers); c.Rate == 0 && c.Estimate > shortTurn {
			c.Records = max(each, int64(float64(c.Records)*float64(shortTurn)/float64(c.Estimate))/each*each)
		}
	}
	a.b.Header = s.Header(matrix, result.Plan{Preset: plan.Preset})
	a.a.Header = a.b.Header
	a.a.Header.Program = version
	a.a.Header.Alternated, a.b.Header.Alternated = cmp.Or(a.b.Header.Program, "this program"), cli.OneLine(a.program)
	s.Say("plan: %d cells, run by %s and by this program in turn; two new processes for each pair", len(a.cells), a.program)
	return nil
}

// pair runs each cell by both programs in turn, in an order of cells that only this pair has. The first pair
// begins with A, the next with B.
func (a *alternation) pair(ctx context.Context, number int) (err error) {
	limited, cancel := context.WithTimeout(ctx, a.patience)
	defer cancel()
	cells := make([]result.Cell, len(a.cells))
	for i, c := range a.cells {
		cells[i] = c.Cell
	}
	var processes [2]*sweep.Process
	side := func(i int, do func() error) error {
		name, hint := "this program", ""
		if i == 0 {
			name, hint = "--against "+a.program, "use a build of holdfast that is not much older than this one"
		}
		err := do()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return &cli.Refusal{Code: cli.ExitInterrupted, Err: fmt.Errorf("interrupted in pair %d", number)}
		case errors.Is(limited.Err(), context.DeadlineExceeded):
			return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("%s: pair %d did not end within %v", name, number, a.patience.Round(time.Second)), Hint: hint}
		}
		return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("%s can't run the cells: %s", name, cli.OneLine(err.Error())), Hint: hint}
	}
	order := []int{1 - number%2, number % 2}
	for _, i := range order {
		program := place.SecondProcess
		if i == 0 {
			program = func(ctx context.Context, args ...string) *exec.Cmd {
				return exec.CommandContext(ctx, a.program, place.SecondProcess(ctx, args...).Args[1:]...)
			}
		}
		if err := side(i, func() (err error) {
			processes[i], err = sweep.StartProcess(limited, program, a.ground.Inside(), cells)
			return err
		}); err != nil {
			return err
		}
		defer func() {
			if closed := processes[i].Close(); err == nil { // after an error it may have been killed
				err = closed
			}
		}()
	}
	matrix := trial.Matrix{Cells: a.cells, Seed: a.b.Header.Seed}
	for position, at := range matrix.Order(number) {
		c, turns := a.cells[at], againstTurns
		if c.Estimate > longTurn {
			turns = 1
		}
		var trials [2][]*result.Trial
		for turn := range 2 * turns {
			i := order[(turn+1)/2%2]
			if err := side(i, func() error {
				m, err := processes[i].Run(c.Cell)
				trials[i] = append(trials[i], &result.Trial{Cell: c.Name, Round: number, Position: position + 1, Measurement: m})
				return err
			}); err != nil {
				return err
			}
		}
		cost := figure.LoadOf(c.Cell).Costs
		for i, run := range []*result.Run{&a.a, &a.b} {
			run.Trials = append(run.Trials, slices.MinFunc(trials[i], func(a, b *result.Trial) int {
				return cmp.Compare(cost([]*result.Trial{a})[0], cost([]*result.Trial{b})[0])
			}))
		}
	}
	return nil
}

// show keeps the results and prints how B stands to A, and returns the refusal of a regression.
func (a *alternation) show(cmd *cobra.Command, format report.Format, file string, threshold float64) error {
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
	if err := a.keep(file, sides); err != nil {
		return err
	}
	c, err := compare.Contrast(sides[0], sides[1], true, threshold)
	if err != nil {
		return err
	}
	return errors.Join(compare.Show(cmd.OutOrStdout(), c, format, false), compare.Regression(c))
}
