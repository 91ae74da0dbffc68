package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/internal/machine"
	"github.com/holdfast-go/holdfast/internal/report"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/study"
	"github.com/holdfast-go/holdfast/internal/trial"
)

// An audit is what the flags of audit say.
type audit struct {
	where  benchmark // dir, allowTmpfs, seed
	claims []string
	full   bool
	list   bool
	dryRun bool
	folder string // of the results, or empty
	from   string
	export report.Format
}

func newAudit() *cobra.Command {
	a := &audit{where: benchmark{dir: ".", seed: uint64(rand.Uint32())}}
	cmd := &cobra.Command{
		Use:   "audit [flags]",
		Short: "put the claims of the published experiments to the test, on this machine",
		Long: `Audit runs the small form of all studies and says of each published claim whether
it holds here: the claim, the figure that was published, the one measured here
with its interval, a verdict, and why. A claim that can't be checked here names
what is missing and the command that would settle it.

It takes about two minutes, writes only in a new folder of its own, and removes that
folder at the end.`,
		Example: `  holdfast audit
  holdfast audit --list`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.run(cmd) },
	}
	a.addFlags(cmd)
	return cmd
}

func (a *audit) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(once("folder", &a.where.dir, given), "dir", "measure the disk that holds this folder (default: the current folder)")
	f.Var(many("name", &a.claims, parseClaim), "claim", "test this claim alone; give it again for each further one")
	f.BoolVar(&a.list, "list", false, "list the claims, and measure nothing")
	f.BoolVar(&a.full, "full", false, "more rounds and larger arms, in up to an hour")
	f.DurationVar(&a.where.budget, "time", 0, "fit all studies into this time (default: about two minutes)")
	f.BoolVar(&a.dryRun, "dry-run", false, "show what would be run, and write nothing")
	f.VarP(once("folder", &a.folder, newFile), "output", "o", "keep the results of each study in this new folder (JSON Lines)")
	exportFlag(f, &a.export, "print this instead of the table")
	f.Var(once("folder", &a.from, given), "from", "judge the results that an earlier audit has kept with -o")
	f.Var(once("number", &a.where.seed, parseSeed), "seed", "repeat the order of an earlier run (default: a new one)")
	fileSystemsFlag(f, &a.where.fs)
	f.BoolVar(&a.where.allowTmpfs, "allow-tmpfs", false, "measure a file system in memory too, where nothing is ever durable")
	inGroup(f, "How to measure", "from", "seed", "fs", "allow-tmpfs")
}

func parseClaim(name string) (string, error) {
	if !slices.Contains(study.ClaimNames(), name) {
		return "", fmt.Errorf("there is no claim %q; holdfast audit --list has their names", name)
	}
	return name, nil
}

// studies are those that have a claim to be tested, with no other claims.
func (a *audit) studies() []study.Study {
	var some []study.Study
	for _, s := range study.Audited() {
		if s = s.Claiming(a.claims); len(s.Claims) > 0 {
			some = append(some, s)
		}
	}
	return some
}

// check refuses flags that say two things.
func (a *audit) check(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	switch {
	case changed("time") && a.where.budget < time.Second:
		return misuse("give at least 1s", "--time %v is too short to measure anything", a.where.budget)
	case a.export == report.Benchmark:
		return misuse("use csv, json or markdown; holdfast report on a study's results has benchmark lines", "--export bench: a verdict is no benchmark")
	case a.from != "" && (changed("dir") || changed("fs") || a.full || a.folder != "" || changed("time") || a.dryRun || changed("seed")):
		return misuse("it goes with --claim and --export", "--from judges what is measured already, which the other flags contradict")
	case a.folder != "":
		return isFree("-o", a.folder)
	}
	return nil
}

