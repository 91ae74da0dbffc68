package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast/peers/internal/command"
)

// run runs every arm once in each round, after a round that is in no figure. It stops
// between two trials when ctx ends.
func run(ctx context.Context, s *site, all []*group, r command.Rounds) (complete int, err error) {
	return r.Run(func(n int, order *rand.Rand) error {
		return command.EachArm(ctx, order, all, func(g *group, a *arm) error {
			g.trial(s, a, n, r.Talk)
			return nil
		})
	}, func(rounds int) { command.Keep(all, rounds) })
}

func (g *group) trial(s *site, a *arm, round int, talk io.Writer) {
	if a.Err != nil {
		return
	}
	took, err := g.try(s, a)
	if err != nil {
		a.Err = err
		fmt.Fprintf(talk, "read: %s, %s: %v\n", g.name, a.name, err)
	} else if round > 0 {
		a.Samples = append(a.Samples, took)
	}
}

// try times an arm once.
func (g *group) try(s *site, a *arm) (time.Duration, error) {
	if err := s.prepare(g.cold); err != nil {
		return 0, err
	}
	runtime.GC()
	begun := time.Now()
	got, err := a.read(s.path, s.size)
	took := time.Since(begun)
	if want := s.want[g.work]; err == nil && got != want {
		err = fmt.Errorf("what it read is not what the file holds: got %v, want %v", got, want)
	}
	return took, err
}
