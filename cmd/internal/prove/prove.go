// Package prove is the command prove: it crashes what writes, and shows what was lost beside what
// was promised.
package prove

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/humanize"
	"github.com/holdfast-go/holdfast/cmd/internal/place"
	"github.com/holdfast-go/holdfast/internal/catalogue"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/crash/powercut"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// A proof holds the arguments of prove.
type proof struct {
	crash.Options
	output      string
	replay      string
	kinds       []string
	look        string
	statesGiven bool
	command     string
	read        string
	eio, trace  bool
	started     place.Starter
	kernel      string // the name of started, if it is to be started
	say         func(string)
}

// childCommand is the command that level kill runs this program as.
const childCommand = "proven-process"

// New is the command. Level power can start a kernel.
func New(started place.Starter) *cobra.Command {
	var names []string
	for six := range slices.Chunk(WorkloadNames(), 6) { // a line of six
		names = append(names, strings.Join(six, ", "))
	}
	p := &proof{Options: crash.Options{States: 100_000, Time: 45 * time.Second}, started: started}
	cmd := &cobra.Command{
		Use: "prove [flags]",
		Long: `Prove writes records under each policy, crashes the writer again and again, and compares
the remaining records with the acknowledged ones. If an acknowledged record is lost, the
promise is broken, and the exit code is 1. Other records may be lost as the policy allows.

Level memory cuts the power of a simulated disk, after every step and in every allowed
way. Level kill kills real processes, which loses only their memory. Level fault makes
system calls of real processes fail, one at a time, and also checks the errors that they
report. Level hostile replaces the directory with a link while files are written, and
checks who may read them. Level power cuts the power of real file systems, which then
replay their journals; it needs root. Without root it uses posix, a model of the least
that POSIX promises. With --kernel uml it runs inside User-Mode Linux, without root: a
guest kernel with more file systems (f2fs, jfs, nilfs2, reiserfs). Except at level
hostile, the writer also runs a second time on the files that a crash left. At each level
a correct control program must lose nothing, and faulty ones must be caught; else all
verdicts are "not known".

With --cmd it crashes your own program: see docs/prove.md. The workloads are
` + strings.Join(names, ",\n") + ".",
		Example: `  holdfast prove --time 20s
  holdfast prove --policy durable --workload writer --level memory --states 20000`,
		Annotations: cli.Exits(map[int]string{cli.ExitNotMet: "a promise is broken", cli.ExitNotKnown: "no promise was broken, but some verdicts are not known"}),
		Args:        cli.NoArguments,
		RunE:        func(cmd *cobra.Command, _ []string) error { return p.run(cmd) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(cli.Many("policy", &p.Policies, cli.ParsePolicy), "policy", "prove this policy; repeat the flag for several (default: some\ngenerated policies, which depend on the seed)")
	f.Var(cli.List("names", &p.Workloads, parseWorkload), "workload", "the workloads, such as writer,wal (default: all of the above)")
	f.Var(cli.List("list", &p.Levels, parseLevel), "level", "memory, kill, fault, hostile, power or all (default: all; --cmd: kill)")
	f.Var(cli.Once("duration", &p.Time, cli.ParseTime(time.Millisecond)), "time", "take about this time in all (default: 45s, or 5m for all\npolicies)")
	f.VarP(cli.Target("file", &p.output, cli.NewLines("results.jsonl --proof proof.jsonl")), "output", "o", "write each verdict to a new file, as a line of JSON")
	f.BoolVar(&p.All, "all", false, "judge all generated policies, and print a row for each verdict")
	f.Var(cli.Once("file:line", &p.replay, cli.Given), "replay", "judge only the failing state of this line of such a file again")
	f.Var(cli.Once("command", &p.look, cli.Given), "look", "with --replay, at level power: run this command in the failing state")
	f.Var(cli.List("list", &p.kinds, parseKind), "fs", "the file systems of level power\n(default: ext4, xfs, btrfs; without root: posix, a model)")
	f.Var(cli.Once("name", &p.kernel, p.parseKernel), "kernel", "level power inside User-Mode Linux (uml), which has more file systems and\nneeds no root")
	f.Var(cli.Once("command", &p.command, cli.Given), "cmd", "crash this program in an empty directory; it prints lines \"ack N\"")
	f.Var(cli.Once("command", &p.read, cli.Given), "read", "print the numbers of the program's records with this command, a line each")
	f.Var(cli.Once("number", &p.States, cli.ParseBetween(1, 1_000_000_000, "can't be judged")), "states", "number of states to judge for each workload and policy, at levels memory\nand power (default: 100000, and 120 that are mounted)")
	f.Var(cli.Once("number", &p.Seed, cli.ParseSeed), "seed", "the seed of all random choices (default: a new one)")
	f.Var(cli.Once("dir", &p.Dir, cli.Given), "dir", "the directory in which levels kill, fault and hostile write\n(default: the one for temporary files)")
	f.BoolVar(&p.eio, "eio", false, "at level power: let one write of the disk fail with EIO, and show what\ntwo syncs return, and which bytes remain")
	f.BoolVar(&p.trace, "trace", false, "at level power: show what one sync sends to the disk")
	cli.InGroup(f, "Your own program", "cmd", "read")
	cli.InGroup(f, "Behaviour of file systems, without a verdict", "eio", "trace")
	cli.InGroup(f, "Choices", "fs", "kernel", "look", "states", "seed", "dir")
	return cmd
}

// NewChild is the hidden command that level kill runs.
func NewChild() *cobra.Command {
	return &cobra.Command{
		Use:    childCommand,
		Short:  "do the work of a process that prove kills",
		Hidden: true,
		RunE: func(_ *cobra.Command, args []string) error {
			err := powercut.Process(args, crash.Options{Child: thisProgram, Workloads: catalogue.Workloads()})
			if err != nil && len(args) == 0 {
				err = cli.Misuse("prove calls this command itself", "%w", err)
			}
			return err
		},
	}
}

// WorkloadNames are the names in --workload.
func WorkloadNames() (names []string) {
	for _, w := range catalogue.Workloads() {
		if w.Control == "" {
			names = append(names, w.Name)
		}
	}
	return names
}

func parseWorkload(text string) (*crash.Workload, error) {
	w := catalogue.Find(text)
	if w == nil || w.Control != "" {
		return nil, fmt.Errorf("%q is not a workload; %s", text, humanize.DidYouMean(text, WorkloadNames()))
	}
	return w, nil
}

// allLevels stands for every level that there is.
const allLevels crash.Level = "all"

func parseLevel(text string) (crash.Level, error) {
	level := crash.Level(text)
	if level != allLevels && !slices.Contains(crash.Levels, level) {
		return "", fmt.Errorf("%q is not a level; use memory, kill, fault, hostile, power or all", text)
	}
	return level, nil
}

func parseKind(text string) (string, error) {
	if !slices.Contains(powercut.Kinds, text) {
		return "", fmt.Errorf("%q is not a file system of level power; %s", text, humanize.DidYouMean(text, powercut.Kinds))
	}
	return text, nil
}

func (p *proof) run(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	if p.eio || p.trace {
		return p.show(cmd)
	}
	if p.replay != "" {
		p.removeStale(cmd.ErrOrStderr())
		return p.again(cmd.Context(), cmd.OutOrStdout())
	}
	if p.look != "" {
		return cli.Misuse("add --replay FILE:LINE", "--look needs --replay, which names the failing state")
	}
	if changed("cmd") != changed("read") {
		return cli.Misuse("give both, such as --cmd ./writer --read 'cat log'", "--cmd and --read go together: one writes records, the other prints them")
	}
	for _, name := range []string{"policy", "workload"} {
		if changed("cmd") && changed(name) {
			return cli.Misuse("leave it out", "--%s has no meaning with --cmd", name)
		}
	}
	if p.kernel != "" && len(p.Levels) == 0 {
		p.Levels = []crash.Level{crash.PowerCut}
	}
	if changed("cmd") && changed("states") && !slices.Contains(p.Levels, crash.PowerCut) {
		return cli.Misuse("add --level power, or leave it out", "with --cmd, --states is for level power only")
	}
	for _, level := range []crash.Level{crash.Memory, crash.Hostile} {
		if changed("cmd") && slices.Contains(p.Levels, level) {
			return cli.Misuse("use --level kill, fault or power", "--level %s can't judge the program of --cmd", level)
		}
	}
	if err := cli.IsFree("-o", p.output); err != nil {
		return err
	}
	if err := p.hasRoom(); err != nil {
		return err
	}
	p.removeStale(cmd.ErrOrStderr())
	if !changed("seed") {
		p.Seed = rand.Uint64()
	}
	if changed("cmd") && len(p.Levels) == 0 {
		p.Levels = []crash.Level{crash.Kill}
	} else if changed("cmd") && slices.Contains(p.Levels, allLevels) {
		p.Levels = []crash.Level{crash.Kill, crash.Fault}
	}
	p.statesGiven = changed("states")
	if p.All && !changed("time") && !changed("cmd") {
		p.Time = 5 * time.Minute
	}
	if err := p.complete(cmd.Context(), cmd.ErrOrStderr()); err != nil {
		return err
	}
	verdicts, err := p.judgeAll(cmd.Context(), cmd.ErrOrStderr())
	if err != nil {
		if cmd.Context().Err() != nil {
			return &cli.Refusal{Code: cli.ExitInterrupted, Err: errors.New("interrupted: nothing is proven"), Hint: "all files of the run are removed"}
		}
		hint := cli.DiskHint(err)
		if p.command != "" {
			hint = cmp.Or(hint, "--cmd and --read run by sh in an empty directory of their own: give a program by its whole path")
		}
		return &cli.Refusal{Code: cli.ExitCannot, Err: err, Hint: hint}
	}
	return p.report(cmd.OutOrStdout(), verdicts)
}

// judgeAll makes the verdicts, and shows meanwhile how far it is.
func (p *proof) judgeAll(ctx context.Context, stderr io.Writer) (verdicts []*crash.Verdict, err error) {
	progress := cli.NewProgress(stderr, false)
	var mu sync.Mutex
	var made []*crash.Verdict
	began := time.Now()
	level := ""
	progress.Every(func() string {
		mu.Lock()
		defer mu.Unlock()
		return fmt.Sprintf("%s%s; %v of about %v", level, sumOf(made).answer(), time.Since(began).Round(time.Second), p.Time)
	})
	defer progress.End()
	p.Each = func(v *crash.Verdict) {
		mu.Lock()
		level = "level " + strings.TrimSpace(string(v.Level)+" "+v.FS) + ": "
		made = append(made, v)
		mu.Unlock()
		if v.Failure != nil && v.Control == "" { // whoever looks for a fault need not wait for the end
			progress.Say("%s: %s", whatOf(v), v.Failure.Words)
		}
	}
	if p.command == "" {
		return crash.Prove(ctx, p.Options)
	}
	p.say = func(text string) { progress.Say("%s", text) }
	for n, level := range p.Levels {
		left := (p.Time - time.Since(began)) / time.Duration(len(p.Levels)-n)
		if level == crash.PowerCut {
			o := p.Options
			o.Levels, o.Workloads, o.Time = []crash.Level{level}, catalogue.With(), left
			o.Program = &crash.Program{Command: p.command, Read: p.read}
			found, err := crash.Prove(ctx, o)
			if verdicts = append(verdicts, found...); err != nil {
				return verdicts, err
			}
			continue
		}
		v, err := p.program(level, left).Prove(ctx)
		if err != nil {
			return verdicts, fmt.Errorf("level %s: %w", level, err)
		}
		verdicts = append(verdicts, v)
		p.Each(v)
	}
	return verdicts, nil
}

// program is the program of --cmd.
func (p *proof) program(level crash.Level, most time.Duration) crash.Program {
	return crash.Program{Command: p.command, Read: p.read, Dir: p.Dir, Time: most, Seed: p.Seed, Level: level, Say: p.say}
}

// removeStale removes what killed runs have left. It reports files that it can't remove, and goes on.
func (p *proof) removeStale(stderr io.Writer) {
	if err := p.RemoveStale(); err != nil {
		cli.Say(stderr, "%s", cli.OneLine(err.Error()))
	}
}

// leastOpen is how many files and pipes the levels have open at a time. Without them not even what was made
// could be removed.
const leastOpen = 64

// hasRoom refuses, before anything is made, where there is no directory to work in or too few files can be open.
func (p *proof) hasRoom() error {
	if why := cli.NotDir(p.Dir); p.Dir != "" && why != nil {
		return cli.Misuse("name a directory that exists", "--dir %s: %w", p.Dir, why)
	}
	if why := cli.NotDir(os.TempDir()); why != nil {
		return cli.Misuse("set TMPDIR, or TMP on Windows, to a directory that exists", "the directory of temporary files, %s: %w", os.TempDir(), why)
	}
	if err := canOpen(leastOpen); err != nil {
		return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("prove needs %d open files at a time: %w", leastOpen, cli.Cause(err)), Hint: cli.DiskHint(err)}
	}
	return nil
}

// writesFit refuses a disk that the workloads could fill. The space of a program of --cmd is not known.
func (p *proof) writesFit() error {
	need := int64(16 << 20) // twice the largest seen, for all that run at a time
	if slices.Contains(p.Workloads, catalogue.Find("copy-resume")) {
		need += 3 * 32 << 20 // under three policies a file of 8 MiB, four times
	}
	if p.command != "" || !slices.ContainsFunc(p.Levels, func(l crash.Level) bool { return l != crash.Memory && l != crash.PowerCut }) {
		return nil
	}
	dir := cmp.Or(p.Dir, os.TempDir())
	free, err := sys.FreeSpace(dir)
	if err != nil || free >= need { // where it is not known, a full disk ends it
		return nil
	}
	err = fmt.Errorf("prove writes up to %s, and %s has %s free", cli.BytesText(need), dir, cli.BytesText(free))
	return &cli.Refusal{Code: cli.ExitCannot, Err: err, Hint: "free some space, name a directory on another disk with --dir, or use --level memory"}
}

// canOpen returns nil if so many files can be open. Pipes need no file: a bare chroot has not even /dev/null.
func canOpen(count int) error {
	for range count / 2 {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		defer r.Close()
		defer w.Close()
	}
	return nil
}

// complete fills in the defaults.
func (p *proof) complete(ctx context.Context, stderr io.Writer) error {
	if len(p.Levels) == 0 {
		p.Levels = []crash.Level{allLevels}
	}
	all := slices.Contains(p.Levels, allLevels)
	if all {
		p.Levels = slices.Clone(crash.Levels)
	}
	lacking := map[crash.Level]string{crash.Kill: crash.CanKill}
	if slices.Contains(p.Levels, crash.Fault) || slices.Contains(p.Levels, crash.Hostile) {
		lacking[crash.Fault] = crash.CanSupervise(exec.Command("true"))
		lacking[crash.Hostile] = lacking[crash.Fault]
	}
	if null, err := os.Open(os.DevNull); err != nil { // the input of processes that get none
		for _, level := range []crash.Level{crash.Kill, crash.Fault, crash.Hostile} {
			lacking[level] = err.Error()
		}
	} else {
		_ = null.Close() // nothing was written to it
	}
	for level, why := range lacking {
		switch {
		case why == "" || !slices.Contains(p.Levels, level):
		case all:
			cli.Say(stderr, "level %s is skipped: %s", level, why)
			p.Levels = slices.DeleteFunc(p.Levels, func(l crash.Level) bool { return l == level })
		default:
			return cli.Misuse("use --level memory", "level %s is not possible here: %s", level, why)
		}
	}
	chosen := p.Workloads
	if len(chosen) == 0 {
		p.Workloads, p.Commands = catalogue.Workloads(), catalogue.Commands()
	}
	p.Workloads = catalogue.With(p.Workloads...)
	if err := p.runsEach(chosen); err != nil {
		return err
	}
	if err := p.writesFit(); err != nil {
		return err
	}
	p.Self = func(ctx context.Context, args ...string) *exec.Cmd { return place.ThisProgram(ctx, args...) }
	p.Child, p.InFakeTime = thisProgram, inFakeTime
	return p.completePower(ctx, stderr, all)
}

// runsEach refuses a workload that no level would run: a proof of nothing looks like one.
func (p *proof) runsEach(chosen []*crash.Workload) error {
	runs := func(w *crash.Workload, level crash.Level, o crash.Options) bool {
		return slices.ContainsFunc(o.Cells(level), func(c crash.Cell) bool { return c.Workload == w })
	}
	free := p.Options
	free.Policies = nil
	for _, w := range chosen {
		var at, wanted []string
		known := false
		for _, level := range crash.Levels {
			if runs(w, level, free) {
				at = append(at, string(level))
			}
		}
		for _, level := range p.Levels {
			known = known || runs(w, level, p.Options)
			wanted = append(wanted, string(level))
		}
		switch {
		case known:
		case slices.ContainsFunc(wanted, func(level string) bool { return slices.Contains(at, level) }):
			return cli.Misuse("leave --policy out", "workload %s has policies of its own, and none of them was chosen", w.Name)
		default:
			return cli.Misuse("use --level "+strings.Join(at, " or "), "workload %s is not run at level %s", w.Name, strings.Join(wanted, ", "))
		}
	}
	return nil
}

// completePower decides what level power does. A file system that can't be had is left out if it
// was not asked for.
func (p *proof) completePower(ctx context.Context, stderr io.Writer, all bool) error {
	policies, states := p.Policies, p.States
	if len(policies) == 0 {
		policies = []holdfast.Policy{holdfast.Durable()} // level power: the others promise less at a power cut
	}
	if !slices.Contains(p.Levels, crash.PowerCut) {
		if p.kinds != nil {
			return cli.Misuse("add --level power", "--fs is for level power, which is not run")
		}
		if p.kernel != "" {
			return cli.Misuse("add --level power", "--kernel is for level power, which is not run")
		}
		return nil
	}
	if p.kernel != "" {
		return p.completeInside(ctx, policies)
	}
	here, err := p.powerKinds(ctx, stderr, all)
	if err != nil {
		return err
	}
	if slices.Equal(here, []string{powercut.Model}) && p.kinds == nil {
		cli.Say(stderr, "level power judges a model of what POSIX promises instead")
	}
	if len(here) == 0 && p.kinds == nil {
		if err := p.can(ctx, powercut.Model); err == nil {
			here = []string{powercut.Model}
			cli.Say(stderr, "level power judges a model of what POSIX promises instead")
		} else {
			cli.Say(stderr, "level power is left out on %v", err)
		}
	}
	switch {
	case len(here) > 0:
	case all:
		p.Levels = slices.DeleteFunc(p.Levels, func(l crash.Level) bool { return l == crash.PowerCut })
	default:
		return cli.Misuse(asRoot("use --level memory,kill"), "level power is not possible here")
	}
	mounted := slices.DeleteFunc(slices.Clone(here), func(kind string) bool { return kind == powercut.Model })
	model := len(mounted) < len(here)
	p.Power = func(ctx context.Context, o crash.Options, most time.Duration) (all []*crash.Verdict, err error) {
		o.Policies = policies
		if o.States = states; len(mounted) > 0 {
			if !p.statesGiven {
				o.States = powerStates
			}
			if model {
				most /= 2
			}
			all, err = powercut.Run(ctx, o, mounted, most)
		}
		if o.States = states; model && err == nil {
			var more []*crash.Verdict
			if o.Program != nil && !p.statesGiven {
				o.States = programStates
			}
			if o.Program != nil {
				more, err = p.modelOf(ctx, o, most)
			} else {
				more, err = powercut.Run(ctx, o, []string{powercut.Model}, most)
			}
			all = append(all, more...)
		}
		return all, err
	}
	return nil
}

// can returns nil if the power of a file system can be cut. The model takes no mount for a program of --cmd, where its calls can be seen.
func (p *proof) can(ctx context.Context, kind string) error {
	if kind == powercut.Model && p.command != "" && crash.CanSupervise(exec.Command("true")) == "" {
		return nil
	}
	return powercut.Can(ctx, p.Options, kind)
}

// modelOf makes the verdict of the program of --cmd by the model: of its calls, where these can be seen, and else, or where it
// makes others, of a tree that is mounted.
func (p *proof) modelOf(ctx context.Context, o crash.Options, most time.Duration) ([]*crash.Verdict, error) {
	if crash.CanSupervise(exec.Command("true")) == "" {
		v, err := p.program(crash.PowerCut, most).Prove(ctx)
		if err != nil {
			return nil, err
		}
		v.FS = powercut.Model
		if v.Unknown == "" || powercut.Can(ctx, p.Options, powercut.Model) != nil {
			return []*crash.Verdict{v}, nil
		}
	}
	return powercut.Run(ctx, o, []string{powercut.Model}, most)
}

// powerKinds are the file systems of level power. One that can't be had is left out if it was
// not asked for.
func (p *proof) powerKinds(ctx context.Context, stderr io.Writer, all bool) (here []string, err error) {
	kinds := p.kinds
	if len(kinds) == 0 {
		kinds = powercut.Kinds[:3]
		if all {
			kinds = kinds[:1] // --time is short
		}
		// ext4 keeps more than it promises: the name of a new file with its bytes. The model shows who leans on that.
		if all && p.can(ctx, powercut.Model) == nil {
			kinds = append(slices.Clone(kinds), powercut.Model)
		}
	}
	for _, kind := range kinds {
		if err := p.can(ctx, kind); err == nil {
			here = append(here, kind)
		} else if p.kinds != nil {
			hint := asRoot("leave it out of --fs")
			if kind == powercut.Model {
				hint = "it needs user namespaces, and a /dev/fuse that this user may open; or leave it out of --fs"
			}
			return nil, cli.Misuse(hint, "level power is not possible on %w", err)
		} else {
			cli.Say(stderr, "level power is skipped on %v: what a power cut leaves on %s is not known", err, kind)
		}
	}
	return here, nil
}

// asRoot is the hint where a file system can't be had: who is root already lacks something else, which was said.
func asRoot(or string) string {
	if os.Geteuid() == 0 {
		return "get what is missing, or " + or
	}
	return "run as root, or " + or
}

// show prints what file systems do, and judges nothing.
func (p *proof) show(cmd *cobra.Command) error {
	name := "--eio"
	if p.trace {
		name = "--trace"
	}
	var other string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains([]string{"eio", "trace", "fs", "level"}, f.Name) {
			other = f.Name
		}
	})
	switch {
	case p.eio && p.trace:
		return cli.Misuse("run them one after the other", "--eio and --trace can't be combined")
	case other != "":
		return cli.Misuse("leave it out", "%s gives no verdict, so --%s has no meaning", name, other)
	case p.Levels != nil && !slices.Equal(p.Levels, []crash.Level{crash.PowerCut}):
		return cli.Misuse("use --level power, or leave it out", "%s is for level power only", name)
	}
	if slices.Contains(p.kinds, powercut.Model) {
		return cli.Misuse("leave it out of --fs", "%s is for real file systems, and %s is a model", name, powercut.Model)
	}
	kinds, err := p.powerKinds(cmd.Context(), cmd.ErrOrStderr(), false)
	if err != nil {
		return err
	}
	if len(kinds) == 0 {
		return cli.Misuse(asRoot("use another machine"), "%s is not possible here", name)
	}
	out := cmd.OutOrStdout()
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	o := crash.Options{Child: thisProgram, Dir: p.Dir}
	if p.eio {
		var refusals []powercut.Refusal
		if refusals, err = powercut.ShowRefusals(cmd.Context(), o, kinds); len(refusals) > 0 {
			fmt.Fprint(out, "A program writes a record and syncs twice. The disk's first write of it fails with EIO:\n\n")
			fmt.Fprintln(table, "file system\tthe record is\tfirst sync\tsecond sync\tread then\tread after a remount")
		}
		for _, x := range refusals {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", x.FS, x.Writes, x.First, x.Second, x.Before, x.After)
		}
	} else {
		var syncs []powercut.Sync
		if syncs, err = powercut.ShowSyncs(cmd.Context(), o, kinds); len(syncs) > 0 {
			fmt.Fprint(out, "Writes and flushes of the disk while the calls make 4 KiB durable. Other writes are journals and metadata:\n\n")
			fmt.Fprintln(table, "file system\tcalls\tdata\tother\tflushes\tin this order\ttimes")
		}
		for _, x := range syncs {
			fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%s\t%d of %d\n", x.FS, x.Calls, x.Data, x.Other, x.Flushes, x.Order, x.Times, x.Of)
		}
	}
	_ = table.Flush() // a failed write is reported at the end
	switch {
	case cmd.Context().Err() != nil:
		return &cli.Refusal{Code: cli.ExitInterrupted, Err: errors.New("interrupted"), Hint: "all files of the run are removed"}
	case err != nil:
		words := strings.ReplaceAll(err.Error(), "\n", "; ") // of several file systems
		return &cli.Refusal{Code: cli.ExitCannot, Err: errors.New(words), Hint: cli.DiskHint(err)}
	}
	return nil
}

