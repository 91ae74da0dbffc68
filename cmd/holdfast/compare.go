package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/internal/figure"
	"github.com/holdfast-go/holdfast/internal/report"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/stat"
)

// A comparison is what the flags of compare say.
type comparison struct {
	threshold float64
	format    report.Format
	output    string
	folder    string // of the baselines
}

func newCompare() *cobra.Command {
	c := &comparison{threshold: stat.Band}
	cmd := &cobra.Command{
		Use:   "compare A.jsonl B.jsonl [flags]",
		Short: "say what got slower or faster from one run to another",
		Long: `Compare sets the results B beside the earlier results A: what differs in the
machines, then cell by cell the ratio of the times with its 95 % interval and one
of four words, faster, slower, same or not proven, and at last all cells together
(geometric mean). Cells are matched by their names. Rounds of the same number are
paired where seeds, plans and machines agree; the table says which it was, and why.

It exits with 1 if a cell, or all together, got slower by more than the threshold,
with the whole interval beyond it: for a check in CI. Up to the threshold two
times are the same.

A or B may be baseline:NAME, kept by holdfast bench --save-baseline NAME. One of
them may be -, the standard input.`,
		Example: `  holdfast compare before.jsonl after.jsonl
  holdfast compare baseline:main results.jsonl --threshold 10% --export markdown`,
		Args: twoResults,
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0], args[1]) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(once("percent", &c.threshold, parseShare("threshold")), "threshold", "the slowdown from which a cell has regressed (default: 5%)")
	f.VarP(once("file", &c.output, newFile), "output", "o", "write to this new file instead of stdout")
	exportFlag(f, &c.format, "write for programs or a pull request")
	f.Var(once("folder", &c.folder, given), "baseline-dir", "the folder of the baselines (default: in the user's cache)")
	return cmd
}

func twoResults(_ *cobra.Command, args []string) error {
	switch {
	case len(args) != 2:
		return misuse("for instance: holdfast compare before.jsonl after.jsonl", "compare takes two results files, and %d were given", len(args))
	case args[0] == "-" && args[1] == "-":
		return misuse("name a file for one of them", "the standard input can't be both results")
	}
	return nil
}

func (c *comparison) run(cmd *cobra.Command, nameA, nameB string) error {
	a, err := readSide(nameA, c.folder, cmd.InOrStdin())
	if err != nil {
		return err
	}
	b, err := readSide(nameB, c.folder, cmd.InOrStdin())
	if err != nil {
		return err
	}
	both, err := contrast(a, b, c.threshold)
	if err != nil {
		return err
	}
	write := func(w io.Writer) error { return report.Contrast(w, both, c.format) }
	if err := writeOut(cmd.OutOrStdout(), c.output, write); err != nil {
		return err
	}
	return regression(both)
}

// readSide reads results that a user named.
func readSide(name, folder string, stdin io.Reader) (figure.Side, error) {
	if baseline, ok := strings.CutPrefix(name, "baseline:"); ok {
		run, err := loadBaseline(folder, baseline)
		if err != nil {
			return figure.Side{}, err
		}
		return newSide(name, run)
	}
	run, err := readResults(name, stdin)
	if err != nil {
		return figure.Side{}, err
	}
	return newSide(name, run)
}

func newSide(name string, run result.Run) (figure.Side, error) {
	side, err := figure.NewSide(name, run)
	return side, cannotReport(name, err)
}

func contrast(a, b figure.Side, threshold float64) (figure.Contrast, error) {
	c, err := figure.Compare(a, b, threshold)
	if errors.Is(err, figure.ErrNothingInCommon) {
		return c, &refusal{exitCannot, fmt.Errorf("%s and %s: %w", a.Name, b.Name, err),
			fmt.Sprintf("measure the same policies, records and writers; holdfast bench --from %s repeats A", a.Name)}
	}
	return c, err
}

// regression is the refusal of a run that got slower than it may, or nil.
func regression(c figure.Contrast) error {
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
	return &refusal{exitNotMet, fmt.Errorf("slower than %s by more than %.3g %%: %s", c.A.Name, c.Threshold*100, where),
		"run both again, one after the other, to see whether it stays"}
}