func (a *audit) run(cmd *cobra.Command) error {
	if err := a.check(cmd); err != nil {
		return err
	}
	switch {
	case a.list:
		return a.listClaims(cmd.OutOrStdout())
	case a.dryRun:
		return a.tellPlan(cmd.OutOrStdout())
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

// choice is what is run of a study.
func (a *audit) choice(s study.Study) study.Choice {
	c := study.Choice{Preset: study.Audit(), Seed: a.where.seed, Only: s.ClaimedArms(), FileSystems: kindNames(a.where.fs)}
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
	if a.where.budget == 0 || all == 0 {
		return choices, plans
	}
	for i := range plans {
		choices[i].Budget = max(1, time.Duration(float64(a.where.budget)*float64(plans[i].Estimate)/float64(all)))
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

// order orders what --fs names, and takes what can't be made out of it: large enough
// for the files of all studies, which some keep until the end.
func (a *audit) order() (orders, error) {
	o, err := a.where.possible()
	if err != nil || len(o.list) == 0 {
		return o, err
	}
	a.where.fs = nil
	var all result.Plan
	for _, s := range a.studies() {
		_, plan := s.Outline(a.choice(s))
		all = study.Sum(all, plan)
	}
	for i, one := range o.list {
		o.list[i] = orderOf(one.kind, all)
		a.where.fs = append(a.where.fs, one.kind)
	}
	return o, nil
}

func (a *audit) tellPlan(w io.Writer) error {
	if err := a.where.isFolder(); err != nil {
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
		fmt.Fprintf(t, "%s\t%d\t%d\t%v\t%s\n", s.Name, len(s.Claims), len(choices[i].Only), plans[i].Estimate.Round(time.Second), bytesText(plans[i].Size))
		all += plans[i].Estimate
	}
	if err := t.Flush(); err != nil {
		return err
	}
	where := a.where.dir
	if len(o.list) > 0 {
		where += o.text()
	}
	for _, m := range o.missing {
		fmt.Fprintf(w, "\nnot run: %s: %s\n", m.Cell, m.Why)
	}
	_, err = fmt.Fprintf(w, "\nin %s: about %v; nothing was written: this is a plan only\n", where, all.Round(time.Second))
	return err
}

// measure runs the studies one after the other, and tells what was found also if
// one of them failed.
func (a *audit) measure(cmd *cobra.Command) (err error) {
	o, err := a.order()
	if err != nil {
		return err
	}
	ground, err := trial.OpenGround(a.where.dir, a.where.allowTmpfs)
	if err != nil {
		return a.where.cannotOpen(err)
	}
	defer func() { err = closeGround(ground, err) }()
	s := newSession(cmd.ErrOrStderr(), ground, a.where.dir, "")
	made, err := o.make(cmd.Context(), s)
	defer func() { err = made.close(err) }()
	if err != nil {
		return s.refuse(err)
	}
	if a.folder != "" {
		if err := os.Mkdir(a.folder, 0o755); err != nil {
			return misuse("choose a folder that you may make", "-o: %w", err)
		}
	}
	studies := a.studies()
	choices, _ := a.plans(studies)
	var judged []study.Judged
	for i, s := range studies {
		run, runErr := a.one(cmd, ground, made, s, choices[i])
		judged = append(judged, s.JudgeOn(run)...)
		if runErr != nil {
			err = runErr
			break
		}
	}
	return errors.Join(err, a.print(cmd.OutOrStdout(), a.where.dir, machine.Read(a.where.dir), judged))
}

// one runs what the claims of a study take; where they take nothing there is a
// header alone.
func (a *audit) one(cmd *cobra.Command, ground *trial.Ground, made *made, s study.Study, c study.Choice) (result.Run, error) {
	output := ""
	if a.folder != "" {
		output = filepath.Join(a.folder, s.Name+resultsExt)
	}
	session := newSession(cmd.ErrOrStderr(), ground, a.where.dir, output)
	session.made = made
	if len(c.Only) == 0 {
		return result.Run{Header: result.Header{Machine: machine.Read(a.where.dir)}}, nil
	}
	session.say("%s: %s?", s.Name, s.Question)
	err := session.study(cmd.Context(), s, c)
	var room *trial.RoomError
	switch {
	case errors.Is(err, context.Canceled):
		err = &refusal{exitInterrupted, errors.New("interrupted in the study " + s.Name), "the verdicts above are those that were reached"}
	case errors.Is(err, study.ErrNoArm):
		session.say("%v", err)
		err = nil
	case errors.As(err, &room) && len(session.run.Trials) == 0:
		session.say("not run: %v", err)
		session.run.Header.Missing = withoutRoom(c.Only, room)
		err = nil
	default:
		err = session.refuse(err)
	}
	return session.run, err
}

// withoutRoom says of arms that there is no room for them.
func withoutRoom(arms []string, why *trial.RoomError) (missing []result.Missing) {
	for _, arm := range arms {
		missing = append(missing, result.Missing{Cell: arm, Why: why.Error(), Elsewhere: "--dir A_FOLDER_WITH_ROOM"})
	}
	return missing
}

const resultsExt = ".jsonl"

// again judges the results of an earlier audit.
func (a *audit) again(cmd *cobra.Command) error {
	switch info, err := os.Stat(a.from); {
	case err != nil:
		return misuse("give the folder that -o has made", "--from %s: there is no such folder", a.from)
	case !info.IsDir():
		return misuse("give the folder that -o has made", "--from %s: it is a file, not a folder", a.from)
	}
	var judged []study.Judged
	var dir string
	var facts []machine.Fact
	for _, s := range a.studies() {
		run, err := readRun(filepath.Join(a.from, s.Name+resultsExt), nil)
		if errors.Is(err, fs.ErrNotExist) {
			run.Header.Machine = facts
		} else if err == nil && run.Header.Study != s.Name {
			return misuse("give the folder that -o has made", "--from: %s: the results are of %s, not of %s", filepath.Join(a.from, s.Name+resultsExt), run.Header.Study, s.Name)
		} else if err != nil {
			return misuse(hintResults, "--from: %s: %w", filepath.Join(a.from, s.Name+resultsExt), err)
		} else {
			dir, facts = run.Header.Dir, run.Header.Machine
		}
		judged = append(judged, s.JudgeOn(run)...)
	}
	if facts == nil {
		return misuse("give the folder that -o has made", "--from %s: there are no results of %s", a.from, strings.Join(a.names(), ", "))
	}
	return a.print(cmd.OutOrStdout(), dir, facts, judged)
}

func (a *audit) names() []string {
	var names []string
	for _, s := range a.studies() {
		names = append(names, s.Name)
	}
	return names
}

func (a *audit) print(w io.Writer, dir string, facts []machine.Fact, judged []study.Judged) error {
	if len(judged) == 0 {
		return nil
	}
	return report.WriteAudit(w, report.Audit{
		Kind: "audit", Version: report.AuditVersion, Program: program(), Dir: dir, Machine: facts, Claims: judged,
	}, a.export)
}
