package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-go/holdfast/internal/lab/trial"
	"github.com/holdfast-go/holdfast/peers/internal/command"
)

// A race is a job in one state of the page cache, with its arms.
type race struct {
	job     job
	state   state
	runners []*runner
}

// A runner is an arm with what it took.
type runner struct {
	arm
	command.Runs[command.Sample]
}

// Entrants returns the runners.
func (r *race) Entrants() []*runner { return r.runners }

func (r *race) name() string { return r.job.name + "/" + string(r.state) }

// races are those with an arm that was picked; ours and its twin are in each.
func (o options) races() (all []*race) {
	for _, j := range jobs(o.quick) {
		for _, s := range o.states {
			if r := (&race{job: j, state: s}); o.enter(r) {
				all = append(all, r)
			}
		}
	}
	return all
}

func (o options) enter(r *race) bool {
	kept, any := command.Picked(arms(r.job), func(a arm) bool { return o.pick.MatchString(r.name() + "/" + a.name) })
	for _, a := range kept {
		r.runners = append(r.runners, &runner{arm: a})
	}
	return any
}

// room is what a round leaves on the disk: the sources, the copies of many files, and
// one copy of a large one.
func (o options) room() int64 {
	var room int64
	for _, r := range o.races() {
		room += r.job.bytes()
		if r.job.files > 1 {
			room += r.job.bytes() * int64(len(r.runners))
		} else {
			room += r.job.size // of a copy with its holes filled
		}
	}
	return room
}

// run runs every arm once in each round. It stops between two trials when ctx ends.
func (o options) run(ctx context.Context, r command.Rounds, on command.Place, all []*race) (complete int, err error) {
	return r.Run(func(_ int, order *rand.Rand) error {
		return o.round(ctx, on, all, order, r.Talk)
	}, func(rounds int) { command.Keep(all, rounds) })
}

func (o options) round(ctx context.Context, on command.Place, all []*race, order *rand.Rand, talk io.Writer) (err error) {
	at, err := on.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, at.Done()) }()
	for i, r := range all {
		if i > 0 && all[i-1].job.name == r.job.name { // of the other state of the page cache
			continue
		}
		if err := r.job.lay(filepath.Join(at.Dir, r.job.name)); err != nil {
			return err
		}
	}
	return command.EachArm(ctx, order, all, func(r *race, a *runner) error {
		return attempt{options: o, race: r, runner: a, dir: at.Dir, chill: at.Chill}.run(ctx, talk)
	})
}

// An attempt is one trial.
type attempt struct {
	options
	race   *race
	runner *runner
	dir    string
	chill  func(context.Context) error
}

// run runs the arm once. Its error is one of the machine; the arm's own is kept.
func (t attempt) run(ctx context.Context, talk io.Writer) error {
	if t.runner.Err != nil {
		return nil
	}
	j := t.race.job
	if t.runner.most > 0 {
		j.files = min(j.files, t.runner.most)
	}
	from := filepath.Join(t.dir, j.name)
	to := filepath.Join(t.dir, strings.NewReplacer("/", "-", " ", "-", ",", "").Replace(t.race.name()+"-"+t.runner.name))
	if err := t.prepare(ctx, j, from); err != nil {
		return err
	}
	s, err := command.Trial(ctx, trialOrder{Quick: t.quick, Job: j.name, Arm: t.runner.name, From: from, To: to, Files: j.files})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		err = j.verify(from, to)
	}
	if t.runner.Err = err; err != nil {
		fmt.Fprintf(talk, "copy: %s, %s: %v\n", t.race.name(), t.runner.name, err)
	} else {
		t.runner.Samples = append(t.runner.Samples, s)
	}
	if j.files > 1 {
		return nil // where ext4 has removed many files it is slow to make new ones
	}
	return os.RemoveAll(to)
}

// prepare brings the machine into the same state before every trial. The files of the last
// trial are on the disk. The page cache has memory for the copies, and holds of the sources
// what the race asks for.
func (t attempt) prepare(ctx context.Context, j job, from string) error {
	if err := trial.PrepareMemory(t.dir, j.bytes()); err != nil {
		return err
	}
	command.SettleAll()
	return t.race.state.bring(ctx, j.paths(from), t.chill)
}

// floor is what our two arms differ by, or NaN.
func (r *race) floor() float64 {
	return command.Floor(&r.runners[0].Runs, &r.runners[1].Runs, command.Sample.Micros)
}
