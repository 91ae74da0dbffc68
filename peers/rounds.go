package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"time"
)

// A block is one comparison under one load: the cells that are run close
// together in each round, so that their ratios are of the same moment.
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

// failed returns the error of the trial that did, after which the cell is not
// run again, or nil.
func (c *cell) failed() error {
	if n := len(c.samples); n > 0 {
		return c.samples[n-1].err
	}
	return nil
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

// run runs every cell once in each round, the blocks and the cells of a block in
// a new order each time. It stops between two trials when ctx ends, and then
// forgets the round that it was in: complete is how many there are.
func run(ctx context.Context, root string, all []*block, rounds int, seed uint64, did func(*cell, sample), talk io.Writer) (complete int, err error) {
	order := rand.New(rand.NewPCG(seed, 0))
	start, done := time.Now(), 0
	for round := range rounds {
		for _, i := range order.Perm(len(all)) {
			b := all[i]
			for _, j := range order.Perm(len(b.cells)) {
				if err := ctx.Err(); err != nil {
					cut(all, round)
					return round, err
				}
				b.try(root, b.cells[j], did, talk)
			}
			done++
		}
		left := time.Since(start) / time.Duration(done) * time.Duration(rounds*len(all)-done)
		fmt.Fprintf(talk, "peers: round %d of %d done, %v left\n", round+1, rounds, left.Round(time.Second))
	}
	return rounds, nil
}

// cut drops the samples of the rounds after the first ones.
func cut(all []*block, rounds int) {
	for _, b := range all {
		for _, c := range b.cells {
			c.samples = c.samples[:min(len(c.samples), rounds)]
		}
	}
}

func (b *block) try(root string, c *cell, did func(*cell, sample), talk io.Writer) {
	if c.failed() != nil {
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
