package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/machine"
	"github.com/holdfast-go/holdfast/internal/report"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/study"
	"github.com/holdfast-go/holdfast/internal/trial"
	"github.com/holdfast-go/holdfast/internal/volume"
)

// A benchmark is what the flags of bench say.
type benchmark struct {
	dir         string
	policies    []holdfast.Policy
	quick, full bool
	rounds      int
	seed        uint64
	output      string
	records     []holdfast.Size
	writers     []int
	budget      time.Duration
	width       float64
	rate        float64
	cache       result.Cache
	steady      bool
	room        holdfast.Size
	from        string
	resume      string
	dryRun      bool
	allowTmpfs  bool
	export      report.Format
	fio         string
	baseline    baseline
	list        bool
	count       int64
	buffers     []holdfast.Size
	parts       []study.Part
	kernel      string        // in which to run; empty: the one that runs here
	install     bool          // what fs and kernel need
	fs          []volume.Kind // made for the run; nil: it is on that of dir
	named       string        // the study that is named, or empty
	study       study.Study   // of that name
}

func newBench() *cobra.Command {
	b := &benchmark{dir: ".", seed: uint64(rand.Uint32())}
	cmd := &cobra.Command{
		Use:   "bench [study] [flags]",
		Short: "measure what each policy costs on this disk, or repeat a published experiment",
		Long: `Bench writes files under several policies of buffering, flushing and syncing and
prints what each costs on this disk: records a second, CPU time, system calls,
the latency of a Write, and what a crash takes at worst. It ends with the policy
to use. It takes less than a minute, writes only in a new folder of its own, and
removes that folder at the end.

A policy is one line of text, such as buffer=64KiB,flush=100ms,sync=1s:
  buffer  bytes gathered in memory before they go to the kernel (0: none)
  flush   the longest that a byte waits in memory
  sync    when bytes are made to reach the disk: never, close (at the end), a
          duration (the longest that a byte waits), group (Write returns when
          its bytes are on the disk, together with others), each (on its own)

With the name of a study it repeats a published experiment instead, and prints
the figures that were published, then yours in the same columns; --list shows
the studies.`,
		Example: `  holdfast bench lines --quick
  holdfast bench --dir . --policy buffer=64KiB,sync=1s --policy sync=group -o results.jsonl`,
		Args: func(_ *cobra.Command, args []string) error { return b.nameStudy(args) },
		RunE: func(cmd *cobra.Command, _ []string) error { return b.run(cmd) },
	}
	b.addFlags(cmd)
	return cmd
}

func (b *benchmark) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(once("folder", &b.dir, given), "dir", "measure the disk that holds this folder (default: the current folder)")
	f.Var(many("policy", &b.policies, holdfast.ParsePolicy), "policy", "measure this policy; give it again for each further one\n(default: eight usual policies)")
	f.BoolVar(&b.quick, "quick", false, "take about 10 seconds; three rounds are too few to prove a difference")
	f.BoolVar(&b.full, "full", false, "take about 5 minutes, with more record sizes, writers and rounds")
	f.DurationVar(&b.budget, "time", 0, "fit the run into this time, calibration included (default: 45s;\nwith --steady 1m for each policy)")
	f.BoolVar(&b.list, "list", false, "list the studies: what each asks, how long it takes, what it writes")
	f.BoolVar(&b.dryRun, "dry-run", false, "show what would be measured, and write nothing")
	f.VarP(once("file", &b.output, newFile), "output", "o", "keep all results in this new file (JSON Lines), for holdfast report")
	b.addLoadFlags(cmd)
	f.Var(once("percent", &b.width, parseShare("width")), "width", "end when every ratio is known to ± this, or the time is up\n(default: 5%)")
	f.Var(once("number", &b.rounds, parseNumber("rounds", maxRounds)), "rounds", "run every policy just this many times, however well it is known")
	f.Var(once("number", &b.seed, parseSeed), "seed", "repeat the order of an earlier run (default: a new one)")
	f.Var(once("file", &b.from, given), "from", "repeat the run of these results: the same policies, records and order")
	f.Var(once("file", &b.resume, given), "resume", "go on with the run of these results, which was interrupted or killed")
	f.Var(once("number", &b.count, parseCount), "count", "records of a study's arms, or bytes where it counts those, such as\n100k (default: the published number)")
	f.Var(many("size", &b.buffers, parseBuffer), "buffer", "a buffer of a study's arms; may be given again")
	f.Var(list("parts", &b.parts, study.ParsePart), "part", "run these parts of a study alone, such as A,C")
	inGroup(f, "Of a study", "list", "count", "buffer", "part")
	inGroup(f, "How long, and again", "width", "rounds", "seed", "from", "resume")
	fileSystemsFlag(f, &b.fs)
	f.BoolVar(&b.allowTmpfs, "allow-tmpfs", false, "measure a file system in memory too, where nothing is ever durable")
	f.Var(once("name", &b.kernel, parseKernel), "kernel", "run it inside User-Mode Linux (uml), which has more file systems and\nneeds no root; its times compare only with each other")
	f.BoolVar(&b.install, "install", false, "install the Debian packages that --fs and --kernel need (root)")
	inGroup(f, "Where", "fs", "kernel", "install", "allow-tmpfs")
	exportFlag(f, &b.export, "print this instead of the table")
	fioFlag(f, &b.fio)
	inGroup(f, "For programs", "export", "emit-fio")
	b.baseline.addFlags(f)
}

