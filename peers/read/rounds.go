package main

import (
	"context"
	"errors"
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
// new order each time. A round that is in no figure comes first. It stops between
// two trials when ctx ends, and then forgets the round that it was in: complete is
// how many there are.
func run(ctx context.Context, s *site, all []*group, rounds int, seed uint64, talk io.Writer) (complete int, err error) {
	order := rand.New(rand.NewPCG(seed, 0))
	begun := time.Now()
	for round := range rounds + 1 {
		for _, i := range order.Perm(len(all)) {
			g := all[i]
			for _, j := range order.Perm(len(g.arms)) {
				if err := ctx.Err(); err != nil {
					cut(all, round-1)
					return max(0, round-1), err
				}
				g.trial(s, g.arms[j], round, talk)
			}
		}
		left := time.Since(begun) / time.Duration(round+1) * time.Duration(rounds-round)
		fmt.Fprintf(talk, "read: round %d of %d done, %v left\n", round, rounds, left.Round(time.Second))
	}
	return rounds, nil
}

func (g *group) trial(s *site, a *arm, round int, talk io.Writer) {
	if a.err != nil {
		return
	}
	took, err := g.try(s, a)
	if err != nil {
		a.err = err
		fmt.Fprintf(talk, "read: %s, %s: %v\n", g.name, a.name, err)
	} else if round > 0 {
		a.samples = append(a.samples, took)
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

// cut drops the samples of the rounds after the first ones.
func cut(all []*group, rounds int) {
	for _, g := range all {
		for _, a := range g.arms {
			a.samples = a.samples[:min(len(a.samples), max(0, rounds))]
		}
	}
}

// failed returns command.ErrFailed if an arm did not do its work, unless it can't here.
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
