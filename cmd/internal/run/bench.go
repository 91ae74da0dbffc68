// Package run has the commands that measure: bench, advise and audit.
package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/compare"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/diy"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/report"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/sweep"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/cmd/internal/place"
	"github.com/holdfast-go/holdfast/internal/volume"
)

// A selection is what is to be measured.
type selection struct {
	policies []holdfast.Policy
	load
	length
	arms
}

// A load is what is written.
type load struct {
	records []holdfast.Size
	writers []int
	rate    float64
	cache   result.Cache
	steady  bool
	room    holdfast.Size
}

// A length is how long a run is, and in which order.
type length struct {
	quick, full bool
	rounds      int
	seed        uint64
	budget      time.Duration
	width       float64
}

// Arms are those of a study.
type arms struct {
	study   study.Study // without a name none is named
	count   int64
	buffers []holdfast.Size
	parts   []study.Part
	diy     string
	source  string
	keep    string // the new directory for the files of the last round
}

// A where is the place to measure.
type where struct {
	dir        string
	allowTmpfs bool
	fs         []volume.Kind // made for the run; nil: it is on that of dir
	kernel     string        // in which to run; empty: the one that runs here
	install    bool          // what fs and kernel need
}

// A keeping is where the results go.
type keeping struct {
	file     string
	all      bool
	plot     bool
	export   report.Format
	fio      string
	baseline compare.Baseline
}

// A benchmark is what the flags of bench say.
type benchmark struct {
	selection
	where
	keeping
	from         string
	resume       string
	list, dryRun bool
	live         bool

	kernels []place.Kernel // that can be started
}

// NewBench is the command bench, which can run in these kernels too.
func NewBench(kernels ...place.Kernel) *cobra.Command {
	b := &benchmark{where: where{dir: "."}, kernels: kernels}
	b.seed = uint64(rand.Uint32())
	cmd := &cobra.Command{
		Use: "bench [study] [flags]",
		Long: `Bench writes files under several policies of buffering, flushing and syncing and
prints what each costs a writer on this disk, how long it takes until all is
durable, CPU time, the latency of a Write, and what a crash takes at worst. A
policy with a period (sync=1s) is judged in long trials at a moderate rate, in
which the period falls due. It ends with the policy to use. It takes less than a
minute, writes only in a new directory of its own, and removes it at the end.

A policy is one line of text, such as buffer=64KiB,flush=100ms,sync=1s:
  buffer  bytes gathered in memory before they go to the kernel (0: none)
  flush   the longest that a byte waits in memory, or how many bytes do (64KiB)
  sync    when bytes are made to reach the disk: never, close (at the end), a
          duration (the longest that a byte waits), a size (how many bytes the
          kernel has that are not on the disk), both (1s/4MiB: whichever comes
          first), group (Write returns when its bytes are on the disk, together
          with others), each (on its own)
or a name: unbuffered, buffered=64KiB, periodic=1s, durable, eachdurable.

With the name of a study it repeats a published experiment instead, and prints
the figures that were published, then yours in the same columns; --list shows
the studies.`,
		Example: `  holdfast bench lines --quick
  holdfast bench --dir . --policy buffer=64KiB,sync=1s --policy sync=group -o results.jsonl`,
		Annotations: cli.Exits(map[int]string{cli.ExitNotMet: "slower than --baseline or --against, or bytes were wrong"}),
		Args:        func(_ *cobra.Command, args []string) error { return b.nameStudy(args) },
		RunE:        func(cmd *cobra.Command, _ []string) error { return b.run(cmd) },
	}
	b.addFlags(cmd)
	return cmd
}

