package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"

	"github.com/holdfast-go/holdfast/peers/internal/command"
)

// run runs every arm once in each round, after a round that is in no figure. It stops
// between two trials when ctx ends.
func run(ctx context.Context, s *site, all []*group, r command.Rounds) (complete int, err error) {
	return r.Run(func(n int, order *rand.Rand) error {
		return command.EachArm(ctx, order, all, func(g *group, a *arm) error {
			if a.Err != nil {
				return nil
			}
			a.trial(ctx, s, n)
			if a.Err != nil && ctx.Err() == nil {
				fmt.Fprintf(r.Talk, "fsync: %s, %s: %v\n", g.name, a.name, a.Err)
			}
			return ctx.Err()
		})
	}, func(rounds int) { command.Keep(all, rounds) })
}

// trial runs the arm once; that ctx ended is no failure of its.
func (a *arm) trial(ctx context.Context, s *site, round int) {
	command.Settle(s.ground.Dir())
	runtime.GC()
	taken, err := a.try(ctx, s)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		a.Err = err
	case round > 0:
		a.Samples = append(a.Samples, taken)
	}
}