func (b *benchmark) addLoadFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Var(many("size", &b.records, parseRecord), "record", "size of a record; may be given again (default: 128B)")
	f.Var(many("number", &b.writers, parseNumber("writers", maxWriters)), "writers", "goroutines that write to one file; may be given again\n(default: 1 and 64)")
	f.Var(once("number", &b.rate, parseRate), "rate", "records a second that are due, such as 50k: an open loop, where the\nlatency counts from when a record was due (default: as fast as can be)")
	f.Var(once("state", &b.cache, parseCache), "cache", "append to a file of which the page cache holds all (warm), nothing\n(cold), nothing if that can be had (try-cold), or nothing of any\nfile (drop, and remount for the whole file system: root)\n(default: a new file)")
	f.BoolVar(&b.steady, "steady", false, "let each policy write until its throughput is steady, and show how the\nkernel slows writers down when too much waits to be written")
	f.Var(once("size", &b.room, holdfast.ParseSize), "room", "the largest file of --steady (default: 16GiB, at most half of\nwhat is free)")
	inGroup(f, "The load", "record", "writers", "rate", "cache", "steady", "room")
}

// given refuses an empty text.
func given(text string) (string, error) {
	if text == "" {
		return "", errors.New("a name is missing")
	}
	return text, nil
}

// newFile wants the name of a file that is to be made. For programs - is a stream.
func newFile(text string) (string, error) {
	if text == "-" {
		return "", errors.New("- is no file; leave the flag out for standard output, or name a file (./- for one of that name)")
	}
	return given(text)
}

// choice checks the flags against each other.
func (b *benchmark) choice(cmd *cobra.Command) (study.Choice, error) {
	c := study.Choice{
		Buffers: b.buffers, Count: b.count, Parts: b.parts,
		Preset: study.Default(), Policies: b.policies, Records: b.records, Writers: b.writers,
		Rounds: b.rounds, Width: b.width, Budget: b.budget, Seed: b.seed,
		Setting:     study.Setting{Rate: b.rate, Cache: b.cache, Steady: b.steady, Room: int64(b.room)},
		FileSystems: kindNames(b.fs),
	}
	switch {
	case b.quick:
		c.Preset = study.Quick()
	case b.full:
		c.Preset = study.Full()
	}
	return c, errors.Join(b.contradiction(cmd), isFree("-o", b.output), isFree("--emit-fio", b.fio))
}

// contradiction refuses flags that say two things.
func (b *benchmark) contradiction(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	switch {
	case b.named == "" && (b.count > 0 || len(b.buffers) > 0 || len(b.parts) > 0):
		return misuse("name the study, as in holdfast bench lines --count 1M", "--count, --buffer and --part are of a study, and none is named")
	case b.quick && b.full:
		return misuse("give one of the two, or neither for a run of about 45 seconds", "--quick and --full contradict each other")
	case changed("time") && b.budget < time.Second:
		return misuse("give at least 1s", "--time %v is too short to measure anything", b.budget)
	case b.rounds > 0 && b.width > 0:
		return misuse("give --rounds for just so many, or --width for as many as it takes", "--rounds and --width contradict each other")
	case b.steady && (b.rate > 0 || b.width > 0 || b.quick || b.full):
		return misuse("--steady goes with --policy, --record, --writers, --rounds, --time and --room", "--steady measures each policy in one long trial, which --rate, --width, --quick and --full contradict")
	case b.baseline.against != "" && b.baseline.against == b.baseline.save:
		return misuse("give two names, or leave one out", "--baseline and --save-baseline both name %s, which a regression would overwrite", b.baseline.save)
	case b.fio == "-" && (b.export != "" || b.baseline.against != ""):
		return misuse("give a file to --emit-fio", "--emit-fio - writes to stdout, where --export and --baseline write too")
	case b.fio != "" && len(b.fs) > 0:
		return misuse("leave one out", "--emit-fio has a job for one file system, and --fs makes its own")
	case b.kernel != "" && (b.fio != "" || changed("baseline") || changed("save-baseline")):
		return misuse("leave it out", "a run with --kernel %s is of two kernels, and is neither a baseline nor a job of fio", b.kernel)
	case b.install && len(b.fs) == 0 && b.kernel == "":
		return misuse("give one of them, or leave it out", "--install gets what --fs and --kernel need, and neither is given")
	case b.room > 0 && !b.steady:
		return misuse("give both, or neither", "--room is the largest file of --steady, which is missing")
	case b.steady && b.room > 0 && b.room < minRoom:
		return misuse("give enough to write for some seconds", "--room %v is too small for a steady state; use %v or more", b.room, minRoom)
	}
	return nil
}