func (b *benchmark) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(cli.Once("dir", &b.dir, cli.Given), "dir", "measure the disk that holds this directory (default: the current one)")
	f.Var(cli.Many("policy", &b.policies, holdfast.ParsePolicy), "policy", "measure this policy; give it again for each further one\n(default: nine usual policies)")
	f.BoolVar(&b.quick, "quick", false, "take about 10 seconds: enough to prove a factor of two")
	f.BoolVar(&b.full, "full", false, "take about 5 minutes, with more record sizes, writers and rounds")
	f.Var(cli.Once("duration", &b.budget, cli.ParseTime(time.Second)), "time", "fit the run into this time, calibration included (default: 50s;\nwith --steady 1m for each policy)")
	f.BoolVar(&b.list, "list", false, "list the studies: what each asks, how long it takes, what it writes")
	f.BoolVar(&b.dryRun, "dry-run", false, "show what would be measured, and write nothing")
	f.VarP(cli.Once("file", &b.file, cli.NewLines("results.jsonl")), "output", "o", "keep all results in this new file (JSON Lines), for holdfast report")
	b.addLoadFlags(cmd)
	f.Var(cli.Once("percent", &b.width, cli.ParseShare("width")), "width", "end when every ratio is known to ± this, or the time is up\n(default: 5%)")
	f.Var(cli.Once("number", &b.rounds, parseNumber("rounds", maxRounds)), "rounds", "run every policy just this many times, however well it is known")
	f.Var(cli.Once("number", &b.seed, cli.ParseSeed), "seed", "repeat the order of an earlier run (default: a new one)")
	f.Var(cli.Once("file", &b.from, cli.Given), "from", "repeat the run of these results: the same policies, records and order")
	f.Var(cli.Once("file", &b.resume, cli.Given), "resume", "go on with the run of these results, which was interrupted or killed")
	f.Var(cli.Once("number", &b.count, parseCount), "count", "records of a study's arms, or bytes where it counts those, such as\n100k (default: the published number)")
	f.Var(cli.List("sizes", &b.buffers, parseBuffer), "buffer", "buffers of a study's arms, such as 4KiB,64KiB")
	f.Var(cli.List("parts", &b.parts, func(text string) (study.Part, error) { return study.Part(text), nil }), "part", "run these parts of a study alone, such as A,C")
	f.Var(cli.Once("file", &b.diy, cli.Given), "diy", "of the study bytes: check the functions in this C file, then time them\nbeside read(2), libc's and ours (see cmd/drill/README.md)")
	f.Var(cli.Once("file", &b.source, cli.Given), "source", "of the study copy: copy this file, not random bytes of the\npublished sizes")
	f.Var(cli.Once("dir", &b.keep, cli.Given), "keep", "keep the files that each arm of a study wrote last in this new\ndirectory, which must be on the same file system as --dir")
	cli.AllFlag(f, &b.all)
	f.BoolVar(&b.live, "live", false, "show each round on the whole terminal as it comes; q stops it, and keeps\nwhat is measured")
	cli.PlotFlag(f, &b.plot)
	cli.InGroup(f, "What is shown", "live", "plot")
	cli.InGroup(f, "Of a study", "list", "count", "buffer", "part", "diy", "source", "keep", "all")
	cli.InGroup(f, "How long, and again", "width", "rounds", "seed", "from", "resume")
	place.FileSystemsFlag(f, &b.fs)
	f.BoolVar(&b.allowTmpfs, "allow-tmpfs", false, "measure a file system in memory too, where nothing is ever durable")
	f.Var(cli.Once("name", &b.kernel, b.parseKernel), "kernel", "run it inside User-Mode Linux (uml), which has more file systems and\nneeds no root; its times compare only with each other")
	f.BoolVar(&b.install, "install", false, "install the Debian packages that --fs and --kernel need (root)")
	cli.InGroup(f, "Where", "fs", "kernel", "install", "allow-tmpfs")
	cli.ExportFlag(f, &b.export, "print this instead of the table")
	cli.FioFlag(f, &b.fio)
	cli.InGroup(f, "For programs", "export", "emit-fio")
	b.baseline.AddFlags(f)
}

func (b *benchmark) addLoadFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Var(cli.List("sizes", &b.records, parseRecord), "record", "sizes of a record, such as 128B,4KiB (default: 128B)")
	f.Var(cli.List("numbers", &b.writers, parseNumber("writers", maxWriters)), "writers", "goroutines that write to one file (default: 1,64)")
	f.Var(cli.Once("number", &b.rate, parseRate), "rate", "records a second that are due, such as 50k: an open loop, where the\nlatency counts from when a record was due (default: as fast as can be)")
	f.Var(cli.Once("state", &b.cache, parseCache), "cache", "append to a file that the page cache holds whole (warm), not at all\n(cold), not at all if that can be had (try-cold), or with all files\ndropped (drop, and remount for the whole file system: root)\n(default: a new file)")
	f.BoolVar(&b.steady, "steady", false, "let each policy write until its throughput is steady, and show how the\nkernel slows writers down when too much waits to be written")
	f.Var(cli.Once("size", &b.room, holdfast.ParseSize), "room", "the largest file of --steady (default: 16GiB, at most half of\nwhat is free)")
	cli.InGroup(f, "The load", "record", "writers", "rate", "cache", "steady", "room")
}

