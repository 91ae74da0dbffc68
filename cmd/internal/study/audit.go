package study

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/humanize"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/report"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/cmd/internal/place"
	"github.com/holdfast-go/holdfast/cmd/internal/run"
)

// An audit holds the flags of audit.
type audit struct {
	all    study.List
	where  run.Where
	seed   uint64
	budget time.Duration
	claims []string
	full   bool
	list   bool
	dryRun bool
	resultsDir
	from   string
	page   string // to write
	whole  bool   // print all
	export report.Format
}

// A resultsDir is the new directory for the results.
type resultsDir struct {
	dir  string       // empty: the results are not kept
	held *cli.HeldDir // once it is made
}

// NewAudit is the command audit, of the claims of these studies.
func NewAudit(studies study.List) *cobra.Command {
	a := &audit{all: studies, where: run.Where{Dir: "."}, seed: uint64(rand.Uint32())}
	cmd := &cobra.Command{
		Use: "audit [flags]",
		Long: `Audit runs the small form of all studies and tests whether each published claim
holds here. It prints the claim, the published figure, the figure measured here with
its interval, a verdict, and the reason. For a claim that can't be checked here it
prints what is missing, and the command that would settle it.

It takes about two minutes, writes only in a new directory of its own, and removes
that directory at the end.`,
		Example: `  holdfast audit
  holdfast audit --list`,
		Annotations: cli.Exits(map[int]string{cli.ExitNotMet: "a file had wrong bytes (a claim that does not hold is no error)"}),
		Args:        cli.NoArguments,
		RunE:        func(cmd *cobra.Command, _ []string) error { return a.run(cmd) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	a.where.DirFlag(f)
	f.Var(cli.List("names", &a.claims, a.parseClaim), "claim", "test only these claims")
	f.BoolVar(&a.list, "list", false, "list the claims, and measure nothing")
	f.BoolVar(&a.full, "full", false, "run more rounds and larger arms, for up to an hour")
	f.Var(cli.Once("duration", &a.budget, cli.ParseTime(time.Second)), "time", "take at most this time for all studies (default: about two minutes)")
	f.BoolVar(&a.dryRun, "dry-run", false, "show the plan, and measure nothing")
	f.VarP(cli.Target("dir", &a.dir, cli.NewFile), "output", "o", "keep the results of each study in this new directory (JSON Lines)")
	cli.AllFlag(f, &a.whole)
	cli.ExportFlag(f, &a.export, "print this format instead of the table")
	f.Var(cli.Target("file", &a.page, cli.NewFile), "page", "also write an HTML page, which filters the claims by verdict")
	f.Var(cli.Once("dir", &a.from, cli.Given), "from", "judge the results of an earlier audit, kept with -o")
	run.SeedFlag(f, &a.seed)
	place.FileSystemsFlag(f, &a.where.Kinds)
	a.where.TmpfsFlag(f)
	cli.InGroup(f, "Measuring", "from", "seed", "fs", "allow-tmpfs")
	cli.InGroup(f, "Output", "all", "export", "page")
	return cmd
}

func (a *audit) parseClaim(name string) (string, error) {
	if !slices.Contains(a.all.ClaimNames(), name) {
		if near := humanize.Near(name, a.all.ClaimNames()); near != "" {
			return "", fmt.Errorf("there is no claim %q; did you mean %q?", name, near)
		}
		return "", fmt.Errorf("there is no claim %q; holdfast audit --list has their names", name)
	}
	return name, nil
}

// studies are the studies that have a claim to be tested, with no other claims.
func (a *audit) studies() []study.Study {
	var some []study.Study
	for _, s := range a.all {
		if s = s.Claiming(a.claims); len(s.Claims) > 0 {
			some = append(some, s)
		}
	}
	return some
}

func (a *audit) run(cmd *cobra.Command) error {
	if a.export == report.Benchmark {
		return cli.Misuse("use csv, json or markdown; for benchmark lines, run holdfast report on a study's results", "--export bench is not possible: a verdict is not a benchmark")
	}
	if err := cli.Apart(cmd, cli.Pair{Flag: "from", Others: "dir fs full output time dry-run seed", Why: "--from judges earlier results, so no flag for a measurement can be given", Hint: "it goes with --claim, --export, --page and --all"}); err != nil {
		return err
	}
	// Before anything is measured.
	if err := errors.Join(cli.IsFree("-o", a.dir), cli.IsPage("--page", a.page), cli.IsFree("--page", a.page)); err != nil {
		return err
	}
	switch {
	case a.list:
		return cli.WriteLocal(cmd.OutOrStdout(), a.listClaims)
	case a.dryRun:
		return cli.WriteLocal(cmd.OutOrStdout(), a.tellPlan)
	case a.from != "":
		return a.again(cmd)
	}
	return a.measure(cmd)
}

func (a *audit) listClaims(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "claim\tsource\tsays")
	for _, s := range a.studies() {
		for _, c := range s.Claims {
			fmt.Fprintf(t, "%s\t%s\t%s\n", c.Name, c.Source, c.Says)
		}
	}
	return t.Flush()
}

// choice selects the part of a study to run.
func (a *audit) choice(s study.Study) study.Choice {
	c := study.Choice{Preset: study.Audit(), Seed: a.seed, Only: s.ClaimedArms(), FileSystems: place.KindNames(a.where.Kinds)}
	if a.full {
		c.Preset = study.Full()
	}
	return c
}

// plans returns what each study would take, within the time that is given: each has
// the share that its own estimate is of all.
func (a *audit) plans(studies []study.Study) (choices []study.Choice, plans []result.Plan) {
	all := time.Duration(0)
	for _, s := range studies {
		c := a.choice(s)
		plan := a.outline(s, c)
		choices, plans, all = append(choices, c), append(plans, plan), all+plan.Estimate
	}
	if a.budget == 0 || all == 0 {
		return choices, plans
	}
	for i := range plans {
		choices[i].Budget = max(1, time.Duration(float64(a.budget)*float64(plans[i].Estimate)/float64(all)))
		plans[i] = a.outline(studies[i], choices[i])
	}
	return choices, plans
}

// outline is the plan of a study on all file systems together.
func (a *audit) outline(s study.Study, c study.Choice) result.Plan {
	_, each := s.OutlineOn(c)
	plan := each
	for range max(0, len(c.FileSystems)-1) {
		plan = study.Sum(plan, each)
	}
	return plan
}

// order orders what --fs names, without what can't be made. Each is large enough for
// the files of all studies, which some keep until the end.
func (a *audit) order() (place.Orders, error) {
	o, err := place.Possible(a.where.Kinds)
	if err != nil || len(o.List) == 0 {
		return o, err
	}
	a.where.Kinds = nil
	var all result.Plan
	for _, s := range a.studies() {
		_, plan := s.Outline(a.choice(s))
		all = study.Sum(all, plan)
	}
	for i, one := range o.List {
		o.List[i] = place.OrderOf(one.Kind, all)
		a.where.Kinds = append(a.where.Kinds, one.Kind)
	}
	return o, nil
}

func (a *audit) tellPlan(w io.Writer) error {
	if err := place.IsDir(a.where.Dir); err != nil {
		return err
	}
	o, err := a.order()
	if err != nil {
		return err
	}
	studies := a.studies()
	choices, plans := a.plans(studies)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "study\tclaims\tarms\ttime\twrites")
	all := time.Duration(0)
	for i, s := range studies {
		fmt.Fprintf(t, "%s\t%d\t%d\t%v\t%s\n", s.Name, len(s.Claims), len(choices[i].Only), plans[i].Estimate.Round(time.Second), cli.BytesText(plans[i].Size))
		all += plans[i].Estimate
	}
	if err := t.Flush(); err != nil {
		return err
	}
	where := cli.OneLine(a.where.Dir)
	if len(o.List) > 0 {
		where += o.Text()
	}
	for _, m := range o.Missing {
		fmt.Fprintf(w, "\nnot run: %s: %s\n", m.Cell, m.Why)
	}
	_, err = fmt.Fprintf(w, "\nin %s: about %v; this is only a plan: nothing was measured or written\n", where, all.Round(time.Second))
	return err
}