// minRoom is less than what any disk takes in the window of a steady state.
const minRoom = 64 * holdfast.MiB

// minSteady is the window of a steady state, five samples of a second, and one
// second to fill what is empty at first.
const minSteady = 6 * time.Second

// tooShort refuses a --time in which no policy can become steady.
func (b *benchmark) tooShort(cells []result.Cell) error {
	if !b.steady || b.budget == 0 || cells[0].Longest >= minSteady {
		return nil
	}
	return misuse(fmt.Sprintf("give at least %v, or fewer policies and rounds", minSteady*time.Duration(len(cells)*max(1, b.rounds)*max(1, len(b.fs)))),
		"--time %v is too short for %d policies to become steady: each takes %v at the least", b.budget, len(cells), minSteady)
}

// checkMemory refuses cells that hold more in memory than the control groups of
// this process let it have.
func checkMemory(cells []result.Cell) error {
	limit, ok := machine.MemoryLimit()
	if !ok {
		return nil
	}
	return fitsMemory(cells, limit)
}

func fitsMemory(cells []result.Cell, limit int64) error {
	for _, c := range cells {
		held := trial.Append{Policy: c.Policy, RecordBytes: c.RecordBytes, Writers: c.Writers}.MemoryBytes()
		if held >= limit {
			return &refusal{exitCannot, fmt.Errorf("%s holds up to %s in memory, and the control group of this process may have %s", c.Name, bytesText(held), bytesText(limit)),
				"give smaller buffers or records, fewer writers, or a higher memory limit"}
		}
	}
	return nil
}

// isFree refuses the file that a flag names if it exists, or can't be made. An
// empty name is none, and - is stdout.
func isFree(flag, path string) error {
	if path == "" || path == "-" && flag != "-o" {
		return nil
	}
	if info, err := os.Lstat(path); err == nil {
		return misuse("choose another name, or remove it first", "%s %s: the %s exists, and nothing is overwritten", flag, path, placeText(info))
	}
	folder := filepath.Dir(path)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return misuse("make the folder first, or choose another one", "%s %s: there is no folder %s", flag, path, folder)
	}
	return nil
}

// placeText is what is in the place of something new.
func placeText(info fs.FileInfo) string {
	if info.IsDir() {
		return "folder"
	}
	return "file"
}

func (b *benchmark) run(cmd *cobra.Command) error {
	if b.list {
		return listStudies(cmd.OutOrStdout())
	}
	if err := b.notOfStudy(cmd); err != nil {
		return err
	}
	choice, err := b.choice(cmd)
	if err != nil {
		return err
	}
	earlier, err := b.earlier(cmd)
	if err != nil {
		return err
	}
	if err := b.baseline.prepare(); err != nil {
		return err
	}
	if err := b.installMissing(cmd); err != nil {
		return err
	}
	again := b.from != ""
	if b.named == "" && b.baseline.against != "" && b.resume == "" && len(contradicting(cmd, "from")) == 0 {
		again, earlier = true, b.baseline.earlier
	}
	if b.kernel != "" || hasInside(earlier.Header) && (again || b.resume != "") {
		return b.inUserMode(cmd, choice, earlier, again)
	}
	return b.runHere(cmd, choice, earlier, again)
}