// The bounds of what a study may be given.
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

// parseRate reads records a second: 50k, 200, 1.5M.
func parseRate(text string) (float64, error) {
	number, factor := strings.TrimSuffix(text, "/s"), 1.0
	for suffix, f := range map[string]float64{"k": 1e3, "K": 1e3, "M": 1e6} {
		if rest, ok := strings.CutSuffix(number, suffix); ok {
			number, factor = rest, f
		}
	}
	x, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number of records a second, such as 200, 50k or 1.5M", text)
	}
	if x *= factor; !(x >= minRate && x <= maxRate) {
		return 0, fmt.Errorf("%s records a second can't be measured; use 0.1 to 1000M", text)
	}
	return x, nil
}

// choice is the selection as studies have it.
func (s *selection) choice() study.Choice {
	c := study.Choice{
		Buffers: s.buffers, Count: s.count, Parts: s.parts, DIY: s.diy, Source: s.source,
		Preset: study.Default(), Policies: s.policies, Records: s.records, Writers: s.writers,
		Rounds: s.rounds, Width: s.width, Budget: s.budget, Seed: s.seed,
		Setting: study.Setting{Rate: s.rate, Cache: s.cache, Steady: s.steady, Room: int64(s.room)},
	}
	switch {
	case s.quick:
		c.Preset = study.Quick()
	case s.full:
		c.Preset = study.Full()
	}
	return c
}

// contradiction refuses flags that contradict each other, or can't be measured together.
func (b *benchmark) contradiction(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	for _, part := range b.parts {
		if _, err := study.ParsePart(string(part)); err != nil && b.study.Name != "" {
			return cli.Misuse(cli.SeeHelp(cmd), "--part: %w", err)
		}
	}
	switch {
	case b.study.Name == "" && (b.count > 0 || len(b.buffers) > 0 || len(b.parts) > 0 || b.diy != "" || b.source != "" || b.keep != ""):
		return cli.Misuse("name the study, as in holdfast bench lines --count 1M", "--count, --buffer, --part, --diy, --source and --keep are of a study, and none is named")
	case b.source != "" && cmd.Flags().Changed("count"):
		return cli.Misuse("leave one out", "--source copies a whole file, and --count gives another number of bytes")
	case b.source != "" && b.kernel != "":
		return cli.Misuse("leave one out", "--source is a file here, and --kernel %s runs the study in another kernel", b.kernel)
	case b.keep != "" && (len(b.fs) > 0 || b.kernel != ""):
		return cli.Misuse("leave one out", "--keep is of files in --dir, and --fs and --kernel write on file systems that go with the run")
	case b.kernel != "" && slices.ContainsFunc(b.fs, func(k volume.Kind) bool { return k.Dir != "" }):
		return cli.Misuse("leave it out", "--fs names a directory, and --kernel %s runs the study in another kernel", b.kernel)
	case b.quick && b.full:
		return cli.Misuse("give one of the two, or neither for a run of about 50 seconds", "--quick and --full contradict each other")
	case b.rounds > 0 && b.width > 0:
		return cli.Misuse("give --rounds for just so many, or --width for as many as it takes", "--rounds and --width contradict each other")
	case b.steady && (b.rate > 0 || b.width > 0 || b.quick || b.full):
		return cli.Misuse("--steady goes with --policy, --record, --writers, --rounds, --time and --room", "--steady measures each policy in one long trial, which --rate, --width, --quick and --full contradict")
	case b.baseline.Against != "" && b.baseline.Against == b.baseline.Save:
		return cli.Misuse("give two names, or leave one out", "--baseline and --save-baseline both name %s, which a regression would overwrite", b.baseline.Save)
	case b.plot && b.export != "":
		return cli.Misuse("leave one out", "--plot draws below the table, and --export %s prints none", b.export)
	case b.live && b.baseline.Program != "":
		return cli.Misuse("leave one out", "--live shows one run, and --against runs two builds")
	case b.all && b.export != "":
		return cli.Misuse("leave one out", "--all is of the text, and --export %s has all in any case", b.export)
	case b.fio == "-" && (b.export != "" || b.baseline.Against != ""):
		return cli.Misuse("give a file to --emit-fio", "--emit-fio - writes to stdout, where --export and --baseline write too")
	case b.fio != "" && len(b.fs) > 0:
		return cli.Misuse("leave one out", "--emit-fio has a job for one file system, and --fs makes its own")
	case b.kernel != "" && (b.fio != "" || changed("baseline") || changed("save-baseline")):
		return cli.Misuse("leave it out", "a run with --kernel %s is of two kernels, and is neither a baseline nor a job of fio", b.kernel)
	case b.kernel != "" && b.diy != "":
		return cli.Misuse("leave one out", "--diy compiles a file here, and --kernel %s runs the study in another kernel", b.kernel)
	case b.install && len(b.fs) == 0 && b.kernel == "":
		return cli.Misuse("give one of them, or leave it out", "--install gets what --fs and --kernel need, and neither is given")
	case b.room > 0 && !b.steady:
		return cli.Misuse("give both, or neither", "--room is the largest file of --steady, which is missing")
	case b.steady && b.room > 0 && b.room < place.MinRoom:
		return cli.Misuse("give enough to write for some seconds", "--room %v is too small for a steady state; use %v or more", b.room, place.MinRoom)
	}
	return nil
}

