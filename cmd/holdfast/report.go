package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/internal/figure"
	"github.com/holdfast-go/holdfast/internal/report"
	"github.com/holdfast-go/holdfast/internal/result"
)

func newReport() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "report results.jsonl [flags]",
		Short: "print the table of an earlier run again, or make a page of it",
		Long: `Report reads the results that bench has kept with -o and prints the same table
again. With -o it writes one HTML page instead, with a picture, the facts of the
machine and how it was measured; the page needs no other file and no network.

Results of a run that was interrupted or killed are shown as far as they go, and
marked. The file - is the standard input.`,
		Example: `  holdfast report results.jsonl
  holdfast report results.jsonl -o report.html`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return misuse("for instance: holdfast report results.jsonl", "report takes one results file, and %d were given", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			run, err := readResults(args[0], cmd.InOrStdin())
			if err != nil {
				return err
			}
			if output == "" {
				return cannotReport(args[0], report.Text(cmd.OutOrStdout(), run))
			}
			return cannotReport(args[0], writePage(output, run))
		},
	}
	cmd.Flags().VarP(once("file", &output, given), "output", "o", "write an HTML page to this new file instead of the table")
	return cmd
}

const hintResults = "results are made by holdfast bench -o results.jsonl"

func readResults(name string, stdin io.Reader) (result.Run, error) {
	run, err := readRun(name, stdin)
	switch {
	case err == nil:
		return run, nil
	case errors.Is(err, fs.ErrNotExist):
		return run, misuse(hintResults, "there is no file %s", name)
	case errors.Is(err, result.ErrNewer):
		return run, misuse("use the holdfast that made it, or a newer one", "%s: %w", name, err)
	}
	return run, misuse(hintResults, "%s: %w", name, cause(err))
}

func readRun(name string, stdin io.Reader) (result.Run, error) {
	if name == "-" {
		return result.Read(stdin)
	}
	f, err := os.Open(name)
	if err != nil {
		return result.Run{}, err
	}
	defer f.Close()
	return result.Read(f)
}

// writePage makes a page in a new file; if that fails, no file is left.
func writePage(path string, run result.Run) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return misuse("choose another name, or remove it first", "-o %s: the file exists, and nothing is overwritten", path)
	}
	if err != nil {
		return misuse("choose a file in an existing folder that you may write to", "-o %s: %w", path, cause(err))
	}
	if err := errors.Join(report.HTML(f, run), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// cannotReport gives an error of a report its exit code and hint.
func cannotReport(name string, err error) error {
	switch {
	case errors.Is(err, figure.ErrNoRound):
		return &refusal{exitCannot, fmt.Errorf("%s: there is nothing to show: %w", name, figure.ErrNoRound), "let holdfast bench run until its first round is done"}
	default:
		return err
	}
}
