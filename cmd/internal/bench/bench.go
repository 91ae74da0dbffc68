// Package bench is the command bench: it measures what each policy costs on this disk, repeats or
// finishes an earlier run, and runs another build alternately with this one.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/compare"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/sweep"
	"github.com/holdfast-go/holdfast/cmd/internal/place"
	"github.com/holdfast-go/holdfast/cmd/internal/run"
)

// A benchmark holds the values of the flags of bench.
type benchmark struct {
	run.Flags
	load
	policies []holdfast.Policy
	width    float64
	from     string
	resume   string
	fio      string
	all      bool
	baseline compare.Baseline

	studies study.List // of which an earlier run may be
}

// A load describes the records of a run.
type load struct {
	records []holdfast.Size
	writers []int
	rate    float64
	cache   result.Cache
	steady  bool
	room    holdfast.Size
}

// New is the command bench, which can run in these kernels too. It repeats runs of these studies.
func New(studies study.List, kernels ...place.Kernel) *cobra.Command {
	b := &benchmark{Flags: run.NewFlags(kernels), studies: studies}
	cmd := &cobra.Command{
		Use: "bench [flags]",
		Long: `Bench writes files under several policies of buffering, flushing and syncing. For
each policy it prints the loss at a power cut and the cost on this disk. Then it
names the policy to use, and how certain that is; --all prints the rest. A policy
with a period (sync=1s) is judged in trials at a moderate rate, in which the period
falls due. Bench takes less than a minute, writes only in a new directory of its
own, and removes it at the end.

A policy is one line of text, such as buffer=64KiB,flush=100ms,sync=1s:
  buffer  bytes gathered in memory before they go to the kernel (0: none)
  flush   how long a byte may wait in memory, or how many bytes may (64KiB)
  sync    when bytes are synced to the disk: never, close (at the end), a duration
          (how long a byte may wait), a size (how many bytes the kernel may hold
          unsynced), both (1s/4MiB: whichever comes first), group (Write returns
          when its bytes are on the disk, with one sync for several Writes), each
          (the same, with a sync for every Write)
or a name: unbuffered, buffered=64KiB, periodic=1s, durable, eachdurable.`,
		Example: `  holdfast bench --quick
  holdfast bench --dir . --policy buffer=64KiB,sync=1s --policy sync=group -o results.jsonl`,
		Annotations: cli.Exits(map[int]string{cli.ExitNotMet: "slower than --baseline or --against, or a file had wrong bytes"}),
		Args:        b.args,
		RunE:        func(cmd *cobra.Command, _ []string) error { return b.run(cmd) },
	}
	b.addFlags(cmd)
	return cmd
}

// args refuses all arguments. The name of a study belongs to another command.
func (b *benchmark) args(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if _, ok := b.studies.Find(args[0]); ok {
		return cli.Misuse("holdfast study "+args[0]+" repeats the experiment", "bench measures policies, and %s is a study", args[0])
	}
	if strings.HasSuffix(args[0], ".jsonl") {
		return cli.Misuse("holdfast bench -o "+args[0]+" keeps results in it, and holdfast report "+args[0]+" shows them", "bench takes no arguments, but %q was given", args[0])
	}
	return cli.Misuse("holdfast bench --help shows the flags", "bench takes no arguments, but %q was given", args[0])
}

