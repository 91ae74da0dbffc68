// Package study has the commands of the laboratory: study, which repeats a published experiment and
// draws its pictures, and audit, which puts all published claims to the test.
package study

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/compare"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/diy"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/humanize"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/place"
	"github.com/holdfast-go/holdfast/cmd/internal/run"
)

// New is the command study: below it is one for each of these studies, which can run in these
// kernels too. By itself it lists them.
func New(studies study.List, kernels ...place.Kernel) *cobra.Command {
	cmd := &cobra.Command{
		Use: "study [name] [flags]",
		Long: `Study repeats a published experiment, and prints the published figures and then your
own in the same columns. Without a name it lists the studies: the question of each,
how long it takes, and how much it writes.

holdfast bench --from repeats the run of a study too, and --resume finishes it.`,
		Example: `  holdfast study lines --quick
  holdfast study copy --part C -o results.jsonl`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			hint := "the studies are " + strings.Join(studies.Names(), ", ") + "; holdfast study lists their questions"
			if near := humanize.Near(args[0], studies.Names()); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			return cli.Misuse(hint, "there is no study %q", args[0])
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.WriteLocal(cmd.OutOrStdout(), func(w io.Writer) error { return list(w, studies) })
		},
	}
	cmd.AddCommand(Commands(studies, kernels...)...)
	cmd.AddCommand(newFigures(), newTimes())
	return cmd
}

// Commands are one for each study.
func Commands(studies study.List, kernels ...place.Kernel) (all []*cobra.Command) {
	for _, s := range studies {
		all = append(all, newStudy(s, kernels))
	}
	return all
}

// list shows what can be run by name.
func list(w io.Writer, studies study.List) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "study\tquick\tdefault\tfull\tquestion")
	for _, s := range studies {
		row := []string{s.Name}
		for _, preset := range []study.Preset{study.Quick(), study.Default(), study.Full()} {
			_, plan := s.Outline(study.Choice{Preset: preset})
			row = append(row, fmt.Sprintf("%v, %s", max(time.Second, plan.Estimate.Round(time.Second)), cli.BytesText(plan.Size)))
		}
		fmt.Fprintf(t, "%s\t%s?\n", strings.Join(row, "\t"), s.Question)
	}
	return t.Flush()
}

// A studying holds the command line of one study.
type studying struct {
	run.Flags
	study    study.Study
	arms     study.Choice // the part of it that the study's own flags set
	keep     string       // the new directory for the files of the last round
	all      bool
	baseline compare.Baseline
}