// minSteady is the window of a steady state, five samples of a second, and one
// second to fill what is empty at first.
const minSteady = 6 * time.Second

// tooShort refuses a --time in which no policy can become steady.
func (s *selection) tooShort(cells []result.Cell, fileSystems int) error {
	if !s.steady || s.budget == 0 || cells[0].Longest >= minSteady {
		return nil
	}
	return cli.Misuse(fmt.Sprintf("give at least %v, or fewer policies and rounds", minSteady*time.Duration(len(cells)*max(1, s.rounds)*max(1, fileSystems))),
		"--time %v is too short for %d policies to become steady: each takes %v at the least", s.budget, len(cells), minSteady)
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
			return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("%s holds up to %s in memory, and the control group of this process may have %s", c.Name, cli.BytesText(held), cli.BytesText(limit)),
				Hint: "give smaller buffers or records, fewer writers, or a higher memory limit"}
		}
	}
	return nil
}

func (b *benchmark) run(cmd *cobra.Command) error {
	if b.list {
		return cli.WriteLocal(cmd.OutOrStdout(), listStudies)
	}
	if err := b.notOfStudy(cmd); err != nil {
		return err
	}
	if err := b.openSource(); err != nil {
		return err
	}
	choice := b.choice()
	choice.FileSystems = place.KindNames(b.fs)
	if err := errors.Join(b.contradiction(cmd), cli.IsFree("-o", b.file), cli.IsFree("--emit-fio", b.fio)); err != nil {
		return err
	}
	if b.baseline.Program != "" {
		return b.runAgainst(cmd, choice)
	}
	earlier, err := b.earlier(cmd)
	if err != nil {
		return err
	}
	defer b.baseline.Close()
	if err := b.baseline.Prepare(b.dryRun); err != nil {
		return err
	}
	if err := b.installMissing(cmd); err != nil {
		return err
	}
	again := b.from != ""
	if b.study.Name == "" && b.baseline.Against != "" && b.resume == "" && len(contradicting(cmd, "from")) == 0 {
		again, earlier = true, b.baseline.Earlier
	}
	return b.runOf(cmd, choice, earlier, again)
}