func (b *benchmark) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	b.DirFlag(f)
	f.Var(cli.Many("policy", &b.policies, cli.ParsePolicy), "policy", "measure this policy; repeat the flag for several\n(default: nine usual policies)")
	f.BoolVar(&b.Quick, "quick", false, "take about 15 seconds: enough for the same advice, and to prove a\nfactor of two")
	f.BoolVar(&b.Full, "full", false, "take about 5 minutes, with more record sizes, writers and rounds")
	f.Var(cli.Once("duration", &b.Budget, cli.ParseTime(time.Second)), "time", "take at most this time, calibration included (default: 45s;\nwith --steady 1m for each policy)")
	b.PlanFlags(f)
	b.addLoadFlags(cmd)
	f.Var(cli.Once("percent", &b.width, cli.ParseShare("width")), "width", "end when every ratio is known to ± this, or the time is up\n(default: when each time is known to 10% and each comparison is decided)")
	b.RoundsFlags(f)
	f.Var(cli.Once("file", &b.from, cli.Given), "from", "repeat the run of these results: the same policies, records and order")
	f.Var(cli.Once("file", &b.resume, cli.Given), "resume", "continue the interrupted or killed run of these results")
	cli.InGroup(f, "Duration and repetition", "width", "rounds", "seed", "from", "resume")
	cli.AllFlag(f, &b.all)
	cli.PlotFlag(f, &b.Plot)
	cli.InGroup(f, "Output", "all", "plot")
	b.PlacesFlags(f)
	f.Var(cli.Once("name", &b.Host, cli.Given), "host", "the name of this machine in the results (default: its host name;\na container has one of its own)")
	cli.InGroup(f, "Where", "host")
	cli.ExportFlag(f, &b.Export, "print this format instead of the table")
	cli.FioFlag(f, &b.fio)
	cli.InGroup(f, "For programs", "export", "emit-fio")
	b.baseline.AddFlags(f)
}

func (b *benchmark) addLoadFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Var(cli.List("sizes", &b.records, run.ParseRecord), "record", "sizes of a record, such as 128B,4KiB (default: 128B)")
	f.Var(cli.List("numbers", &b.writers, run.ParseWriters), "writers", "goroutines that write to one file (default: 1,64)")
	f.Var(cli.Once("number", &b.rate, parseRate), "rate", "write this number of records a second, such as 50k or 50k/s, with\nlatencies since a record was due: an open loop (default: as fast as\npossible)")
	f.Var(cli.Once("state", &b.cache, run.ParseCache), "cache", run.CacheUsage)
	f.BoolVar(&b.steady, "steady", false, "let each policy write until its throughput is steady, and show how the\nkernel slows writers down when it holds too many unwritten bytes")
	f.Var(cli.Once("size", &b.room, parseRoom), "room", "the largest file of --steady (default: 16GiB, at most half of\nwhat is free)")
	cli.InGroup(f, "The load", "record", "writers", "rate", "cache", "steady", "room")
}

// parseRoom reads the size of the largest file of a steady trial.
func parseRoom(text string) (holdfast.Size, error) {
	size, err := holdfast.ParseSize(text)
	if err == nil && size < place.MinRoom {
		err = fmt.Errorf("%v is too small for a steady state; use %v or more", size, place.MinRoom)
	}
	return size, err
}

// parseRate reads records a second: 200, 50k, 1.5M, and the same with the /s of a need.
func parseRate(text string) (float64, error) {
	number, factor := strings.TrimSuffix(text, "/s"), 1.0
	switch at := max(0, len(number)-1); number[at:] {
	case "k", "K":
		number, factor = number[:at], 1e3
	case "M":
		number, factor = number[:at], 1e6
	}
	x, err := strconv.ParseFloat(number, 64)
	if strings.HasSuffix(number, "B") {
		return 0, fmt.Errorf("%q is a rate of bytes; give records a second, such as 50k, and their size with --record", text)
	}
	if err != nil || strings.ContainsAny(number, "xXpP_") {
		return 0, fmt.Errorf("%q is not a number of records a second, such as 200, 50k or 1.5M", text)
	}
	if x *= factor; !(x >= run.MinRate && x <= run.MaxRate) {
		return 0, fmt.Errorf("%s records a second can't be measured; use 0.1 to 1000M", text)
	}
	return x, nil
}

// choice returns the selection that the flags make.
func (b *benchmark) choice() study.Choice {
	return b.Choose(study.Choice{
		Policies: b.policies, Records: b.records, Writers: b.writers, Width: b.width,
		Setting: study.Setting{Rate: b.rate, Cache: b.cache, Steady: b.steady, Room: int64(b.room)},
	})
}

