// Package copies copies the same files with holdfast, with package io and os, and with
// cp, dd, cat and rsync.
//
// A time counts only if every copy was right: each is read back after the clock has
// stopped. A copy of a file with holes must not take more room than three times its
// data. Before every trial the page cache is made warm or cold, as asked for, and the
// kernel is asked whether it is (cachestat(2), mincore(2)). Every trial is a process of
// its own. The start of a program is in the clock; the command holdfast is such a program.
//
// Start with jobs for the inputs, and with everybody for the programs.
package copies

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// Kind compares copying.
var Kind = command.Kind{
	Name:  "copy",
	Does:  "copies of small, large, sparse and many files, beside cp, dd, cat, rsync, io.Copy and os.CopyFS, warm and cold",
	Run:   runKind,
	Carry: command.Order(trialOrder.carryOut),
}

func parseStates(text string) (all []state, err error) {
	for word := range strings.SplitSeq(text, ",") {
		if s := state(word); s != warm && s != cold {
			return nil, command.Misuse("-cache: %q is not warm or cold", word)
		}
		all = append(all, state(word))
	}
	return all, nil
}

func runKind(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := command.NewFlags("copy", "256MiB/warm/cp")
	on := f.String("fs", "", "run on new file systems of these `kinds`, such as ext4,xfs,btrfs, each in an image in -dir; for root, on Linux")
	cache := f.String("cache", "warm,cold", "what the page cache holds of the sources: `warm`, cold, or both")
	if err := f.Read(args, stderr); err != nil {
		return err
	}
	kinds, err := command.Kinds(*on)
	if err != nil {
		return err
	}
	states, err := parseStates(*cache)
	if err != nil {
		return err
	}
	all := func() []*race { return command.Picked(races(f.Quick, states), f.Pick) }
	if len(all()) == 0 {
		return command.Misuse("-run=%v matches no arm; names look like 256MiB/warm/cp", f.Pick)
	}
	bin, err := os.MkdirTemp("", "peers-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(bin)
	if len(kinds) == 0 {
		return measure(ctx, f, command.Directory(f.Dir), bin, all(), stdout)
	}
	for _, k := range kinds {
		err = errors.Join(err, measure(ctx, f, command.Image{Kind: k, Parent: f.Dir, Room: room(all())}, bin, all(), stdout))
	}
	return err
}

// room is the space a round leaves used: the sources, the copies of many files, and one copy of a
// large one.
func room(all []*race) (bytes int64) {
	for _, r := range all {
		bytes += r.Job.bytes()
		if r.Job.files > 1 {
			bytes += r.Job.bytes() * int64(len(r.Arms))
		} else {
			bytes += r.Job.size // of a copy with its holes filled
		}
	}
	return bytes
}

// measure runs all that is timed in one place, and prints it.
func measure(ctx context.Context, f *command.Flags, on command.Place, bin string, all []*race, stdout io.Writer) error {
	if err := on.Can(); err != nil {
		fmt.Fprintf(stdout, "\nNot measured on %v: %v.\n", on, err)
		return nil
	}
	fmt.Fprintf(f.Talk, "copy: %d arms, %d rounds, on %v; seed %d\n", command.Count(all), f.Count, on, f.Seed)
	s := &site{quick: f.Quick, on: on, bin: bin, built: command.Build(ctx, bin), all: all}
	t := command.Trials[raced, how]{
		Groups: all, Open: s.open, Close: s.done, Ready: s.ready, Try: s.try,
		Excused: []error{errFilled}, // the table shows which arm filled holes
	}
	return command.Measure(ctx, f, t, stdout, on.String(), command.Programs(ctx, "cp", "rsync", "dd", "cat"))
}

// A site is where the copies of a round are made.
type site struct {
	quick bool
	on    command.Place
	bin   string // has our command, or built says why it has not
	built error
	all   []*race
	at    command.Opened
	dir   string
}

// open lays the sources.
func (s *site) open(ctx context.Context) (err error) {
	if s.at, err = s.on.Open(ctx); err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp(s.at.Dir, "peers-"); err != nil {
		return errors.Join(err, s.at.Done())
	}
	laid := map[string]bool{}
	for _, r := range s.all {
		if laid[r.Job.name] { // in the other state of the page cache
			continue
		}
		laid[r.Job.name] = true
		if err := r.Job.lay(filepath.Join(s.dir, r.Job.name)); err != nil {
			return errors.Join(err, s.done())
		}
	}
	return nil
}

func (s *site) done() error { return errors.Join(os.RemoveAll(s.dir), s.at.Done()) }

// of is the part of the job that an arm does, with where it copies from and to.
func (s *site) of(r *race, a *arm) (j job, from, to string) {
	j = r.Job.job
	if a.Do.most > 0 {
		j.files = min(j.files, a.Do.most)
	}
	return j, filepath.Join(s.dir, j.name), filepath.Join(s.dir, strings.NewReplacer("/", "-", " ", "-", ",", "").Replace(r.Name+"-"+a.Name))
}

// ready brings the machine into the same state before every trial. The files of the last
// trial are on the disk. The page cache has memory for the copies, and holds of the sources
// what the race asks for.
func (s *site) ready(ctx context.Context, r *race, a *arm) error {
	j, from, _ := s.of(r, a)
	if err := trial.PrepareMemory(s.dir, j.bytes()); err != nil {
		return err
	}
	command.SettleAll()
	return r.Job.state.bring(ctx, j.paths(from), s.at.Chill)
}

func (s *site) try(ctx context.Context, r *race, a *arm, _ int) (command.Sample, error) {
	j, from, to := s.of(r, a)
	o := trialOrder{Quick: s.quick, Race: r.Name, Arm: a.Name, From: from, To: to, Files: j.files}
	if a.Do.command {
		if s.built != nil {
			return command.Sample{}, s.built
		}
		o.Path = s.bin
	}
	taken, err := command.Trial(ctx, "", "copy", o)
	if err == nil {
		err = j.verify(from, to)
	}
	if j.files == 1 { // where ext4 has removed many files it is slow to make new ones
		err = errors.Join(err, os.RemoveAll(to))
	}
	return taken, err
}