// runOf runs what is chosen: anew, or as an earlier run was planned, or what is left of one.
func (b *benchmark) runOf(cmd *cobra.Command, choice study.Choice, earlier result.Run, again bool) error {
	wish := place.Wish{Dir: b.dir, Kinds: b.fs, Study: b.study}
	if again || b.resume != "" {
		wish.Earlier = &earlier.Header
	}
	order, err := b.order(cmd.Context(), wish, &choice)
	if err != nil {
		return err
	}
	cells, plan := wish.Outline(choice)
	seed := choice.Seed
	if earlier.Header.SchemaVersion > 0 {
		cells, plan, seed = earlier.Header.Cells, earlier.Header.Plan, earlier.Header.Seed
	}
	if err := errors.Join(b.checkStudy(cmd, choice), b.tooShort(cells, len(b.fs)), checkMemory(cells)); err != nil {
		return err
	}
	if b.diy != "" {
		if err := b.checkDIY(cmd); err != nil {
			return err
		}
	}
	if b.dryRun {
		return cli.WriteLocal(cmd.OutOrStdout(), func(w io.Writer) error {
			return b.tellPlan(w, cells, plan, seed, order)
		})
	}
	if b.resume != "" {
		if err := clean(cmd.ErrOrStderr(), b.resume, earlier); err != nil {
			return err
		}
	}
	return b.onGround(cmd, order, choice, func(ctx context.Context, s *session, c study.Choice) error {
		switch {
		case b.resume != "":
			return s.resume(ctx, earlier)
		case again:
			return s.repeat(ctx, earlier.Header)
		case b.study.Name != "":
			return s.study(ctx, b.study, c)
		}
		return s.measure(ctx, sweep.Policy(), c)
	})
}

// openSource makes the whole file of --source what is copied. A contradicting --count is refused later.
func (a *arms) openSource() (err error) {
	if a.source == "" || a.count > 0 {
		return nil
	}
	if a.source, err = filepath.Abs(a.source); err != nil {
		return err
	}
	info, err := os.Stat(a.source)
	switch {
	case err != nil:
		return cli.Misuse("give a file that can be read", "--source: %w", err)
	case !info.Mode().IsRegular() || info.Size() == 0:
		return cli.Misuse("holdfast gen makes one", "--source %s is no file with bytes", cli.OneLine(a.source))
	}
	a.count = info.Size()
	return nil
}

// checkDIY refuses a student's file that does not compile or whose functions are wrong: a
// time counts only if the bytes are right.
func (a *arms) checkDIY(cmd *cobra.Command) error {
	if why := diy.Missing(); why != "" {
		return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("--diy: %s", why)}
	}
	found, err := diy.Check(cmd.Context(), a.diy)
	var refused *diy.CompileError
	if errors.As(err, &refused) {
		_, err = fmt.Fprintln(cmd.ErrOrStderr(), refused.Text)
		return errors.Join(&cli.Refusal{Code: cli.ExitNotMet, Err: fmt.Errorf("%s does not compile", cli.OneLine(a.diy))}, err)
	}
	if err != nil {
		return cli.Misuse("cmd/drill/README.md has the steps", "--diy: %w", err)
	}
	if _, err := fmt.Fprintf(cmd.ErrOrStderr(), "%s: %v", cli.OneLine(a.diy), found); err != nil || len(found.Faults) == 0 {
		return err
	}
	return &cli.Refusal{Code: cli.ExitNotMet, Err: fmt.Errorf("%s is wrong in %d cases, and a time counts only if the bytes are right", cli.OneLine(a.diy), len(found.Faults))}
}

// order finds out what can be had of a wish. It looks in this kernel, or in one that is started
// because a flag or the earlier run asks for it.
func (b *benchmark) order(ctx context.Context, w place.Wish, c *study.Choice) (place.Order, error) {
	for _, k := range b.kernels {
		if k.Name() == b.kernel || w.Earlier != nil && k.Had(*w.Earlier) {
			return k.Order(ctx, w, c)
		}
	}
	return place.OrderHere(w, c)
}

// parseKernel knows the kernels that can be started.
func (b *benchmark) parseKernel(text string) (string, error) {
	var names []string
	for _, k := range b.kernels {
		if k.Name() == text {
			return text, nil
		}
		names = append(names, k.Name())
	}
	return "", fmt.Errorf("%q is no kernel that can be started; use %s, or leave the flag out for the one that runs", text, strings.Join(names, ", "))
}

