package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"

	"github.com/holdfast-go/holdfast/peers/internal/command"
)

// A block is one comparison under one load. Its cells run close together in each round, so that
// their ratios are of the same moment.
type block struct {
	*comparison
	load  load
	cells []*cell
}

// A cell is one arm in one block, with a sample for each round.
type cell struct {
	arm
	name    string // with the comparison and the load, for -run and benchstat
	work    work
	samples []sample
}

// blocks lays out what the comparisons' arms do under each load, as far as the
// name of a cell matches pick.
func blocks(comparisons []comparison, pick *regexp.Regexp) (all []*block) {
	for i := range comparisons {
		c := &comparisons[i]
		for _, l := range c.loads {
			b := &block{comparison: c, load: l}
			for _, a := range c.arms {
				b.add(a, pick)
			}
			if len(b.cells) > 0 {
				all = append(all, b)
			}
		}
	}
	return all
}

func (b *block) add(a arm, pick *regexp.Regexp) {
	name := fmt.Sprintf("%s/arm=%s/goroutines=%d", b.comparison.name, a.name, b.load.goroutines)
	if a.alone && b.load.goroutines > 1 || !pick.MatchString(name) {
		return
	}
	w := work{b.load.goroutines, max(1, b.load.records/b.load.goroutines), b.size}
	b.cells = append(b.cells, &cell{arm: a, name: name, work: w})
}

// Entrants returns the cells.
func (b *block) Entrants() []*cell { return b.cells }

// Keep drops the samples of the rounds after the first ones.
func (c *cell) Keep(rounds int) { c.samples = c.samples[:min(len(c.samples), rounds)] }

// Failure returns the error of the trial that failed, after which the cell is not run
// again, or nil.
func (c *cell) Failure() error {
	if n := len(c.samples); n > 0 {
		return c.samples[n-1].err
	}
	return nil
}

// run runs every cell once in each round. It stops between two trials when ctx ends.
func run(ctx context.Context, root string, all []*block, r command.Rounds, did func(*cell, sample)) (complete int, err error) {
	return r.Run(func(_ int, order *rand.Rand) error {
		return command.EachArm(ctx, order, all, func(b *block, c *cell) error {
			b.try(root, c, did, r.Talk)
			return nil
		})
	}, func(rounds int) { command.Keep(all, rounds) })
}

func (b *block) try(root string, c *cell, did func(*cell, sample), talk io.Writer) {
	if c.Failure() != nil {
		return
	}
	s := try(root, *b.comparison, c.arm, c.work)
	c.samples = append(c.samples, s)
	if s.err != nil {
		fmt.Fprintf(talk, "peers: %s: %v\n", c.name, s.err)
		return
	}
	did(c, s)
}