// runHere runs what is chosen in the kernel that is here: anew, or as an earlier run was
// planned, or what is left of one.
func (b *benchmark) runHere(cmd *cobra.Command, choice study.Choice, earlier result.Run, again bool) error {
	orders, err := b.order(&choice, earlier.Header, again || b.resume != "")
	if err != nil {
		return err
	}
	cells, plan := b.outline(choice)
	seed := choice.Seed
	if earlier.Header.SchemaVersion > 0 {
		cells, plan, seed = earlier.Header.Cells, earlier.Header.Plan, earlier.Header.Seed
	}
	if err := errors.Join(b.checkStudy(cmd, choice), b.tooShort(cells), checkMemory(cells)); err != nil {
		return err
	}
	if b.dryRun {
		return b.tellPlan(cmd.OutOrStdout(), cells, plan, seed, orders)
	}
	if err := b.cleanResumed(cmd, earlier); err != nil {
		return err
	}
	return b.onGround(cmd, orders, func(ctx context.Context, s *session) error { return b.measured(ctx, s, choice, earlier, again) })
}

// cleanResumed removes what the run has left that --resume goes on with.
func (b *benchmark) cleanResumed(cmd *cobra.Command, earlier result.Run) error {
	if b.resume == "" {
		return nil
	}
	return clean(cmd.ErrOrStderr(), b.resume, earlier)
}

// measured runs a session: what is chosen, or an earlier run again, or what is left of it.
func (b *benchmark) measured(ctx context.Context, s *session, choice study.Choice, earlier result.Run, again bool) error {
	switch {
	case b.resume != "":
		return s.resume(ctx, earlier)
	case again:
		return s.repeat(ctx, earlier.Header)
	case b.named != "":
		return s.study(ctx, b.study, choice)
	}
	return s.measure(ctx, study.Policy(), choice)
}

// onGround runs a session on a folder of its own, with the file systems that it has
// ordered, and tells what it has measured, also if it failed.
func (b *benchmark) onGround(cmd *cobra.Command, o orders, measure func(context.Context, *session) error) (err error) {
	ground, err := trial.OpenGround(b.dir, b.allowTmpfs)
	if err != nil {
		return b.cannotOpen(err)
	}
	defer func() { err = closeGround(ground, err) }()
	s := newSession(cmd.ErrOrStderr(), ground, b.dir, b.output)
	if text := b.untimedText(); text != "" {
		s.say("%s", text)
	}
	s.made, err = o.make(cmd.Context(), s)
	defer func() { err = s.made.close(err) }()
	if err == nil {
		err = measure(cmd.Context(), s)
	}
	var saveErr, printErr error
	if err == nil && b.baseline.save != "" {
		saveErr = saveBaseline(b.baseline.folder, b.baseline.save, s.run)
	}
	if s.run.Rounds() > 0 {
		printErr = b.print(cmd.OutOrStdout(), s.run)
	}
	return cmp.Or(s.refuse(err), saveErr, printErr)
}

// closeGround removes the ground, and adds to the error of the run that it could
// not be.
func closeGround(ground *trial.Ground, err error) error {
	closeErr := ground.Close()
	switch {
	case closeErr == nil:
		return err
	case err == nil:
		return &refusal{exitCannot, closeErr, "remove " + ground.Dir() + " by hand"}
	}
	return errors.Join(err, fmt.Errorf("%w; remove %s by hand", closeErr, ground.Dir()))
}

// print writes the table of the run, or what is exported instead, and how it
// compares with the baseline; it returns the refusal of a regression.
func (b *benchmark) print(w io.Writer, run result.Run) error {
	if err := emitFio(w, b.fio, run); err != nil || b.fio == "-" {
		return err
	}
	if b.baseline.against == "" {
		return writeReport(w, run, b.export, false)
	}
	if b.export != "" {
		return b.baseline.show(w, run, b.export)
	}
	if err := errors.Join(report.Text(w, run), newline(w)); err != nil {
		return err
	}
	return b.baseline.show(w, run, "")
}

func newline(w io.Writer) error {
	_, err := io.WriteString(w, "\n")
	return err
}

// cannotOpen says why nothing can be measured in the folder given.
func (b *benchmark) cannotOpen(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return misuse("give an existing folder on the disk to measure", "--dir %s: there is no such folder", b.dir)
	case errors.Is(err, trial.ErrNotFolder):
		return misuse("give the folder that it is in", "--dir: %w", err)
	case errors.Is(err, trial.ErrMemoryOnly):
		return &refusal{exitCannot, fmt.Errorf("--dir: %w", err), "give a folder on a disk, or --allow-tmpfs to measure memory alone"}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &refusal{exitCannot, err, hintRoom}
	}
	return &refusal{exitCannot, fmt.Errorf("--dir: can't make a folder in %s: %w", b.dir, cause(err)), "give a folder that you may write to"}
}

const hintRoom = "free some space, or give a folder on another disk to --dir"

// cause takes the name of a temporary file off an error.
func cause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
