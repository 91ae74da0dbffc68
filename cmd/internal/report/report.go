// Package report is the command report: it shows, exports and draws the results of an earlier run.
package report

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/advise"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/page"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/report"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// A reporting holds the command line.
type reporting struct {
	studies              study.List // of which the results may be
	all, plot            bool
	output, fio, figures string
	extract              string // the page whose results are wanted
	proof                string // the file of prove's verdicts that the page shows too
	need                 advise.Need
	format               report.Format
}

const reportLong = `Report reads the results that bench has kept with -o and prints the same table
again. With -o it writes an HTML page instead, with pictures, the facts about the
machine and the method; the page needs no other file and no network. The results are
inside: --extract returns them unchanged. With --need the page begins with the
answer: whether a policy meets the need. For several results the page compares each
with the first, and begins with the differences between the machines.

With --export it writes for programs instead, to stdout or to the file of -o:
  csv       a row for each trial, with all raw values; columns' names have units
  json      one document: all figures, the warnings and the header
  bench     a line for each trial in the format of Go's benchmarks, for benchstat
  markdown  tables for a pull request
docs/results.md describes the results and the exports.

With --emit-fio it also writes a job file for fio, with comments on the parts that fio
can't express; with --emit-fio - it writes the job instead of the table.

With --figures it draws instead, as SVG into a directory, the cost of the policies
against the loss at a power cut. holdfast study figures draws the study copy.

Results of an interrupted or killed run are shown as far as they go, and marked. The
file - is standard input.`

