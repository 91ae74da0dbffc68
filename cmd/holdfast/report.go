package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/internal/figure"
	"github.com/holdfast-go/holdfast/internal/report"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/study"
)

// A reporting is what the command line says.
type reporting struct {
	output, fio, timings, figures string
	format                        report.Format
}

const reportLong = `Report reads the results that bench has kept with -o and prints the same table
again. With -o it writes one HTML page instead, with a picture, the facts of the
machine and how it was measured; the page needs no other file and no network.

With --export it writes for programs instead, to stdout or to the file of -o:
  csv       a row for each trial, with all raw values, units in the columns' names
  json      one document: all figures, the warnings and the header
  bench     a line for each trial as Go's benchmarks have it, for benchstat
  markdown  tables for a pull request
docs/results.md describes the results and what is exported.

With --emit-fio it also writes a job file for fio, with what fio can't express
said in it; with --emit-fio - it writes the job instead of the table.

With --figures it draws instead: the published pictures of a run of the study
copy, as SVG and PNG with a page of all, into a folder. It also draws them from
CSV files such as ext4_results.csv, several at once; docs/figures.md has more.

Results of a run that was interrupted or killed are shown as far as they go, and
marked. The file - is the standard input.`

func newReport() *cobra.Command {
	var r reporting
	cmd := &cobra.Command{
		Use:   "report results.jsonl [flags]",
		Short: "print the table of an earlier run again, make a page of it, or export it",
		Long:  reportLong,
		Example: `  holdfast report results.jsonl -o report.html
  holdfast report results.jsonl --export csv`,
		Args: r.args,
		RunE: func(cmd *cobra.Command, args []string) error {
			if r.figures != "" {
				return r.draw(cmd, args)
			}
			return r.run(cmd, args[0])
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().VarP(once("file", &r.output, newFile), "output", "o", "write an HTML page, or what is exported, to this new file")
	exportFlag(cmd.Flags(), &r.format, "write for programs")
	cmd.Flags().Var(once("folder", &r.timings, given), "csv", csvHelp)
	fioFlag(cmd.Flags(), &r.fio)
	cmd.Flags().Var(once("folder", &r.figures, given), "figures", "draw the pictures of the study copy in this folder")
	return cmd
}

// args wants one results file, or with --figures any number of files.
func (r *reporting) args(_ *cobra.Command, args []string) error {
	if r.figures != "" && len(args) > 0 {
		return nil
	}
	if i := slices.IndexFunc(args, isCSV); i >= 0 {
		return misuse("add --figures FOLDER to draw it", "report prints results of holdfast, and %s is a table of times", args[i])
	}
	if len(args) != 1 {
		return misuse("for instance: holdfast report results.jsonl", "report takes one results file, and %d were given", len(args))
	}
	return nil
}

func (r *reporting) draw(cmd *cobra.Command, args []string) error {
	if r.output != "" || r.format != "" || r.fio != "" || r.timings != "" {
		return misuse("draw by a command of its own", "--figures draws into a folder, and -o, --export, --csv and --emit-fio write something else")
	}
	return drawFigures(cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr(), r.figures, args)
}

func (r *reporting) run(cmd *cobra.Command, name string) error {
	run, err := r.read(name, cmd.InOrStdin())
	if err != nil {
		return err
	}
	if err := writeTimings(r.timings, run); err != nil {
		return err
	}
	if err := emitFio(cmd.OutOrStdout(), r.fio, run); err != nil || r.fio == "-" && r.output == "" {
		return cannotReport(name, err)
	}
	return cannotReport(name, writeOut(cmd.OutOrStdout(), r.output, func(w io.Writer) error {
		return writeReport(w, run, r.format, r.output != "")
	}))
}

// read reads the results, and refuses what can't be made of them.
func (r *reporting) read(name string, stdin io.Reader) (run result.Run, err error) {
	if r.fio == "-" && r.format != "" && r.output == "" {
		return run, misuse("add -o FILE for what is exported", "--emit-fio - and --export both write to stdout")
	}
	if run, err = readResults(name, stdin); err != nil {
		return run, err
	}
	if err := study.Known(run.Header); err != nil {
		return run, misuse("use the holdfast that made it", "%s: %w", name, err)
	}
	if r.fio != "" && isStudy(run.Header) {
		return run, misuse("leave it out, or give the results of a run without a study's name", "--emit-fio: fio has no job for the study %s", run.Header.Study)
	}
	return run, nil
}

// writeReport writes in a format; without one a page to a file, else the table.
func writeReport(w io.Writer, run result.Run, format report.Format, toFile bool) error {
	switch {
	case format != "":
		return report.Export(w, run, format)
	case toFile:
		return report.HTML(w, run)
	}
	return report.Text(w, run)
}

const hintResults = "results are made by holdfast bench -o results.jsonl"

func readResults(name string, stdin io.Reader) (result.Run, error) {
	run, err := readRun(name, stdin)
	switch {
	case err == nil:
		return run, nil
	case name == "":
		return run, misuse(hintResults, "the name of the results is empty")
	case errors.Is(err, fs.ErrNotExist):
		return run, misuse(hintResults, "there is no file %s", name)
	case errors.Is(err, fs.ErrPermission):
		return run, misuse("choose a file that you may read", "%s: %w", name, cause(err))
	case errors.Is(err, syscall.EISDIR):
		return run, misuse(hintResults, "%s is a folder, not a file of results", name)
	case errors.Is(err, result.ErrNewer):
		return run, misuse("use the holdfast that made it, or a newer one", "%s: %w", name, err)
	case errors.Is(err, result.ErrNoHeader):
		return run, misuse("remove it, and start the run again", "%s: %w", name, err)
	}
	return run, misuse(hintWhole(name, err), "%s: %w", name, cause(err))
}

// hintWhole tells how to save the lines before one that can't be used.
func hintWhole(name string, err error) string {
	var format *result.FormatError
	if !errors.As(err, &format) || format.Line == 1 || name == "-" {
		return hintResults
	}
	return fmt.Sprintf("the lines before it are whole: head -n %d %s > saved.jsonl keeps them, and --resume saved.jsonl goes on", format.Line-1, name)
}

func readRun(name string, stdin io.Reader) (result.Run, error) {
	if name == "-" {
		return result.Read(stdin)
	}
	if info, err := os.Stat(name); err == nil && info.Mode()&os.ModeDevice != 0 {
		return result.Run{}, errors.New("is a device")
	}
	f, err := os.Open(name)
	if err != nil {
		return result.Run{}, err
	}
	defer f.Close()
	return result.Read(f)
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
