package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/peers/internal/command"
)

// A place is where the trials write.
type place interface {
	fmt.Stringer
	can() error
	// open returns a folder for the trials of a round, and what ends it.
	open(ctx context.Context) (dir string, done func() error, err error)
}

// A folder is a place that all rounds share.
type folder struct{ dir string }

func (f *folder) String() string { return fileSystemOf(f.dir) }
func (f *folder) can() error     { return nil }
func (f *folder) open(context.Context) (string, func() error, error) {
	return f.dir, func() error { return nil }, nil
}

// run runs every arm once in each round, the groups and the arms of a group in a
// new order each time. It stops between two trials when ctx ends, and then forgets
// the round that it was in: complete is how many there are.
func (o options) run(ctx context.Context, on place, all []*group, talk io.Writer) (complete int, err error) {
	order := rand.New(rand.NewPCG(o.seed, 0))
	begun := time.Now()
	for round := range o.rounds {
		if err := o.round(ctx, on, all, round, order, talk); err != nil {
			cut(all, round)
			return round, err
		}
		left := time.Since(begun) / time.Duration(round+1) * time.Duration(o.rounds-round-1)
		fmt.Fprintf(talk, "files: round %d of %d done, %v left\n", round+1, o.rounds, left.Round(time.Second))
	}
	return o.rounds, nil
}

func (o options) round(ctx context.Context, on place, all []*group, round int, order *rand.Rand, talk io.Writer) (err error) {
	dir, done, err := on.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	for _, i := range order.Perm(len(all)) {
		g := all[i]
		for _, j := range order.Perm(len(g.arms)) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := o.trial(ctx, dir, g, g.arms[j], round, talk); err != nil {
				return err
			}
		}
	}
	return nil
}

// trial runs an arm once. Its error is one of the machine; the arm's own is kept.
func (o options) trial(ctx context.Context, dir string, g *group, a *arm, round int, talk io.Writer) error {
	if a.err != nil {
		return nil
	}
	if err := prepare(dir, g.job); err != nil {
		return err
	}
	s, err := startTrial(ctx, trialOrder{Sizes: o.sizes, Group: g.name, Arm: a.name, Dir: trialFolder(dir, g, a, round)})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		a.err = err
		fmt.Fprintf(talk, "files: %s, %s: %v\n", g.name, a.name, err)
		return nil
	}
	a.samples = append(a.samples, s)
	return nil
}

// cut drops the samples of the rounds after the first ones.
func cut(all []*group, rounds int) {
	for _, g := range all {
		for _, a := range g.arms {
			a.samples = a.samples[:min(len(a.samples), rounds)]
		}
	}
}

// failed returns command.ErrFailed if an arm did not do its work, unless it can't
// here.
func failed(all []*group) error {
	for _, g := range all {
		for _, a := range g.arms {
			if a.err != nil && !errors.Is(a.err, errors.ErrUnsupported) {
				return command.ErrFailed
			}
		}
	}
	return nil
}
