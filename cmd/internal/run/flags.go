// Package run is one run in one place: what the commands bench, advise, study and audit share.
// It has the flags that they have in common, the plan that is shown, and the [Session] that
// measures. It knows no study by name.
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
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/report"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/cmd/internal/place"
	"github.com/holdfast-go/holdfast/internal/volume"
)

// Flags are the user's choices for a run: its place, its length, its output.
type Flags struct {
	Where
	Quick, Full bool
	Rounds      int
	Seed        uint64
	Budget      time.Duration
	DryRun      bool
	File        string // of the results
	Host        string // the name of this machine in the results; empty: its host name
	Plot        bool
	Export      report.Format
}

// A Where is the place to measure.
type Where struct {
	Dir        string
	AllowTmpfs bool
	Kinds      []volume.Kind // made for the run; nil: it is on the file system of Dir
	Kernel     string        // in which to run; empty: the one that runs here
	Install    bool          // the packages that Kinds and Kernel need

	kernels []place.Kernel // that can be started
}

// NewFlags are the flags of a run that can be in one of these kernels too.
func NewFlags(kernels []place.Kernel) Flags {
	return Flags{Where: Where{Dir: ".", kernels: kernels}, Seed: uint64(rand.Uint32())}
}

// DirFlag adds --dir.
func (w *Where) DirFlag(f *pflag.FlagSet) {
	f.Var(cli.Once("dir", &w.Dir, cli.Given), "dir", "measure the disk that holds this directory (default: the current one)")
}

// TmpfsFlag adds --allow-tmpfs.
func (w *Where) TmpfsFlag(f *pflag.FlagSet) {
	f.BoolVar(&w.AllowTmpfs, "allow-tmpfs", false, "allow a file system in memory, where nothing is ever durable")
}

// SeedFlag adds --seed.
func SeedFlag(f *pflag.FlagSet, seed *uint64) {
	f.Var(cli.Once("number", seed, cli.ParseSeed), "seed", "repeat the order of an earlier run (default: a new one)")
}

// PlanFlags add --dry-run and -o.
func (r *Flags) PlanFlags(f *pflag.FlagSet) {
	f.BoolVar(&r.DryRun, "dry-run", false, "show the plan, and measure nothing")
	f.VarP(cli.Target("file", &r.File, cli.NewLines("results.jsonl")), "output", "o", "keep all results in this new file (JSON Lines), for holdfast report")
}

// RoundsFlags add --rounds and --seed.
func (r *Flags) RoundsFlags(f *pflag.FlagSet) {
	f.Var(cli.Once("number", &r.Rounds, cli.ParseBetween(1, 10000, "rounds can't be measured")), "rounds", "run exactly this number of rounds, however well the ratios are known")
	SeedFlag(f, &r.Seed)
}

// PlacesFlags adds the flags of file systems and kernels.
func (w *Where) PlacesFlags(f *pflag.FlagSet) {
	place.FileSystemsFlag(f, &w.Kinds)
	w.TmpfsFlag(f)
	f.Var(cli.Once("name", &w.Kernel, w.parseKernel), "kernel", "run inside User-Mode Linux (uml), which has more file systems and\nneeds no root; compare its times only with each other")
	f.BoolVar(&w.Install, "install", false, "install the Debian packages that --fs and --kernel need (root)")
	cli.InGroup(f, "Where", "fs", "kernel", "install", "allow-tmpfs")
}

// parseKernel knows the kernels that can be started.
func (w *Where) parseKernel(text string) (string, error) {
	var names []string
	for _, k := range w.kernels {
		if k.Name() == text {
			return text, nil
		}
		names = append(names, k.Name())
	}
	return "", fmt.Errorf("%q is not a kernel that holdfast can start; use %s, or leave --kernel out for the running kernel", text, strings.Join(names, ", "))
}