// measure runs the studies one after the other. It prints what was found, also if one of
// them failed.
func (a *audit) measure(cmd *cobra.Command) (err error) {
	o, err := a.order()
	if err != nil {
		return err
	}
	ground, err := trial.OpenWorkDir(a.where.Dir, a.where.AllowTmpfs)
	if err != nil {
		return place.CannotOpen(a.where.Dir, err)
	}
	defer func() { err = place.CloseWorkDir(ground, err) }()
	s := run.New(cmd.ErrOrStderr(), ground, a.where.Dir, "")
	made, err := o.Make(cmd.Context(), s.Host())
	defer func() { err = made.Close(err) }()
	if err != nil {
		return s.Refuse(err)
	}
	if a.dir != "" {
		if a.held, err = cli.HoldDir(a.dir, 0o755); err != nil {
			return cli.CannotHold("-o", a.dir, err)
		}
		defer a.held.Close()
		if a.held.In == nil { // somebody has made it since
			return cli.IsFree("-o", a.dir)
		}
	}
	studies := a.studies()
	choices, _ := a.plans(studies)
	var judged []study.Judged
	for i, s := range studies {
		of, runErr := a.one(cmd, ground, made, s, choices[i])
		judged = append(judged, s.JudgeOn(of)...)
		if runErr != nil {
			err = runErr
			break
		}
	}
	return errors.Join(err, a.print(cmd.OutOrStdout(), a.where.Dir, machine.Read(a.where.Dir), judged))
}

