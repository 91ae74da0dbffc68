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
	"time"

	"github.com/holdfast-go/holdfast/internal/stat"
	"github.com/holdfast-go/holdfast/internal/trial"
	"github.com/holdfast-go/holdfast/peers/internal/command"
)

// A race is a job in one state of the page cache, with those who run it.
type race struct {
	job     job
	state   state
	runners []*runner
}

// A runner is an arm with what it took.
type runner struct {
	arm
	samples []sample
	err     error // of a trial; then the arm is run no more
}

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

func (o options) enter(r *race) (any bool) {
	for i, a := range arms(r.job) {
		match := o.pick.MatchString(r.name() + "/" + a.name)
		any = any || match
		if match || i < 2 {
			r.runners = append(r.runners, &runner{arm: a})
		}
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

// run runs every arm once in each round, in a new order each time. It stops between two
// trials when ctx ends, and then forgets the round that it was in: complete is how many
// there are.
func (o options) run(ctx context.Context, on place, all []*race, talk io.Writer) (complete int, err error) {
	order := rand.New(rand.NewPCG(o.seed, 0))
	begun := time.Now()
	for round := range o.rounds {
		if err := o.round(ctx, on, all, order, talk); err != nil {
			cut(all, round)
			return round, err
		}
		left := time.Since(begun) / time.Duration(round+1) * time.Duration(o.rounds-round-1)
		fmt.Fprintf(talk, "copy: round %d of %d done, %v left\n", round+1, o.rounds, left.Round(time.Second))
	}
	return o.rounds, nil
}

func (o options) round(ctx context.Context, on place, all []*race, order *rand.Rand, talk io.Writer) (err error) {
	dir, chill, done, err := on.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	for i, r := range all {
		if i > 0 && all[i-1].job.name == r.job.name { // of the other state of the page cache
			continue
		}
		if err := r.job.lay(filepath.Join(dir, r.job.name)); err != nil {
			return err
		}
	}
	for _, i := range order.Perm(len(all)) {
		for _, k := range order.Perm(len(all[i].runners)) {
			t := attempt{options: o, race: all[i], runner: all[i].runners[k], dir: dir, chill: chill}
			if err := errors.Join(ctx.Err(), t.run(ctx, talk)); err != nil {
				return err
			}
		}
	}
	return nil
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
	if t.runner.err != nil {
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
	s, err := startTrial(ctx, trialOrder{Quick: t.quick, Job: j.name, Arm: t.runner.name, From: from, To: to, Files: j.files})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		err = j.verify(from, to)
	}
	if t.runner.err = err; err != nil {
		fmt.Fprintf(talk, "copy: %s, %s: %v\n", t.race.name(), t.runner.name, err)
	} else {
		t.runner.samples = append(t.runner.samples, s)
	}
	if j.files > 1 {
		return nil // where ext4 has removed many files it is slow to make new ones
	}
	return os.RemoveAll(to)
}

// prepare brings the machine into the same state before every trial: what the trial
// before left is on the disk, the page cache finds the memory that the copies will
// fill, and it holds of the sources what the race asks.
func (t attempt) prepare(ctx context.Context, j job, from string) error {
	if err := trial.PrepareMemory(t.dir, j.bytes()); err != nil {
		return err
	}
	settle()
	return t.race.state.bring(ctx, j.paths(from), t.chill)
}

// cut drops the samples of the rounds after the first ones.
func cut(all []*race, rounds int) {
	for _, r := range all {
		for _, a := range r.runners {
			a.samples = a.samples[:min(len(a.samples), rounds)]
		}
	}
}

// failed returns command.ErrFailed if an arm did not do its work, unless it can't
// here, or filled the holes of a file, which the table tells.
func failed(all []*race) error {
	for _, r := range all {
		for _, a := range r.runners {
			if a.err != nil && !errors.Is(a.err, errors.ErrUnsupported) && !errors.Is(a.err, errFilled) {
				return command.ErrFailed
			}
		}
	}
	return nil
}

func (a *runner) each(of func(sample) float64) []float64 {
	values := make([]float64, len(a.samples))
	for i, s := range a.samples {
		values[i] = of(s)
	}
	return values
}

func (s sample) micros() float64 { return float64(s.Elapsed) / 1e3 / float64(s.Files) }
func (s sample) cpu() float64    { return float64(s.CPU) / 1e3 / float64(s.Files) }

// floor is what our two arms differ by, or NaN.
func (r *race) floor() float64 {
	if r.runners[0].err != nil || r.runners[1].err != nil {
		return stat.Floor(nil, nil)
	}
	return stat.Floor(r.runners[0].each(sample.micros), r.runners[1].each(sample.micros))
}