// order finds out what can be had of a wish. It looks in this kernel, or in one that is started
// because a flag or the earlier run asks for it.
func (w *Where) order(ctx context.Context, wish place.Wish, c *study.Choice) (place.Order, error) {
	for _, k := range w.kernels {
		if k.Name() == w.Kernel || wish.Earlier != nil && k.Had(*wish.Earlier) {
			return k.Order(ctx, wish, c)
		}
	}
	return place.OrderHere(wish, c)
}

// ParseRecord reads the size of a record that a trial can write.
func ParseRecord(text string) (holdfast.Size, error) {
	size, err := holdfast.ParseSize(text)
	if err != nil {
		return 0, err
	}
	if size < trial.MinRecord || size > study.MaxRecord {
		return 0, fmt.Errorf("a record of %v can't be measured; use %v to %v", size, holdfast.Size(trial.MinRecord), study.MaxRecord)
	}
	return size, nil
}

// ParseWriters reads how many goroutines write to one file.
func ParseWriters(text string) (int, error) {
	return cli.ParseBetween(1, 4096, "writers can't be measured")(text)
}

// The bounds of a rate: a record in ten seconds, and more than memory takes.
const MinRate, MaxRate = 0.1, 1e9

// CacheStates are the states that a run can begin with.
var CacheStates = []result.Cache{result.NewFile, result.Warm, result.Cold, result.TryCold, result.Dropped, result.Remount}

// CacheUsage explains them.
const CacheUsage = "append to an existing file that is in the page cache (warm) or not\n(cold; try-cold: if possible), or after the whole page cache was\ndropped (drop: root) or the file system remounted (remount: root)\n(default: a new file)"

// ParseCache reads one of them.
func ParseCache(text string) (result.Cache, error) {
	if slices.Contains(CacheStates, result.Cache(text)) {
		return result.Cache(text), nil
	}
	return "", fmt.Errorf("%q is not a state of the page cache; use new, warm, cold, try-cold, drop or remount", text)
}

// Choose completes a choice by the flags.
func (r *Flags) Choose(c study.Choice) study.Choice {
	c.Preset, c.Rounds, c.Budget, c.Seed, c.FileSystems = study.Default(), r.Rounds, r.Budget, r.Seed, place.KindNames(r.Kinds)
	switch {
	case r.Quick:
		c.Preset = study.Quick()
	case r.Full:
		c.Preset = study.Full()
	}
	return c
}

// Check refuses flags that contradict each other, by its own table and by these pairs, and files that can't be made.
func (r *Flags) Check(cmd *cobra.Command, pairs ...cli.Pair) error {
	err := cli.Apart(cmd, append(pairs,
		cli.Pair{Flag: "quick", Others: "full", Hint: "give one of the two, or neither for a run of about 45 seconds"},
		cli.Pair{Flag: "plot", Others: "export", Why: fmt.Sprintf("--plot draws below the table, and --export %s prints none", r.Export)})...)
	switch {
	case err != nil:
		return err
	case r.Kernel != "" && slices.ContainsFunc(r.Kinds, func(k volume.Kind) bool { return k.Dir != "" }):
		return cli.Misuse("leave it out", "--fs names a directory here, but --kernel %s runs in another kernel", r.Kernel)
	case r.Install && len(r.Kinds) == 0 && r.Kernel == "":
		return cli.Misuse("add --fs or --kernel, or leave --install out", "--install is for --fs and --kernel, and neither is given")
	}
	return cli.IsFree("-o", r.File)
}

// A Job is a command's measurement in the place of its flags, and the output of the run.
type Job struct {
	Study   study.Study    // that is run; without a name, a sweep of policies
	Earlier *result.Header // of the run that decides what is run; nil: the choice does
	Kept    string         // the new directory for the files of the last round; empty: they are removed

	// Ready refuses what would be run before anything is measured.
	Ready   func(cells []result.Cell, c study.Choice) error
	Measure func(context.Context, *Session, study.Choice) error
	Keep    func(result.Run) error // after a run without an error
	Print   func(io.Writer, result.Run) error
}

