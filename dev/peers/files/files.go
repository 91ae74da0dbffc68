// Package files writes many files with holdfast's files.Set, with other libraries and with
// a bare loop in C. It prints how their times compare, and each one's result under faults.
//
// A time counts only if every file was right: each is read back, and counted, after the
// clock has stopped. Every trial is a process of its own in a fresh directory, so that it
// does not pay for the heap of another. Nothing is removed before the end: after ext4 has
// removed many files, new ones take up to twenty times as long, for some five minutes. So
// wait that long between two runs on one file system, or use -fs, which makes a new one for
// each round.
//
// Start with groups and faults.
package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// Kind compares writers of many files.
var Kind = command.Kind{
	Name:  "files",
	Does:  "many files: create, append, durable, replace, beside os.WriteFile, pools of 2 and 64, errgroup, lumberjack, renameio, C; faults",
	Run:   run,
	Carry: command.Order(trialOrder.carryOut),
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f, z := command.NewFlags("files", "create/1000/os.WriteFile"), sizes{}
	f.BoolVar(&z.Full, "full", false, "with 50,000 files too")
	on := f.String("fs", "", "run on new file systems of these `kinds`, such as ext4,xfs,btrfs, each in an image in -dir; for root, on Linux")
	if err := f.Read(args, stderr); err != nil {
		return err
	}
	kinds, err := command.Kinds(*on)
	if err != nil {
		return err
	}
	z.Quick = f.Quick
	all := func() []*group { return command.Picked(groups(z), f.Pick) }
	if len(all())+len(pickedFaults(f.Pick)) == 0 {
		return command.Misuse("-run=%v matches no arm; names look like create/1000/os.WriteFile or faults/descriptors/lumberjack", f.Pick)
	}
	dir, err := os.MkdirTemp(f.Dir, "peers-")
	if err != nil {
		return fmt.Errorf("-dir: %w", err)
	}
	defer os.RemoveAll(dir)
	need := room(all()) * int64(f.Count)
	if len(kinds) > 0 {
		need = 2 * room(all())
	}
	if err := plan(dir, need); err != nil {
		return err
	}
	if len(kinds) == 0 {
		err = measure(ctx, f, z, command.Directory(dir), all(), stdout)
	}
	for _, kind := range kinds {
		err = errors.Join(err, measure(ctx, f, z, command.Image{Kind: kind, Parent: f.Dir, Room: room(all())}, all(), stdout))
	}
	return errors.Join(err, meetFaults(ctx, f.Pick, dir, stdout, stderr))
}

// room is the space that the trials of a round leave used.
func room(all []*group) (bytes int64) {
	for _, g := range all {
		for _, a := range g.Arms {
			bytes += g.Job.of(a).room()
		}
	}
	return bytes
}

// plan refuses what the disk has no room for: nothing is removed before the end.
func plan(dir string, need int64) error {
	const extra = 1 << 30
	free, err := sys.FreeSpace(dir)
	if err == nil && free < need+extra {
		return fmt.Errorf("-dir: %.1f GB are free, and the run may take %.1f GB; choose another disk, fewer -rounds or less by -run", float64(free)/1e9, float64(need+extra)/1e9)
	}
	return nil // where the free room is not known, the run finds out
}

// measure runs all that is timed in one place, and prints it.
func measure(ctx context.Context, f *command.Flags, z sizes, on command.Place, all []*group, stdout io.Writer) error {
	if len(all) == 0 {
		return nil
	}
	if err := on.Can(); err != nil {
		fmt.Fprintf(stdout, "\nNot measured on %v: %v.\n", on, err)
		return nil
	}
	fmt.Fprintf(f.Talk, "files: %d arms, %d rounds, on %v; seed %d\n", command.Count(all), f.Count, on, f.Seed)
	if on.String() == "tmpfs" {
		fmt.Fprintln(f.Talk, "files: tmpfs is in memory: nothing there is durable, and syncs cost nothing; choose a disk with -dir")
	}
	versions := command.Versions("github.com/google/renameio/v2", "github.com/natefinch/atomic", "golang.org/x/sync", "gopkg.in/natefinch/lumberjack.v2")
	err := command.Measure(ctx, f, trials(z, on, all), stdout, on.String(), versions,
		command.Median("B", "%.0f", func(s command.Sample) float64 { return float64(s.Bytes) / float64(s.Units) }),
		command.Median("allocations", "%.2f", func(s command.Sample) float64 { return float64(s.Allocs) / float64(s.Units) }))
	writeFlatness(stdout, all)
	return err
}

// trials are processes of their own.
func trials(z sizes, on command.Place, all []*group) command.Trials[job, how] {
	var at command.Opened
	return command.Trials[job, how]{
		Groups: all,
		Open:   func(ctx context.Context) (err error) { at, err = on.Open(ctx); return err },
		Close:  func() error { return at.Done() },
		// The last trial's files are on the disk, and the page cache finds the memory that the
		// trial will fill.
		Ready: func(_ context.Context, g *group, a *arm) error {
			err := trial.PrepareMemory(at.Dir, g.Job.of(a).room())
			command.SettleAll()
			return err
		},
		Try: func(ctx context.Context, g *group, a *arm, round int) (command.Sample, error) {
			return command.Trial(ctx, "", "files", trialOrder{Sizes: z, Group: g.Name, Arm: a.Name, Dir: trialDir(at.Dir, g, a, round)})
		},
	}
}

// flat is the least number of files that the largest is compared with: with fewer, the
// directory is most of the cost.
const flat = 100

// writeFlatness writes the cost of a file as there are more of them.
func writeFlatness(out io.Writer, all []*group) {
	var columns []*group
	for _, g := range all {
		if n, err := strconv.Atoi(strings.TrimPrefix(g.Name, "create/")); err == nil && n >= flat {
			columns = append(columns, g)
		}
	}
	if len(columns) < 2 || len(columns[0].Arms[0].Samples) == 0 {
		return
	}
	fmt.Fprint(out, "\n## create: µs a file as there are more\n\n| arm |")
	for _, g := range columns {
		fmt.Fprintf(out, " %d |", g.Job.Files)
	}
	fmt.Fprintf(out, " last ÷ first |\n|---|%s--:|\n", strings.Repeat("--:|", len(columns)))
	for _, a := range columns[0].Arms {
		fmt.Fprintf(out, "| %s |", a.Name)
		var costs []float64
		for _, g := range columns {
			_, a := command.Find([]*group{g}, g.Name, a.Name)
			if a == nil || a.Err != nil {
				fmt.Fprint(out, " – |")
				continue
			}
			costs = append(costs, stat.Summarize(a.Each(command.Sample.Time)).Median/1e3)
			fmt.Fprintf(out, " %.3g |", costs[len(costs)-1])
		}
		if len(costs) < len(columns) {
			fmt.Fprintln(out, " – |")
			continue
		}
		fmt.Fprintf(out, " %.2f |\n", costs[len(costs)-1]/costs[0])
	}
}
