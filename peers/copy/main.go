// Command copy copies the same files with holdfast, with package io and os, and with
// cp, dd, cat and rsync, in one interleaved run. It prints how their times compare.
//
//	go run -C peers ./copy -fs ext4,xfs,btrfs
//
// A time counts only if every copy was right: each is read back after the clock has
// stopped. A copy of a file with holes must not take more room than three times its
// data. Before every trial the page cache is made warm or cold, as asked for, and the
// kernel is asked whether it is (cachestat(2), mincore(2)). Every trial is a process of
// its own. The start of a program is in the clock; one arm of holdfast pays for its start
// too.
//
// Start with jobs for what is copied, and with arms for what copies.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/lab/stat"
	"github.com/holdfast-go/holdfast/internal/lab/volume"
	"github.com/holdfast-go/holdfast/peers/internal/command"
)

func main() {
	command.Serve(trialOrder.carryOut)
	command.Main("copy", runCommand)
}

// options is what the command line says.
type options struct {
	pick   *regexp.Regexp
	rounds int
	seed   uint64
	dir    string
	quick  bool
	kinds  []volume.Kind
	states []state
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	f := flag.NewFlagSet("copy", flag.ContinueOnError)
	pick := f.String("run", "", "run only the arms whose name, such as 256MiB/warm/cp, matches the `regexp`")
	f.IntVar(&o.rounds, "rounds", 0, "how many times each arm runs; fewer than 10 prove nothing (default 10, with -quick 3)")
	f.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "the seed of the order")
	f.StringVar(&o.dir, "dir", ".", "work in a new directory in `dir`, removed at the end")
	f.BoolVar(&o.quick, "quick", false, "smaller files and fewer of them, for a first look")
	on := f.String("fs", "", "run on new file systems of these `kinds`, such as ext4,xfs,btrfs, each in an image in -dir; for root, on Linux")
	cache := f.String("cache", "warm,cold", "what the page cache holds of the sources: `warm`, cold, or both")
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
		o.rounds = map[bool]int{false: stat.VerdictRounds, true: 3}[o.quick]
	}
	if o.kinds, err = command.Kinds(*on); err != nil {
		return o, err
	}
	o.states, err = parseStates(*cache)
	return o, err
}

func parseStates(text string) (states []state, err error) {
	for word := range strings.SplitSeq(text, ",") {
		if s := state(word); s != warm && s != cold {
			return nil, command.Misuse("-cache: %q is not warm or cold", word)
		}
		states = append(states, state(word))
	}
	return states, nil
}

// runCommand is main without the process around it.
func runCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if len(o.races()) == 0 {
		return command.Misuse("-run=%v matches no arm; names look like 256MiB/warm/cp", o.pick)
	}
	if len(o.kinds) == 0 {
		return o.measure(ctx, directory{o.dir}, stdout, stderr)
	}
	for _, k := range o.kinds {
		err = errors.Join(err, o.measure(ctx, command.Image{Kind: k, Parent: o.dir, Room: o.room()}, stdout, stderr))
	}
	return err
}

// measure runs all that is timed in one place, and prints it.
func (o options) measure(ctx context.Context, on command.Place, stdout, stderr io.Writer) error {
	if err := on.Can(); err != nil {
		fmt.Fprintf(stdout, "\nNot measured on %v: %v.\n", on, err)
		return nil
	}
	all := o.races()
	fmt.Fprintf(stderr, "copy: %d races, %d rounds, on %v; seed %d\n", len(all), o.rounds, on, o.seed)
	r := command.Rounds{Name: "copy", Count: o.rounds, Seed: o.seed, Talk: stderr}
	rounds, err := o.run(ctx, r, on, all)
	if rounds > 0 {
		fmt.Fprintf(stdout, "\n%s\n", conditions(ctx, r.Rounded(rounds), on))
		writeTables(stdout, all)
	}
	// The table shows what an arm can't do, and which arm filled holes.
	return errors.Join(err, command.Failed(all, errors.ErrUnsupported, errFilled))
}

// conditions states what the figures were taken under.
func conditions(ctx context.Context, rounds string, on command.Place) string {
	return fmt.Sprintf("%s, each trial a process of its own, on %v; %s.\nVersions: %s; holdfast is the one of this directory.",
		rounds, on, command.Platform(), strings.Join(versions(ctx), ", "))
}