// powerStates is how many states are mounted for each workload and policy, and programStates how many
// of the model the --read of a program reads.
const (
	powerStates   = 120
	programStates = 600
)

func thisProgram(ctx context.Context, args ...string) *exec.Cmd {
	return place.ThisProgram(ctx, append([]string{childCommand, "--"}, args...)...)
}

// whatOf names what a verdict is of.
func whatOf(v *crash.Verdict) string {
	return fmt.Sprintf("%s, %s under %v", strings.TrimSpace(string(v.Level)+" "+v.FS), v.Workload, policyText(v))
}

// report prints what was found, and keeps the failing states if -o names a file.
func (p *proof) report(stdout io.Writer, verdicts []*crash.Verdict) error {
	if p.output != "" {
		if err := cli.WriteOut(stdout, p.output, func(w io.Writer) error { return writeProof(w, verdicts) }); err != nil {
			return err
		}
	}
	say := func(format string, args ...any) {
		// a failed write is reported at the end
		_ = cli.WriteLocal(stdout, func(w io.Writer) error { _, err := fmt.Fprintf(w, format, args...); return err })
	}
	columns := cli.Columns(stdout)
	found := sumOf(verdicts)
	say("%s", summary(verdicts, columns))
	if p.All {
		say("\n%s\n%s", matrix(verdicts), strings.TrimSuffix(page(verdicts, columns), "\n"))
	}
	kept := false
	for i, v := range verdicts {
		what := whatOf(v)
		switch {
		case v.Unknown != "":
			say("\n%s is not known: %s\n", what, cli.OneLine(v.Unknown))
		case v.Verdict == crash.NotKnown && v.Control == "":
			say("\n%s is not known: a control of this level did not behave as it must\n", what)
		case v.Verdict == crash.NotKnown && v.Control != "correct":
			say("\n%s: this liar was not caught\n", what)
		}
		if v.Failure == nil {
			continue
		}
		say("\n%s: %s\n", what, cli.OneLine(v.Failure.Words))
		if v.Failure.Log != nil && p.output != "" {
			more := ""
			if v.Failure.Log.Program != nil {
				more = " --cmd … --read …" // a file says no command that root runs
			}
			// It is copied, so it is one line.
			fmt.Fprintf(stdout, "  holdfast prove --replay %s:%d%s\n", cli.OneLine(p.output), i+1, more)
		}
		switch calls := v.Failure.Calls; {
		case p.All:
			for _, c := range calls {
				say("  %s\n", cli.OneLine(c))
			}
		case len(calls) > 0:
			say("  the %d calls before and behind the failure: --all, or -o FILE\n", len(calls))
		}
		kept = kept || v.Failure.Log != nil
	}
	say("\nseed %d", p.Seed)
	switch {
	case kept && p.output == "":
		say("; -o FILE keeps failing states, for --replay and --look\n")
	case p.All:
		say("\n")
	default:
		say("; a row for each verdict: --all, or -o FILE\n")
	}
	switch {
	case found.broken > 0:
		return &cli.Refusal{Code: cli.ExitNotMet, Err: fmt.Errorf("%s broken", cli.CountText(int64(found.broken), "promise")), Hint: "the lines above name them, and the commands that show them again"}
	case found.unknown > 0:
		words, hint := whyUnknown(verdicts)
		return &cli.Refusal{Code: cli.ExitNotKnown, Err: fmt.Errorf("%s not known: %s", cli.CountText(int64(found.unknown), "verdict"), words), Hint: hint}
	case found.tooBusy():
		average, _ := os.ReadFile("/proc/loadavg") // it is not everywhere
		return found.tooFew(p.Time, load(string(average), runtime.NumCPU()))
	}
	return nil
}