func newStudy(of study.Study, kernels []place.Kernel) *cobra.Command {
	s := &studying{Flags: run.NewFlags(kernels), study: of}
	cmd := &cobra.Command{
		Use:         of.Name + " [flags]",
		Short:       short(of.Question) + "?",
		Long:        fmt.Sprintf("%s repeats a published experiment (%s):\n%s?", of.Name, of.Source, of.Question),
		Example:     fmt.Sprintf("  holdfast study %s --quick\n  holdfast study %[1]s -o results.jsonl", of.Name),
		Annotations: cli.Exits(map[int]string{cli.ExitNotMet: "a file had wrong bytes"}),
		Args:        cli.NoArguments,
		RunE:        func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	s.DirFlag(f)
	f.BoolVar(&s.Quick, "quick", false, "run the short form: enough to prove a factor of two")
	f.BoolVar(&s.Full, "full", false, "run the long form, with larger arms and more rounds")
	f.Var(cli.Once("duration", &s.Budget, cli.ParseTime(time.Second)), "time", "take at most this time")
	s.PlanFlags(f)
	s.ownFlags(cmd)
	f.Var(cli.Once("dir", &s.keep, cli.Given), "keep", "keep the last files of each arm in this new directory,\nwhich must be on the same file system as --dir")
	cli.AllFlag(f, &s.all)
	cli.PlotFlag(f, &s.Plot)
	cli.InGroup(f, "Output", "keep", "all", "plot")
	s.RoundsFlags(f)
	cli.InGroup(f, "Duration", "rounds", "seed")
	s.PlacesFlags(f)
	cli.ExportFlag(f, &s.Export, "print this format instead of the table")
	cli.InGroup(f, "For programs", "export")
	s.baseline.AddSaveFlags(f)
	return cmd
}

// short is a question without its last parts, where a line of a list has no room for them.
func short(question string) string {
	for len(question) > 84 {
		at := strings.LastIndex(question, ", ")
		if at < 0 {
			break
		}
		question = question[:at]
	}
	return question
}

// ownFlags adds the flags that this study takes.
func (s *studying) ownFlags(cmd *cobra.Command) {
	f, c := cmd.Flags(), &s.arms
	for _, name := range s.study.Takes {
		switch name {
		case study.TakesCount:
			f.Var(cli.Once("number", &c.Count, parseCount), name, "records of an arm (bytes, if the arm counts bytes), such as\n100k (default: the published number)")
		case study.TakesRecord:
			f.Var(cli.List("sizes", &c.Records, run.ParseRecord), name, "sizes of a record, such as 128B,4KiB")
		case study.TakesBuffer:
			f.Var(cli.List("sizes", &c.Buffers, parseBuffer), name, "buffers of the arms, such as 4KiB,64KiB")
		case study.TakesWriters:
			f.Var(cli.List("numbers", &c.Writers, run.ParseWriters), name, "goroutines that work at the same time")
		case study.TakesPolicy:
			f.Var(cli.Many("policy", &c.Policies, cli.ParsePolicy), name, "measure this policy too; repeat the flag for several")
		case study.TakesCache:
			f.Var(cli.Once("state", &c.Cache, run.ParseCache), name, run.CacheUsage)
		case study.TakesPart:
			f.Var(cli.List("parts", &c.Parts, study.ParsePart), name, "run only these parts, such as A,C")
		case "diy":
			f.Var(cli.Once("file", &c.DIY, cli.Given), name, "check the functions in this C file, then time them\nbeside read(2), libc's and ours (see cmd/drill/README.md)")
		case "source":
			f.Var(cli.Once("file", &c.Source, cli.Given), name, "copy this file, not random bytes of the\npublished sizes")
		}
		cli.InGroup(f, "This study", name)
	}
}

// The bounds of a study's arguments.
const (
	maxCount  = 1_000_000_000
	maxBuffer = 1 * holdfast.GiB
)

// parseCount reads a number of records: 100000, 100k, 1M.
func parseCount(text string) (int64, error) {
	number, factor := text, int64(1)
	for suffix, f := range map[string]int64{"k": 1e3, "K": 1e3, "M": 1e6} {
		if rest, ok := strings.CutSuffix(number, suffix); ok {
			number, factor = rest, f
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number of records, such as 100000, 100k or 1M", text)
	}
	if n < 1 || n > maxCount/factor {
		return 0, fmt.Errorf("%s records can't be measured; use 1 to %d", text, int64(maxCount))
	}
	return n * factor, nil
}

// parseBuffer reads the size of a buffer.
func parseBuffer(text string) (holdfast.Size, error) {
	size, err := holdfast.ParseSize(text)
	if err == nil && (size < 1 || size > maxBuffer) {
		err = fmt.Errorf("a buffer of %v can't be measured; use 1B to %v", size, maxBuffer)
	}
	return size, err
}

func (s *studying) run(cmd *cobra.Command) error {
	err := s.Check(cmd,
		cli.Pair{Flag: "source", Others: "count", Why: "--source copies a whole file, so --count has no meaning"},
		cli.Pair{Flag: "kernel", Others: "source diy", Why: "--source and --diy name files here, but --kernel runs in another kernel"},
		cli.Pair{Flag: "kernel", Others: "save-baseline", Why: "a run with --kernel measures two kernels, and can't be a baseline"},
		cli.Pair{Flag: "keep", Others: "fs kernel", Why: "--keep is for files in --dir, but --fs and --kernel write on file systems that are removed with the run"},
		cli.Pair{Flag: "all", Others: "export", Why: "--all is for the text, and --export is always complete"})
	if err != nil {
		return err
	}
	if err := s.openSource(); err != nil {
		return err
	}
	defer s.baseline.Close()
	if err := s.baseline.Prepare(s.DryRun); err != nil {
		return err
	}
	return s.Do(cmd, s.Choose(s.arms), run.Job{
		Study: s.study, Kept: s.keep, Keep: s.baseline.Keep,
		Ready: func(_ []result.Cell, c study.Choice) error {
			if err := s.checkStudy(cmd, c); err != nil || s.arms.DIY == "" {
				return err
			}
			return s.checkDIY(cmd)
		},
		Measure: func(ctx context.Context, to *run.Session, c study.Choice) error { return to.Study(ctx, s.study, c) },
		Print:   func(w io.Writer, of result.Run) error { return s.Print(w, study.List{s.study}, of, s.all) },
	})
}

// openSource makes the whole file of --source what is copied.
func (s *studying) openSource() (err error) {
	if s.arms.Source == "" {
		return nil
	}
	if s.arms.Source, err = filepath.Abs(s.arms.Source); err != nil {
		return err
	}
	info, err := os.Stat(s.arms.Source)
	switch {
	case err != nil:
		return cli.Misuse("choose a file that you may read", "--source %s: %w", cli.OneLine(s.arms.Source), cli.Cause(err))
	case !info.Mode().IsRegular() || info.Size() == 0:
		return cli.Misuse("holdfast gen makes one", "--source %s is empty or not a regular file", cli.OneLine(s.arms.Source))
	}
	s.arms.Count = info.Size()
	return nil
}

// checkDIY refuses a student's file that does not compile or whose functions are wrong: a
// time counts only if the bytes are right.
func (s *studying) checkDIY(cmd *cobra.Command) error {
	if why := diy.Missing(); why != "" {
		return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("--diy: %s", why)}
	}
	if _, err := os.Stat(s.arms.DIY); err != nil {
		return cli.Misuse("cmd/drill/README.md has the steps", "--diy %s: %w", cli.OneLine(s.arms.DIY), cli.Cause(err))
	}
	if filepath.Ext(s.arms.DIY) != ".c" {
		return cli.Misuse("cmd/drill/README.md has the steps", "--diy %s: it must be a program in C, and its name must end in .c", cli.OneLine(s.arms.DIY))
	}
	found, err := diy.Check(cmd.Context(), s.arms.DIY)
	var refused *diy.CompileError
	if errors.As(err, &refused) {
		_, err = fmt.Fprintln(cmd.ErrOrStderr(), refused.Text)
		return errors.Join(&cli.Refusal{Code: cli.ExitNotMet, Err: fmt.Errorf("%s does not compile", cli.OneLine(s.arms.DIY))}, err)
	}
	if err != nil {
		return cli.Misuse("cmd/drill/README.md has the steps", "--diy: %w", err)
	}
	if _, err := fmt.Fprintf(cmd.ErrOrStderr(), "%s: %v", cli.OneLine(s.arms.DIY), found); err != nil || len(found.Faults) == 0 {
		return err
	}
	return &cli.Refusal{Code: cli.ExitNotMet, Err: fmt.Errorf("%s is wrong in %d cases, so it was not timed", cli.OneLine(s.arms.DIY), len(found.Faults))}
}

// checkStudy refuses a choice that leaves nothing to run: by its own flags, or because
// this build or system has no arm at all.
func (s *studying) checkStudy(cmd *cobra.Command, c study.Choice) error {
	err := s.study.Check(c)
	if err != nil && slices.ContainsFunc(s.study.Takes, cmd.Flags().Changed) {
		return cli.Misuse("leave the study's own flags out for the published numbers, or change them", "%w", err)
	}
	return err
}