// New is the command. It shows results of these studies, and of sweeps.
func New(studies study.List) *cobra.Command {
	r := reporting{studies: studies}
	cmd := &cobra.Command{
		Use:  "report results.jsonl... [flags]",
		Long: reportLong,
		Example: `  holdfast report results.jsonl -o report.html --need 'loss<=1s,p99<10ms'
  holdfast report results.jsonl --export csv`,
		Args: r.args,
		RunE: func(cmd *cobra.Command, args []string) error {
			if r.figures != "" {
				return r.draw(cmd, args[0])
			}
			if r.extract != "" {
				return r.unpack(cmd.OutOrStdout())
			}
			if len(args) > 1 {
				return r.beside(cmd, args)
			}
			if isProof(args[0]) {
				return r.verdicts(cmd.OutOrStdout(), args[0])
			}
			return r.run(cmd, args[0])
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().VarP(cli.Target("file", &r.output, cli.NewFile), "output", "o", "write an HTML page, or the --export, to this new file")
	cmd.Flags().Var(cli.Once("need", &r.need, advise.ParseNeed), "need", "on the page, say whether a policy meets this need, such as\n'loss<=1s,p99<10ms'")
	cmd.Flags().Var(cli.Once("page", &r.extract, cli.Given), "extract", "write the results inside a page to -o; for the second of several:\npage.html:2")
	cmd.Flags().Var(cli.Once("file", &r.proof, cli.Given), "proof", "on the page, show the verdicts in this file, made by prove -o")
	cli.AllFlag(cmd.Flags(), &r.all)
	cli.PlotFlag(cmd.Flags(), &r.plot)
	cli.ExportFlag(cmd.Flags(), &r.format, "write this format, for programs")
	cli.FioFlag(cmd.Flags(), &r.fio)
	cmd.Flags().Var(cli.Once("dir", &r.figures, cli.Given), "figures", "draw cost against loss into this directory, a picture for each load")
	cli.InGroup(cmd.Flags(), "The page", "need", "proof", "extract")
	return cmd
}

// verdicts writes the page of a file of verdicts.
func (r *reporting) verdicts(stdout io.Writer, name string) error {
	if r.output == "" || r.format != "" || r.fio != "" || r.need != nil || r.proof != "" || r.plot {
		return cli.Misuse("add -o proof.html, and leave other flags out", "%s has verdicts of prove, which report shows only on a page", name)
	}
	all, err := readProof(name)
	if err != nil {
		return err
	}
	return cli.WriteOut(stdout, r.output, func(w io.Writer) error { return proofHTML(w, resultsName(name), all) })
}

// args wants one results file, or for a page several.
func (r *reporting) args(_ *cobra.Command, args []string) error {
	if r.extract != "" {
		switch {
		case len(args) > 0:
			return cli.Misuse("for instance: holdfast report --extract report.html -o results.jsonl", "--extract names the page, so %s is one file too many", args[0])
		case r.figures != "" || r.format != "" || r.fio != "" || r.need != nil || r.proof != "":
			return cli.Misuse("extract the results first, then run report on them", "--extract can be combined only with -o")
		}
		return nil
	}
	if r.format == "" {
		if err := cli.IsPage("-o", r.output); err != nil {
			return err
		}
	}
	if i := slices.IndexFunc(args, func(name string) bool { return strings.EqualFold(filepath.Ext(name), ".csv") }); i >= 0 {
		return cli.Misuse("holdfast study figures draws it", "report reads results of holdfast bench, and %s is a table of times", args[i])
	}
	if len(args) > 1 && r.output != "" && r.format == "" && r.fio == "" && r.need == nil && r.proof == "" {
		return nil
	}
	switch len(args) {
	case 0:
		return cli.Misuse("for instance: holdfast report results.jsonl", "report needs a results file")
	case 1:
		return nil
	}
	return cli.Misuse("add -o page.html for a page of all, or use holdfast compare for two", "report prints one results file, but %d were given", len(args))
}

// draw draws a run of policies.
func (r *reporting) draw(cmd *cobra.Command, name string) error {
	if r.output != "" || r.format != "" || r.fio != "" {
		return cli.Misuse("run report twice", "--figures can't be combined with -o, --export or --emit-fio")
	}
	run, err := cli.ReadResults(cmd.Context(), name, cmd.InOrStdin())
	if err != nil {
		return err
	}
	if study.Is(run.Header) {
		return cli.Misuse("holdfast study figures draws the study copy", "%s: --figures draws runs of bench, and this is a run of the study %s", name, run.Header.Study)
	}
	return drawCostLoss(cmd.OutOrStdout(), r.figures, name, run)
}

// drawCostLoss draws what policies cost against what a power cut takes, for each load.
func drawCostLoss(stdout io.Writer, dir, name string, run result.Run) error {
	pictures, err := costLoss(run)
	if err != nil {
		return cli.CannotReport(name, err)
	}
	if len(pictures) == 0 {
		return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("%s: there is nothing to draw", name), Hint: "use results of holdfast bench without --rate"}
	}
	var files []cli.File
	for _, p := range pictures {
		files = append(files, cli.File{Name: p.name + ".svg", Data: []byte(p.plot.Document())})
	}
	if err := cli.WriteDir("--figures", dir, files); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s has %s of cost against loss\n", dir, cli.CountText(int64(len(files)), "picture"))
	return err
}

func (r *reporting) run(cmd *cobra.Command, name string) error {
	if r.fio == "-" && r.format != "" && r.output == "" {
		return cli.Misuse("add -o FILE for the export", "--emit-fio - and --export both write to standard output")
	}
	if r.need != nil && (r.output == "" || r.format != "") {
		return cli.Misuse("add -o report.html, or use holdfast advise "+name, "--need is for a page, which needs -o")
	}
	if r.plot && (r.format != "" || r.output != "") {
		return cli.Misuse("leave it out, or leave -o and --export out", "--plot draws below the printed table")
	}
	more := report.More{Need: r.need}
	if r.proof != "" {
		if r.output == "" || r.format != "" {
			return cli.Misuse("add -o report.html", "--proof is for a page, which needs -o")
		}
		verdicts, err := readProof(r.proof)
		if err != nil {
			return err
		}
		more.Sections = append(more.Sections, proofPage(resultsName(r.proof), verdicts))
	}
	pack := page.NewPack()
	var run result.Run
	var err error
	if page := r.output != "" && r.format == ""; page {
		run, err = cli.ReadResultsTo(cmd.Context(), pack, name, cmd.InOrStdin())
	} else {
		run, err = cli.ReadResults(cmd.Context(), name, cmd.InOrStdin())
	}
	if err != nil {
		return err
	}
	if err := r.studies.Known(run.Header); err != nil {
		return cli.Misuse("use the holdfast that made it", "%s: %w", name, err)
	}
	if r.need != nil && (study.Is(run.Header) || len(run.FileSystems()) > 0) {
		return cli.Misuse("leave it out, or use results of policies on one file system", "--need needs results of policies on one file system, and these are results of %s", run.Header.Study)
	}
	if r.fio != "" && study.Is(run.Header) {
		return cli.Misuse("leave it out, or use results of holdfast bench", "--emit-fio: there is no fio job for the study %s", run.Header.Study)
	}
	if err := cli.EmitFio(cmd.OutOrStdout(), r.fio, run); err != nil || r.fio == "-" && r.output == "" {
		return cli.CannotReport(name, err)
	}
	return cli.CannotReport(name, cli.WriteOut(cmd.OutOrStdout(), r.output, func(w io.Writer) error {
		if r.output != "" && r.format == "" {
			more.Results = []page.Results{pack.Results(resultsName(name))}
			return report.HTML(w, r.studies, run, more)
		}
		err := cli.WriteReport(w, r.studies, run, r.format, r.output != "", r.all)
		if err == nil && r.plot {
			err = cli.WriteCurves(w, run)
		}
		return err
	}))
}

// beside writes a page that sets each of several results beside the first.
func (r *reporting) beside(cmd *cobra.Command, names []string) error {
	var first figure.Side
	var contrasts []figure.Contrast
	var inside []page.Results
	held := 0 // trials; each comparison holds the first's once more
	for i, name := range names {
		pack := page.NewPack()
		run, err := cli.ReadBeside(cmd.Context(), pack, name, cmd.InOrStdin(), held)
		if err != nil {
			return err
		}
		side, err := figure.NewSide(resultsName(name), run)
		if err != nil {
			return cli.CannotReport(name, err)
		}
		inside = append(inside, pack.Results(side.Name))
		if i == 0 {
			first, held = side, len(run.Trials)
			continue
		}
		held += len(run.Trials) + len(first.Results().Trials)
		c, err := figure.Compare(first, side, false, stat.Band)
		if errors.Is(err, figure.ErrNothingInCommon) {
			return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("%s and %s: %w", names[0], name, err),
				Hint: fmt.Sprintf("measure the same policies, records and writers; holdfast bench --from %s repeats the first", names[0])}
		}
		if err != nil {
			return err
		}
		contrasts = append(contrasts, c)
	}
	return cli.WriteOut(cmd.OutOrStdout(), r.output, func(w io.Writer) error { return report.ContrastHTML(w, contrasts, inside) })
}