// whyUnknown says why verdicts are not known, and gives a hint.
func whyUnknown(verdicts []*crash.Verdict) (words, hint string) {
	for _, v := range verdicts {
		switch {
		case v.Verdict != crash.NotKnown:
		case v.Unknown != "":
			return "a run could not be judged", "the lines above say why"
		case v.Control == "correct":
			return "a correct control program lost records there too", "the disk or its file system loses synced bytes of any program"
		case v.Control != "":
			return "a faulty control program was not caught", "try more --states or more --time"
		}
	}
	return "this file system loses synced bytes of any program", "choose another file system with --fs"
}

func writeProof(w io.Writer, verdicts []*crash.Verdict) error {
	out := json.NewEncoder(w)
	for _, v := range verdicts {
		if err := out.Encode(v); err != nil {
			return err
		}
	}
	return nil
}

func policyText(v *crash.Verdict) string {
	if v.Workload == "program" || strings.HasPrefix(v.Workload, "cli-") {
		return "its own promise"
	}
	return v.Policy.String()
}

// page returns a table of verdicts for each level, no wider than the columns if it can.
func page(verdicts []*crash.Verdict, columns int) string {
	w := new(strings.Builder)
	shows := map[crash.Level]string{
		crash.Memory:   "Power cuts and process ends, on a simulated disk in memory:",
		crash.PowerCut: "Power cuts of FS, mounted again by the kernel, several at a time:",
		crash.Fault:    "Real processes; a system call fails, is short or is late. A failed sync loses the bytes that it should keep:",
		crash.Hostile:  "Real processes that replace files, while other users exchange the directory or try to read:",
		crash.Kill:     "Real processes, killed. This shows the loss of their memory, and nothing about power cuts:",
	}
	for _, part := range partsOf(verdicts) {
		var all crash.Tally
		var kills, faults int
		var elapsed time.Duration
		rows := [][]string{{"workload", "policy", "states", "acknowledged", "lost", "in flight and gone: most", "mean", "allowed", "torn", "order", "temporaries", "verdict"}}
		title := strings.Replace(shows[part.level], "FS", part.kind, 1)
		if part.kind == powercut.Model {
			title = "Power cuts of posix, a model of the least that POSIX promises. It is no real file system:"
		}
		fmt.Fprintf(w, "%s\n\n", title)
		for _, v := range verdicts {
			if v.Level == part.level && v.FS == part.kind {
				rows = append(rows, row(v))
				all.Add(v.Tally)
				kills += v.Kills
				faults += v.Faults
				elapsed += v.Elapsed
			}
		}
		fmt.Fprintf(w, "%s\n%s, ", tableText(rows, columns), cli.CountText(all.States, "state"))
		switch part.level {
		case crash.Kill:
			fmt.Fprintf(w, "%s, ", cli.CountText(int64(kills), "kill"))
		case crash.Fault:
			fmt.Fprintf(w, "%s, ", cli.CountText(int64(faults), "fault"))
		case crash.Hostile:
			fmt.Fprintf(w, "%s, ", cli.CountText(int64(faults), "attack"))
		case crash.PowerCut:
			if part.kind != powercut.Model {
				fmt.Fprintf(w, "%s unmountable, ", cli.Grouped(all.Unmountable))
			}
		}
		fmt.Fprintf(w, "%s acknowledged\nthe rows took %v in all, some in parallel\n\n", cli.CountText(all.Acknowledged, "record"), elapsed.Round(time.Second/10))
	}
	return w.String()
}

