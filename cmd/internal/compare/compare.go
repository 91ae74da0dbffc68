// Package compare is the command compare: it reports which cells of a run are slower or faster than
// in another, and keeps runs by name as baselines.
package compare

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/report"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// A comparison holds the flags of compare.
type comparison struct {
	threshold float64
	format    report.Format
	output    string
	all       bool
	dir       string // the baselines' directory
}

// New returns the command.
func New() *cobra.Command {
	c := &comparison{threshold: stat.Band}
	cmd := &cobra.Command{
		Use: "compare A.jsonl B.jsonl [flags]",
		Long: `Compare compares the results B with the earlier results A. It lists what got slower
and what got faster, and the least change that it could have seen. For each cell it
prints the ratio of the times with its interval and a word: faster, slower, same or
not proven. Beside each turn of a cell, bench writes the same records without a
Writer, with bufio.Writer, write(2) or fdatasync(2), in the same process. Compare
uses the ratio of the two, so a machine that became slower does not count. If other
programs used more of the CPUs during one run than during the other, there is no
verdict. For CI use bench --against: it runs two builds alternately, and sees
smaller changes.

The exit code is 1 if a cell, or all cells together, got slower by more than the
threshold, with the whole interval beyond it. Up to the threshold two times count
as the same.

A or B may be baseline:NAME, kept by holdfast bench --save-baseline NAME. One of
them may be -, the standard input.`,
		Example: `  holdfast compare before.jsonl after.jsonl
  holdfast compare baseline:main results.jsonl --threshold 10% --export markdown`,
		Annotations: cli.Exits(map[int]string{cli.ExitNotMet: "a cell, or all together, got slower by more than the threshold", cli.ExitNotKnown: "not known: other programs disturbed one of the runs, and not the other"}),
		Args:        twoResults,
		ValidArgsFunction: func(*cobra.Command, []string, string) (names []string, _ cobra.ShellCompDirective) {
			for _, name := range BaselineNames() {
				names = append(names, "baseline:"+name)
			}
			return names, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0], args[1]) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(cli.Once("percent", &c.threshold, cli.ParseShare("threshold")), "threshold", "the least slowdown that counts as a regression (default: 5%)")
	f.BoolVar(&c.all, "all", false, "print all cells, and how they were compared")
	f.VarP(cli.Target("file", &c.output, cli.NewFile), "output", "o", "write an HTML page, or the --export, to this new file")
	cli.ExportFlag(f, &c.format, "write a format for programs or pull requests")
	f.Var(cli.Once("dir", &c.dir, cli.Given), "baseline-dir", "the directory of the baselines (default: in the user's cache)")
	return cmd
}

func twoResults(_ *cobra.Command, args []string) error {
	switch {
	case len(args) != 2:
		return cli.Misuse("for instance: holdfast compare before.jsonl after.jsonl", "compare takes two results files, not %d", len(args))
	case args[0] == "-" && args[1] == "-":
		return cli.Misuse("name a file for one of them", "standard input can't be both results")
	}
	return nil
}

func (c *comparison) run(cmd *cobra.Command, nameA, nameB string) error {
	if c.format == "" {
		if err := cli.IsPage("-o", c.output); err != nil {
			return err
		}
	}
	a, err := readSide(cmd, nameA, c.dir, 0)
	if err != nil {
		return err
	}
	b, err := readSide(cmd, nameB, c.dir, len(a.Results().Trials))
	if err != nil {
		return err
	}
	both, err := Contrast(a, b, false, c.threshold)
	if err != nil {
		return err
	}
	write := func(w io.Writer) error {
		if c.output != "" && c.format == "" {
			return report.ContrastHTML(w, []figure.Contrast{both}, nil)
		}
		return Show(w, both, c.format, c.all)
	}
	if err := cli.WriteOut(cmd.OutOrStdout(), c.output, write); err != nil {
		return err
	}
	return Regression(both)
}

// Show writes a comparison in a format, or for a terminal, in short or all of it.
func Show(w io.Writer, c figure.Contrast, format report.Format, all bool) error {
	if format != "" {
		return report.Contrast(w, c, format, 0)
	}
	return cli.WriteLocal(w, func(text io.Writer) error {
		if all {
			return report.Contrast(text, c, "", cli.Columns(w))
		}
		return report.ContrastBrief(text, c, cli.Columns(w))
	})
}

// readSide reads results that a user named, when held trials are in memory already.
func readSide(cmd *cobra.Command, name, dir string, held int) (figure.Side, error) {
	if baseline, ok := strings.CutPrefix(name, "baseline:"); ok {
		run, err := loadBaseline(dir, baseline)
		if err != nil {
			return figure.Side{}, err
		}
		return newSide(name, run)
	}
	run, err := cli.ReadBeside(cmd.Context(), io.Discard, name, cmd.InOrStdin(), held)
	if err != nil {
		return figure.Side{}, err
	}
	return newSide(name, run)
}

func newSide(name string, run result.Run) (figure.Side, error) {
	side, err := figure.NewSide(cli.OneLine(name), run)
	return side, cli.CannotReport(name, err)
}

// Contrast is [figure.Compare] with errors for the user.
func Contrast(a, b figure.Side, alternately bool, threshold float64) (figure.Contrast, error) {
	c, err := figure.Compare(a, b, alternately, threshold)
	if errors.Is(err, figure.ErrNothingInCommon) {
		return c, &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("%s and %s: %w", a.Name, b.Name, err),
			Hint: fmt.Sprintf("measure the same policies, records and writers; holdfast bench --from %s repeats A", a.Name)}
	}
	return c, err
}

// Regression returns the refusal of a run that is slower than the threshold permits, or of two that can't be compared, or nil.
func Regression(c figure.Contrast) error {
	if c.Disturbed != "" {
		return &cli.Refusal{Code: cli.ExitNotKnown, Err: errors.New("no verdict: " + c.Disturbed), Hint: "run both again on a quiet machine, or use holdfast bench --against PROGRAM"}
	}
	if !c.Regressed() {
		return nil
	}
	var names []string
	for _, change := range c.Cells {
		if change.Regressed {
			names = append(names, change.Cell.Name)
		}
	}
	where := strings.Join(names, "; ")
	if where == "" {
		where = "all cells together"
	}
	return &cli.Refusal{Code: cli.ExitNotMet, Err: fmt.Errorf("slower than %s by more than %.3g %%: %s", c.A.Name, c.Threshold*100, where),
		Hint: "run both again, one after the other, to see whether it stays"}
}