// Do does a job, or shows the plan of it.
func (r *Flags) Do(cmd *cobra.Command, c study.Choice, job Job) error {
	if err := r.installMissing(cmd); err != nil {
		return err
	}
	wish := place.Wish{Dir: r.Dir, Kinds: r.Kinds, Study: job.Study, Earlier: job.Earlier}
	order, err := r.order(cmd.Context(), wish, &c)
	if err != nil {
		return err
	}
	cells, plan := wish.Outline(c)
	seed := c.Seed
	if h := job.Earlier; h != nil {
		cells, plan, seed = h.Cells, h.Plan, h.Seed
	}
	if err := errors.Join(job.Ready(cells, c), CheckMemory(cells)); err != nil {
		return err
	}
	if r.DryRun {
		return cli.WriteLocal(cmd.OutOrStdout(), func(w io.Writer) error { return r.tellPlan(w, c, cells, plan, seed, order) })
	}
	return r.onGround(cmd, order, c, job)
}

// onGround does a job in a directory of its own, in the ordered place. It prints what was measured, also if
// it failed.
func (r *Flags) onGround(cmd *cobra.Command, o place.Order, c study.Choice, job Job) (err error) {
	ground, err := trial.OpenWorkDir(r.Dir, r.AllowTmpfs)
	if err != nil {
		return place.CannotOpen(r.Dir, err)
	}
	defer func() { err = place.CloseWorkDir(ground, err) }()
	if job.Kept != "" {
		if err := os.Mkdir(job.Kept, 0o777); err != nil {
			return cli.Misuse("name a new directory on the file system of --dir", "--keep: %w", err)
		}
		ground.Kept = job.Kept
	}
	s := New(cmd.ErrOrStderr(), ground, r.Dir, r.File)
	s.host = r.Host
	if text := untimedText(c); text != "" {
		s.Say("%s", text)
	}
	volumes, err := o.Make(cmd.Context(), s.Host())
	defer func() { err = volumes.Close(err) }()
	if err == nil {
		err = o.Measure(cmd.Context(), s.Host(), volumes, c, func(p place.Place, c study.Choice) error {
			s.Place = p
			return job.Measure(cmd.Context(), s, c)
		})
	}
	var saveErr, printErr error
	if err == nil {
		saveErr = job.Keep(s.Run)
	}
	if s.Run.Rounds() > 0 {
		printErr = job.Print(cmd.OutOrStdout(), s.Run)
		r.offerPage(s)
	}
	return cmp.Or(s.Refuse(err), saveErr, printErr)
}

// offerPage says how a page with pictures is made of the run.
func (r *Flags) offerPage(s *Session) {
	if r.File == "" {
		s.Say("add -o results.jsonl to keep the results; holdfast report results.jsonl -o report.html then makes a page with pictures")
		return
	}
	s.Say("for a page with pictures: holdfast report %s -o %s", cli.OneLine(r.File), cli.OneLine(strings.TrimSuffix(r.File, filepath.Ext(r.File))+".html"))
}

// Print writes the table of a run, which may be of one of these studies, or the export instead.
func (r *Flags) Print(w io.Writer, studies study.List, run result.Run, whole bool) error {
	err := cli.WriteReport(w, studies, run, r.Export, false, whole)
	if err == nil && r.Plot {
		err = cli.WriteCurves(w, run)
	}
	return err
}

// CheckMemory refuses cells that hold more in memory than the control groups of
// this process let it have.
func CheckMemory(cells []result.Cell) error {
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
			return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("%s needs up to %s of memory, and the limit of this process's control group is %s", c.Name, cli.BytesText(held), cli.BytesText(limit)),
				Hint: "use smaller buffers or records, fewer writers, or raise the memory limit"}
		}
	}
	return nil
}