// tooFew is the refusal of a run that most verdicts are missing of. A busy machine can't prove; a short time leaves open what was asked.
func (s sum) tooFew(most time.Duration, load string) *cli.Refusal {
	code, why := cli.ExitCannot, "this machine is too busy to prove much"
	if load == "" {
		code, why = cli.ExitNotKnown, "the time is too short to prove much"
	}
	return &cli.Refusal{Code: code, Err: fmt.Errorf("%s: %d of %s made in %v%s", why, s.all-s.noTime, cli.CountText(int64(s.all), "verdict"), most, load),
		Hint: "give more --time, or choose with --level, --policy and --workload"}
}

// load says how busy a machine has been for a minute, if the system says that in the form of /proc/loadavg and it was busy.
func load(average string, cpus int) string {
	minute, _, ok := strings.Cut(average, " ")
	if number, err := strconv.ParseFloat(minute, 64); !ok || err != nil || number < 1.5*float64(cpus) {
		return ""
	}
	return fmt.Sprintf(", at a load of %s on %s", minute, cli.CountText(int64(cpus), "CPU"))
}

// tableText aligns the rows of [row] below their heads. Where they are too wide it has the columns that
// matter most, and the losses on lines of their own, beside the allowed ones. Where that is too wide it
// also has the workload and the policy on lines of their own.
func tableText(rows [][]string, columns int) string {
	if whole := aligned(rows); widest(whole) <= columns {
		return strings.Join(whole, "\n") + "\n"
	}
	var some, counts [][]string
	for _, r := range rows {
		some = append(some, slices.Concat(r[:5], r[len(r)-1:]))
		counts = append(counts, slices.Concat([]string{""}, r[2:5], r[len(r)-1:]))
	}
	lines := aligned(some)
	apart := widest(lines) > columns
	if apart {
		lines = aligned(counts)
	}
	var b strings.Builder
	for i, r := range rows {
		if apart {
			fmt.Fprintf(&b, "%s, %s\n", r[0], r[1])
		}
		b.WriteString(lines[i] + "\n")
		if i > 0 && r[5] != "0" {
			line := "  in flight and gone: " + r[5] + "; allowed: " + r[7]
			if widest([]string{line}) > columns {
				line = strings.Replace(line, "; ", "\n  ", 1)
			}
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// aligned returns a line for each row.
func aligned(rows [][]string) []string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(t, strings.Join(r, "\t"))
	}
	_ = t.Flush() // to a Builder
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

func widest(lines []string) (most int) {
	for _, line := range lines {
		most = max(most, utf8.RuneCountInString(line))
	}
	return most
}

// row is a verdict in the columns of the page.
func row(v *crash.Verdict) []string {
	t := v.Tally
	verdict := string(v.Verdict)
	switch {
	case v.Control == "correct" && v.Verdict == crash.Held:
		verdict = "control: loses nothing"
	case v.Control != "" && v.Verdict == crash.Held:
		verdict = "control: caught"
	}
	states := max(1, t.States)
	allowed := v.Allowed
	if t.Most.Records > 0 && v.Control == "" && v.Verdict == crash.Held && allowed == "nothing" {
		allowed = "what was not acknowledged"
	}
	temporaries := fmt.Sprint(t.Temporaries)
	if t.Temporaries > 0 {
		temporaries = fmt.Sprintf("%d, then %d", t.Temporaries, t.TemporaryEnd)
	}
	return []string{
		v.Workload, policyText(v),
		cli.Grouped(t.States), cli.Grouped(t.Acknowledged), cli.Grouped(t.Lost), extent(t.Most),
		extent(crash.Extent{Records: t.Sum.Records / states, Bytes: t.Sum.Bytes / states, Age: t.Sum.Age / time.Duration(states)}),
		allowed, cli.Grouped(t.TornTails), cli.Grouped(t.Disorder), temporaries, verdict,
	}
}

// extent shows what was lost in records, bytes and time.
func extent(x crash.Extent) string {
	if x.Records == 0 {
		return "0"
	}
	return fmt.Sprintf("%s, %s, %.1fms", cli.CountText(x.Records, "record"), cli.BytesText(x.Bytes), float64(x.Age)/float64(time.Millisecond))
}

// again judges the failing state of one line of a file.
func (p *proof) again(ctx context.Context, stdout io.Writer) error {
	const hint = "for instance: holdfast prove --replay proof.jsonl:3"
	colon := strings.LastIndexByte(p.replay, ':')
	number, err := strconv.Atoi(p.replay[colon+1:])
	if colon < 1 || err != nil || number < 1 {
		return cli.Misuse(hint, "--replay %s: give a file and a line number, as in FILE:LINE", p.replay)
	}
	f, err := os.Open(p.replay[:colon])
	if errors.Is(err, fs.ErrNotExist) {
		return cli.Misuse(hint, "--replay %s: there is no file %s", p.replay, p.replay[:colon])
	}
	if err != nil {
		return cli.Misuse(hint, "--replay %s: %w", p.replay, cli.Cause(err))
	}
	defer f.Close()
	in := bufio.NewReader(f)
	var line []byte
	for range number {
		if line, err = in.ReadBytes('\n'); err != nil {
			return cli.Misuse(hint, "--replay %s: the file has no line %d", p.replay, number)
		}
	}
	var v crash.Verdict
	if err := json.Unmarshal(line, &v); err != nil {
		return cli.Misuse("the file must come from prove -o", "--replay %s: the line is not a verdict: %w", p.replay, err)
	}
	if v.Failure == nil {
		return cli.Misuse("choose a line that the run named", "--replay %s: the verdict of this line has no failing state", p.replay)
	}
	if l := v.Failure.Log; l != nil && l.Program != nil {
		if p.command == "" || p.read == "" {
			return cli.Misuse("add them: commands in the file are never run", "--replay %s: the state belongs to a program, so --cmd and --read are needed", p.replay)
		}
		l.Program.Command, l.Program.Read = p.command, p.read
	}
	var violation *crash.Violation
	o := crash.Options{Child: thisProgram, Workloads: catalogue.Workloads(), Dir: p.Dir}
	switch inside := p.kernelOf(&v); {
	case inside && p.look != "":
		return cli.Misuse("leave --look out", "--replay %s: the state is mounted in another kernel, where --look can't run a command", p.replay)
	case inside:
		o = p.inside(o, v.Failure.Log.FS)
	}
	switch {
	case v.Failure.Log != nil && v.Failure.Log.FS != "": // of level power, or of a program
		violation, err = powercut.Replay(ctx, o, v.Failure, p.look)
	case p.look != "":
		err = errors.New("--look needs a state of level power: no other can be mounted")
	default:
		violation, err = v.Failure.Replay(o.Workloads)
	}
	if err != nil {
		return cli.Misuse("choose another line", "--replay %s: %w", p.replay, err)
	}
	fmt.Fprintf(stdout, "%s, %s under %v, the state before log entry %d\n", v.Level, cli.OneLine(v.Workload), v.Policy, v.Failure.State.Position)
	if violation == nil {
		fmt.Fprintln(stdout, "this state breaks no promise")
		return nil
	}
	fmt.Fprintf(stdout, "%s: %s\n", violation.Rule, cli.OneLine(v.Failure.Words))
	return &cli.Refusal{Code: cli.ExitNotMet, Err: errors.New("the state breaks its promise again"), Hint: "the file has the log's entries: Failure.Log.Entries"}
}
