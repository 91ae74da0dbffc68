// Package report is the command report: it shows, exports and draws the results of an earlier run.
package report

import (
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/internal/lab/report"
	"github.com/holdfast-go/holdfast/internal/lab/study/all"
)

// A reporting is what the command line says.
type reporting struct {
	all, plot                     bool
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
copy, as SVG and PNG with a page of all, into a directory. It also draws them from
CSV files such as ext4_results.csv, several at once, and of the name published the
document's own figures; docs/figures.md has more.

Results of a run that was interrupted or killed are shown as far as they go, and
marked. The file - is the standard input.`

// New is the command.
func New() *cobra.Command {
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
	cmd.Flags().VarP(cli.Once("file", &r.output, cli.NewFile), "output", "o", "write an HTML page, or what is exported, to this new file")
	cli.AllFlag(cmd.Flags(), &r.all)
	cli.PlotFlag(cmd.Flags(), &r.plot)
	cli.ExportFlag(cmd.Flags(), &r.format, "write for programs")
	cmd.Flags().Var(cli.Once("dir", &r.timings, cli.Given), "csv", csvHelp)
	cli.FioFlag(cmd.Flags(), &r.fio)
	cmd.Flags().Var(cli.Once("dir", &r.figures, cli.Given), "figures", "draw the pictures of the study copy in this directory")
	return cmd
}

// args wants one results file, or with --figures any number of files.
func (r *reporting) args(_ *cobra.Command, args []string) error {
	if r.figures != "" && len(args) > 0 {
		return nil
	}
	if i := slices.IndexFunc(args, isCSV); i >= 0 {
		return cli.Misuse("add --figures DIRECTORY to draw it", "report prints results of holdfast, and %s is a table of times", args[i])
	}
	if len(args) != 1 {
		return cli.Misuse("for instance: holdfast report results.jsonl", "report takes one results file, and %d were given", len(args))
	}
	return nil
}

func (r *reporting) draw(cmd *cobra.Command, args []string) error {
	if r.output != "" || r.format != "" || r.fio != "" || r.timings != "" {
		return cli.Misuse("draw by a command of its own", "--figures draws into a directory, and -o, --export, --csv and --emit-fio write something else")
	}
	return drawFigures(cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr(), r.figures, args)
}

func (r *reporting) run(cmd *cobra.Command, name string) error {
	if r.fio == "-" && r.format != "" && r.output == "" {
		return cli.Misuse("add -o FILE for what is exported", "--emit-fio - and --export both write to stdout")
	}
	if r.plot && (r.format != "" || r.output != "") {
		return cli.Misuse("leave it out, or print the table", "--plot draws below the table, which -o and --export do not print")
	}
	run, err := cli.ReadResults(name, cmd.InOrStdin())
	if err != nil {
		return err
	}
	if err := all.Known(run.Header); err != nil {
		return cli.Misuse("use the holdfast that made it", "%s: %w", name, err)
	}
	if r.fio != "" && cli.IsStudy(run.Header) {
		return cli.Misuse("leave it out, or give the results of a run without a study's name", "--emit-fio: fio has no job for the study %s", run.Header.Study)
	}
	if err := writeTimings(r.timings, run); err != nil {
		return err
	}
	if err := cli.EmitFio(cmd.OutOrStdout(), r.fio, run); err != nil || r.fio == "-" && r.output == "" {
		return cli.CannotReport(name, err)
	}
	return cli.CannotReport(name, cli.WriteOut(cmd.OutOrStdout(), r.output, func(w io.Writer) error {
		err := cli.WriteReport(w, run, r.format, r.output != "", r.all)
		if err == nil && r.plot {
			err = cli.WriteCurves(w, run)
		}
		return err
	}))
}
