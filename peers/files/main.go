// Command files writes many files with holdfast's files.Set, with other libraries and with
// a bare loop in C, in one interleaved run. It prints how their times compare, and what each
// does under faults.
//
//	go run -C peers ./files -dir /directory/on/the/disk
//
// A time counts only if every file was right: each is read back, and counted, after the
// clock has stopped. Every trial is a process of its own in a fresh directory, so that it
// does not pay for the heap of another. Nothing is removed before the end: after ext4 has
// removed many files, new ones take up to twenty times as long, for some five minutes. So
// wait that long between two runs on one file system, or use -fs, which makes a new one for
// each round.
//
// Start with groups for what is compared, and with faults for what goes wrong.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/lab/stat"
	"github.com/holdfast-go/holdfast/internal/lab/volume"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/peers/internal/command"
)

func main() {
	command.Serve(trialOrder.carryOut)
	command.Main("files", runCommand)
}

// options is what the command line says.
type options struct {
	pick        *regexp.Regexp
	rounds      int
	seed        uint64
	dir         string
	sizes       sizes
	fileSystems []volume.Kind
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	f := flag.NewFlagSet("files", flag.ContinueOnError)
	pick := f.String("run", "", "run only the arms whose name, such as create/1000/os.WriteFile, matches the `regexp`")
	f.IntVar(&o.rounds, "rounds", 0, "how many times each arm runs; fewer than 10 prove nothing (default 10, with -quick 3)")
	f.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "the seed of the order")
	f.StringVar(&o.dir, "dir", ".", "write in a new directory in `dir`, removed at the end")
	f.BoolVar(&o.sizes.Quick, "quick", false, "fewer and smaller groups, for a first look")
	f.BoolVar(&o.sizes.Full, "full", false, "with 50,000 files too")
	on := f.String("fs", "", "run on new file systems of these `kinds`, such as ext4,xfs,btrfs, each in an image in -dir; for root, on Linux")
	if err := command.Parse(f, args, stderr); err != nil {
		return o, err
	}
	if o.rounds < 0 {
		return o, command.Misuse("-rounds=%d is negative; give at least 1", o.rounds)
	}
	if o.pick, err = regexp.Compile(*pick); err != nil {
		return o, command.Misuse("-run: %w", err)
	}
	if o.rounds == 0 {
		o.rounds = map[bool]int{false: stat.VerdictRounds, true: 3}[o.sizes.Quick]
	}
	o.fileSystems, err = command.Kinds(*on)
	return o, err
}

// runCommand is main without the process around it.
func runCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if len(picked(groups(o.sizes), o.pick))+len(pickedFaults(o.pick)) == 0 {
		return command.Misuse("-run=%v matches no arm; names look like create/1000/os.WriteFile or faults/descriptors/lumberjack", o.pick)
	}
	dir, err := os.MkdirTemp(o.dir, "peers-")
	if err != nil {
		return fmt.Errorf("-dir: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := o.plan(dir); err != nil {
		return err
	}
	if len(o.fileSystems) == 0 {
		err = o.measure(ctx, directory{dir}, stdout, stderr)
	}
	for _, kind := range o.fileSystems {
		err = errors.Join(err, o.measure(ctx, command.Image{Kind: kind, Parent: o.dir, Room: o.room()}, stdout, stderr))
	}
	return errors.Join(err, o.faults(ctx, dir, stdout, stderr))
}

// room is what the trials of a round leave on the disk.
func (o options) room() (bytes int64) {
	for _, g := range picked(groups(o.sizes), o.pick) {
		for _, a := range g.arms {
			bytes += g.job.of(a).room()
		}
	}
	return bytes
}

// plan refuses what the disk has no room for: nothing is removed before the end.
func (o options) plan(dir string) error {
	const extra = 1 << 30
	need := o.room()*int64(o.rounds) + extra
	if len(o.fileSystems) > 0 {
		need = 2*o.room() + extra
	}
	free, err := sys.FreeSpace(dir)
	if err == nil && free < need {
		return fmt.Errorf("-dir: %.1f GB are free, and the run may take %.1f GB; choose another disk, fewer -rounds or less by -run", float64(free)/1e9, float64(need)/1e9)
	}
	return nil // where the free room is not known, the run finds out
}

// measure runs all that is timed in one place, and prints it.
func (o options) measure(ctx context.Context, on command.Place, stdout, stderr io.Writer) error {
	all := picked(groups(o.sizes), o.pick)
	if len(all) == 0 {
		return nil
	}
	if err := on.Can(); err != nil {
		fmt.Fprintf(stdout, "\nNot measured on %v: %v.\n", on, err)
		return nil
	}
	fmt.Fprintf(stderr, "files: %d arms, %d rounds, on %v; seed %d\n", command.Arms(all), o.rounds, on, o.seed)
	if on.String() == "tmpfs" {
		fmt.Fprintln(stderr, "files: tmpfs is in memory: nothing there is durable, and syncs cost nothing; choose a disk with -dir")
	}
	r := command.Rounds{Name: "files", Count: o.rounds, Seed: o.seed, Talk: stderr}
	rounds, err := o.run(ctx, r, on, all)
	if rounds > 0 {
		fmt.Fprintf(stdout, "\n%s\n", conditions(r.Rounded(rounds), on))
		writeTables(stdout, all)
	}
	if err != nil {
		return err
	}
	return command.Failed(all, errors.ErrUnsupported)
}

// conditions states what the figures were taken under.
func conditions(rounds string, on command.Place) string {
	return fmt.Sprintf("%s, each trial a process of its own, on %v; %s.\nVersions: %s; holdfast is the one of this directory.",
		rounds, on, command.Platform(), strings.Join(versions(), ", "))
}

// versions names the modules that are compared.
func versions() []string {
	return command.Versions("github.com/google/renameio/v2", "github.com/natefinch/atomic", "golang.org/x/sync", "gopkg.in/natefinch/lumberjack.v2")
}