// onGround runs a session on a directory of its own, in the ordered place. It prints what
// was measured, also if it failed.
func (b *benchmark) onGround(cmd *cobra.Command, o place.Order, c study.Choice, measure func(context.Context, *session, study.Choice) error) (err error) {
	ground, err := trial.OpenWorkDir(b.dir, b.allowTmpfs)
	if err != nil {
		return place.CannotOpen(b.dir, err)
	}
	defer func() { err = place.CloseWorkDir(ground, err) }()
	if b.keep != "" {
		if err := os.Mkdir(b.keep, 0o777); err != nil {
			return cli.Misuse("give a new directory on the file system of --dir", "--keep: %w", err)
		}
		ground.Kept = b.keep
	}
	ctx, stderr := cmd.Context(), cmd.ErrOrStderr()
	var f *following
	if b.live {
		if ctx, f, err = follow(cmd); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.close()) }() // also when it panics
		stderr = f
	}
	s := newSession(stderr, ground, b.dir, b.file)
	if f != nil {
		s.live, s.show = f, cli.NewProgress(f, true)
	}
	if text := b.untimedText(); text != "" {
		s.say("%s", text)
	}
	volumes, err := o.Make(ctx, s.host())
	defer func() { err = volumes.Close(err) }()
	if err == nil {
		err = o.Measure(ctx, s.host(), volumes, c, func(p place.Place, c study.Choice) error {
			s.place = p
			return measure(ctx, s, c)
		})
	}
	if f != nil {
		err = errors.Join(err, f.close())
	}
	var saveErr, printErr error
	if err == nil && b.baseline.Save != "" {
		saveErr = b.baseline.Keep(s.run)
	}
	if s.run.Rounds() > 0 {
		printErr = b.print(cmd.OutOrStdout(), s.run)
		b.offerPage(s)
	}
	return cmp.Or(s.refuse(err), saveErr, printErr)
}

// offerPage says how a page with pictures is made of the run.
func (k *keeping) offerPage(s *session) {
	if k.file == "" {
		s.say("-o results.jsonl would keep the results, and holdfast report results.jsonl -o report.html makes a page with pictures of them")
		return
	}
	s.say("a page with pictures: holdfast report %s -o %s", cli.OneLine(k.file), cli.OneLine(strings.TrimSuffix(k.file, filepath.Ext(k.file))+".html"))
}

// print writes the table of the run, or the export instead, and how it compares
// with the baseline. It returns the refusal of a regression.
func (k *keeping) print(w io.Writer, run result.Run) error {
	if err := cli.EmitFio(w, k.fio, run); err != nil || k.fio == "-" {
		return err
	}
	if k.baseline.Against == "" {
		err := cli.WriteReport(w, run, k.export, false, k.all)
		if err == nil && k.plot {
			err = cli.WriteCurves(w, run)
		}
		return err
	}
	if k.export != "" {
		return k.baseline.Show(w, run, k.export)
	}
	if err := errors.Join(cli.WriteText(w, run, k.all), newline(w)); err != nil {
		return err
	}
	return k.baseline.Show(w, run, "")
}

func newline(w io.Writer) error {
	_, err := io.WriteString(w, "\n")
	return err
}

func parseCache(text string) (result.Cache, error) {
	if slices.Contains(CacheStates, result.Cache(text)) {
		return result.Cache(text), nil
	}
	return "", fmt.Errorf("%q is no state of the page cache; use new, warm, cold, try-cold, drop or remount", text)
}

// repeat runs the plan of an earlier run again: the same cells with the same
// records, in the same order.
func (s *session) repeat(ctx context.Context, h result.Header) error {
	matrix, err := s.again(ctx, h, true)
	if err != nil {
		return err
	}
	if err := s.place.Need(h.Plan); err != nil {
		return err
	}
	s.say("repeating a run in %s on %s", s.ground.Dir(), s.place.Names())
	again := s.header(matrix, h.Plan)
	again.Settings, again.Missing = h.Settings, h.Missing
	return s.begin(ctx, again, matrix)
}

// checkStudy refuses a choice that leaves nothing to run: by its own flags, or because
// this build or system has no arm at all.
func (a *arms) checkStudy(cmd *cobra.Command, c study.Choice) error {
	if a.study.Name == "" {
		return nil
	}
	err := a.study.Check(c)
	if err != nil && slices.ContainsFunc(a.study.Takes, cmd.Flags().Changed) {
		return cli.Misuse("the study's own flags decide what its arms do; leave them out for the published numbers", "%w", err)
	}
	return err
}