// one runs what the claims of a study take; where they take nothing there is a
// header alone.
func (a *audit) one(cmd *cobra.Command, ground *trial.WorkDir, made *place.Volumes, s study.Study, c study.Choice) (result.Run, error) {
	output := ""
	if a.dir != "" {
		output = filepath.Join(a.dir, s.Name+resultsExt)
	}
	session := run.New(cmd.ErrOrStderr(), ground, a.where.Dir, output)
	session.Place = made.In(ground)
	if a.held != nil {
		session.OutputDir = a.held.Root
	}
	if len(c.Only) == 0 {
		return result.Run{Header: result.Header{Machine: machine.Read(a.where.Dir)}}, nil
	}
	session.Say("%s: %s?", s.Name, s.Question)
	err := session.Study(cmd.Context(), s, c)
	var room *trial.RoomError
	switch {
	case errors.Is(err, context.Canceled):
		err = &cli.Refusal{Code: cli.ExitInterrupted, Err: errors.New("interrupted in the study " + s.Name), Hint: "the verdicts above were reached before"}
	case errors.Is(err, study.ErrNoArm):
		session.Say("%v", err)
		err = nil
	case errors.As(err, &room) && len(session.Run.Trials) == 0:
		session.Say("not run: %v", err)
		var missing []result.Missing
		for _, arm := range c.Only {
			missing = append(missing, result.Missing{Cell: arm, Why: room.Error(), Elsewhere: "--dir A_DIRECTORY_WITH_ROOM"})
		}
		session.Run.Header.Missing = missing
		err = nil
	default:
		err = session.Refuse(err)
	}
	return session.Run, err
}

const resultsExt = ".jsonl"

// again judges the results of an earlier audit.
func (a *audit) again(cmd *cobra.Command) error {
	if why := cli.NotDir(a.from); why != nil {
		return cli.Misuse("name the directory that audit -o made", "--from %s: %w", a.from, why)
	}
	var judged []study.Judged
	var dir string
	var facts []machine.Fact
	var names []string
	for _, s := range a.studies() {
		names = append(names, s.Name)
		run, err := cli.ReadFile(cmd.Context(), filepath.Join(a.from, s.Name+resultsExt), result.Read)
		if errors.Is(err, fs.ErrNotExist) {
			run.Header.Machine = facts
		} else if err == nil && run.Header.Study != s.Name {
			return cli.Misuse("name the directory that audit -o made", "--from: %s: the results are of %s, not of %s", filepath.Join(a.from, s.Name+resultsExt), run.Header.Study, s.Name)
		} else if err != nil {
			return cli.Misuse(cli.HintResults, "--from: %s: %w", filepath.Join(a.from, s.Name+resultsExt), err)
		} else {
			dir, facts = run.Header.Dir, run.Header.Machine
		}
		judged = append(judged, s.JudgeOn(run)...)
	}
	if facts == nil {
		return cli.Misuse("name the directory that audit -o made", "--from %s: there are no results of %s", a.from, strings.Join(names, ", "))
	}
	return a.print(cmd.OutOrStdout(), dir, facts, judged)
}

func (a *audit) print(w io.Writer, dir string, facts []machine.Fact, judged []study.Judged) error {
	if len(judged) == 0 {
		return nil
	}
	all := report.Audit{Kind: "audit", Version: report.AuditVersion, Program: cli.Program(), Dir: dir, Machine: facts, Claims: judged}
	if a.page != "" {
		if err := cli.WriteOut(w, a.page, all.HTML); err != nil {
			return err
		}
	}
	if a.export != "" {
		return report.WriteAudit(w, all, a.export, 0, true)
	}
	return cli.WriteLocal(w, func(text io.Writer) error {
		return report.WriteAudit(text, all, "", cli.Columns(w), a.whole || len(a.claims) > 0)
	})
}