// check refuses flags that contradict each other, or can't be measured together.
func (b *benchmark) check(cmd *cobra.Command) error {
	switch {
	case b.room > 0 && !b.steady:
		return cli.Misuse("add --steady, or leave --room out", "--room needs --steady: it is the largest file of a steady trial")
	case cmd.Flags().Changed("threshold") && b.baseline.Against == "" && b.baseline.Program == "":
		return cli.Misuse("add --baseline or --against, or leave --threshold out", "--threshold needs something to compare with")
	case cmd.Flags().Changed("baseline-dir") && b.baseline.Against == "" && b.baseline.Save == "":
		return cli.Misuse("add --baseline or --save-baseline, or leave --baseline-dir out", "--baseline-dir is where baselines are, and the run has none")
	case b.fio == "-" && (b.Export != "" || b.baseline.Against != ""):
		return cli.Misuse("name a file for --emit-fio", "--emit-fio - writes to standard output, and so do --export and --baseline")
	}
	return errors.Join(b.Check(cmd,
		cli.Pair{Flag: "rounds", Others: "width", Hint: "give --rounds for an exact number, or --width for as many as are needed"},
		cli.Pair{Flag: "steady", Others: "rate width quick full", Why: "--steady measures each policy in one long trial, so --rate, --width, --quick and --full have no meaning", Hint: "--steady goes with --policy, --record, --writers, --rounds, --time and --room"},
		cli.Pair{Flag: "emit-fio", Others: "fs", Why: "--emit-fio writes a job for one file system, and --fs measures several"},
		cli.Pair{Flag: "kernel", Others: "emit-fio baseline save-baseline", Why: "a run with --kernel measures two kernels, and can't be a baseline or a job of fio"}), cli.IsFree("--emit-fio", b.fio))
}

// minSteady is the window of a steady state, five samples of a second, and one
// second to fill what is empty at first.
const minSteady = 6 * time.Second

// tooShort refuses a --time in which no policy can become steady.
func (b *benchmark) tooShort(cells []result.Cell) error {
	if !b.steady || b.Budget == 0 || cells[0].Longest >= minSteady {
		return nil
	}
	return cli.Misuse(fmt.Sprintf("give at least %v, or fewer policies or rounds", minSteady*time.Duration(len(cells)*max(1, b.Rounds)*max(1, len(b.Kinds)))),
		"--time %v is too short for %d policies to become steady: each needs at least %v", b.Budget, len(cells), minSteady)
}

func (b *benchmark) run(cmd *cobra.Command) error {
	if err := b.check(cmd); err != nil {
		return err
	}
	if b.baseline.Program != "" {
		return b.runAgainst(cmd, b.choice())
	}
	earlier, err := b.earlier(cmd)
	if err != nil {
		return err
	}
	defer b.baseline.Close()
	if err := b.baseline.Prepare(b.DryRun); err != nil {
		return err
	}
	again := b.from != ""
	if b.baseline.Against != "" && b.resume == "" && len(contradicting(cmd, "from")) == 0 {
		again, earlier = true, b.baseline.Earlier
	}
	job := run.Job{Keep: b.baseline.Keep, Print: b.print}
	if again || b.resume != "" {
		job.Earlier = &earlier.Header
	}
	job.Ready = func(cells []result.Cell, _ study.Choice) error {
		if b.resume != "" && !b.DryRun {
			return clean(cmd.ErrOrStderr(), b.resume, earlier)
		}
		return b.tooShort(cells)
	}
	job.Measure = func(ctx context.Context, s *run.Session, c study.Choice) error {
		switch {
		case b.resume != "":
			return s.Resume(ctx, b.studies, earlier)
		case again:
			return s.Repeat(ctx, b.studies, earlier.Header)
		}
		return s.Measure(ctx, sweep.Policy(), c)
	}
	return b.Do(cmd, b.choice(), job)
}

// print writes the table of the run, or the export instead, and how it compares
// with the baseline. It returns the refusal of a regression.
func (b *benchmark) print(w io.Writer, of result.Run) error {
	if err := cli.EmitFio(w, b.fio, of); err != nil || b.fio == "-" {
		return err
	}
	if b.baseline.Against == "" {
		return b.Print(w, b.studies, of, b.all)
	}
	if b.Export != "" {
		return b.baseline.Show(w, of, b.Export)
	}
	if err := cli.WriteText(w, b.studies, of, b.all); err != nil {
		return err
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return b.baseline.Show(w, of, "")
}
