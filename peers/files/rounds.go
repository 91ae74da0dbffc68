package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/holdfast-go/holdfast/peers/internal/command"
)

// A directory is a place that all rounds share.
type directory struct{ dir string }

func (f directory) String() string { return command.FileSystem(f.dir) }
func (f directory) Can() error     { return nil }
func (f directory) Open(context.Context) (command.Opened, error) {
	return command.Opened{Dir: f.dir, Done: func() error { return nil }}, nil
}

// run runs every arm once in each round. It stops between two trials when ctx ends.
func (o options) run(ctx context.Context, r command.Rounds, on command.Place, all []*group) (complete int, err error) {
	return r.Run(func(n int, order *rand.Rand) error {
		return o.round(ctx, on, all, n, order, r.Talk)
	}, func(rounds int) { command.Keep(all, rounds) })
}

func (o options) round(ctx context.Context, on command.Place, all []*group, n int, order *rand.Rand, talk io.Writer) (err error) {
	at, err := on.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, at.Done()) }()
	return command.EachArm(ctx, order, all, func(g *group, a *arm) error {
		return o.trial(ctx, at.Dir, g, a, n, talk)
	})
}

// trial runs an arm once. Its error is one of the machine; the arm's own is kept.
func (o options) trial(ctx context.Context, dir string, g *group, a *arm, round int, talk io.Writer) error {
	if a.Err != nil {
		return nil
	}
	if err := prepare(dir, g.job); err != nil {
		return err
	}
	s, err := command.Trial(ctx, trialOrder{Sizes: o.sizes, Group: g.name, Arm: a.name, Dir: trialDir(dir, g, a, round)})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		a.Err = err
		fmt.Fprintf(talk, "files: %s, %s: %v\n", g.name, a.name, err)
		return nil
	}
	a.Samples = append(a.Samples, s)
	return nil
}
