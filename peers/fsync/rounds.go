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

func arms(all []*group) (n int) {
	for _, g := range all {
		n += len(g.arms)
	}
	return n
}

// run runs every arm once in each round, the groups and the arms of a group in a
// new order each time: the arms of a group close together, so that their ratios
// are of the same moment. A round that is in no figure comes first. It stops
// between two trials when ctx ends, and then forgets the round that it was in:
// complete is how many there are.
func run(ctx context.Context, s *site, all []*group, rounds int, seed uint64, talk io.Writer) (complete int, err error) {
	order := rand.New(rand.NewPCG(seed, 0))
	begun := time.Now()
	for round := range rounds + 1 {
		for _, i := range order.Perm(len(all)) {
			for _, j := range order.Perm(len(all[i].arms)) {
				a := all[i].arms[j]
				if a.err == nil {
					a.trial(ctx, s, round)
				}
				if err := ctx.Err(); err != nil {
					cut(all, round-1)
					return max(0, round-1), err
				}
				if a.err != nil {
					fmt.Fprintf(talk, "fsync: %s, %s: %v\n", all[i].name, a.name, a.err)
				}
			}
		}
		left := time.Since(begun) / time.Duration(round+1) * time.Duration(rounds-round)
		fmt.Fprintf(talk, "fsync: round %d of %d done, %v left\n", round, rounds, left.Round(time.Second))
	}
	return rounds, nil
}

func (a *arm) trial(ctx context.Context, s *site, round int) {
	settle(s.ground.Dir())
	runtime.GC()
	var taken sample
	if taken, a.err = a.try(ctx, s); a.err == nil && round > 0 {
		a.samples = append(a.samples, taken)
	}
}

// cut drops the samples of the rounds after the first ones.
func cut(all []*group, rounds int) {
	for _, g := range all {
		for _, a := range g.arms {
			a.samples, a.err = a.samples[:min(len(a.samples), max(0, rounds))], nil
		}
	}
}

// failed returns command.ErrFailed if an arm did not do its work.
func failed(all []*group) error {
	for _, g := range all {
		for _, a := range g.arms {
			if a.err != nil {
				return command.ErrFailed
			}
		}
	}
	return nil
}
