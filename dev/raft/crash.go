package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"time"
)

// A crash is a run in which nodes are killed and stopped while commands come, and in which one is
// then far behind.
type crash struct {
	store  string
	time   time.Duration
	behind int
	seed   uint64
}

// run prints what was done, and returns an error if an acknowledged command is missing on a node, or
// one is there twice.
func (k crash) run(ctx context.Context, dir string, out io.Writer) (err error) {
	dir, err = os.MkdirTemp(dir, "raft-crash-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w\nseed %d; the files are in %s", err, k.seed, dir)
		} else {
			err = os.RemoveAll(dir)
		}
	}()
	c, err := newCluster(ctx, dir, k.store)
	if err != nil {
		return err
	}
	defer c.end()
	c.segment = 4 << 20 // so that segments end, and are used again
	for i := range size {
		if err := c.start(i); err != nil {
			return err
		}
	}
	kills, stops, err := k.crashes(c)
	if err != nil {
		return err
	}
	if err := k.verdict(c, out, "%d kills and %d stops in %v", kills, stops, k.time); err != nil || k.behind == 0 {
		return err
	}
	took, err := c.catchUp(k.behind, 128)
	if err != nil {
		return err
	}
	return k.verdict(c, out, "a follower was %d entries behind, and level after %v", k.behind, took.Round(time.Millisecond))
}

func (k crash) verdict(c *cluster, out io.Writer, format string, args ...any) error {
	v, err := c.judge()
	if err != nil {
		return err
	}
	if len(v.faults) > 0 {
		return errors.New(strings.Join(v.faults, "\n"))
	}
	if v.acknowledged == 0 {
		return errors.New("no command was acknowledged")
	}
	fmt.Fprintf(out, "%s: "+format+"; %d commands acknowledged, %d applied, each once on each node\n",
		append(append([]any{c.store}, args...), v.acknowledged, v.applied)...)
	return nil
}

// crashes kills and stops one node after the other, and at times all, while commands come.
func (k crash) crashes(c *cluster) (kills, stops int, err error) {
	r := rand.New(rand.NewPCG(k.seed, 0))
	load := func(clients int) error {
		for i, p := range c.nodes {
			if p == nil {
				continue
			}
			if _, err := c.ask(i, "load", clients); err != nil {
				return err
			}
		}
		return nil
	}
	for begin := time.Now(); time.Since(begin) < k.time; {
		if err := load(64); err != nil {
			return kills, stops, err
		}
		if _, err := c.leader(); err != nil {
			return kills, stops, err
		}
		time.Sleep(time.Duration(r.Int64N(int64(800 * time.Millisecond))))
		if err := c.ctx.Err(); err != nil {
			return kills, stops, err
		}
		down := []int{r.IntN(size)}
		if r.IntN(4) == 0 {
			down = r.Perm(size)
		}
		for _, i := range down {
			if r.IntN(4) == 0 {
				stops++
				if err := c.stop(i); err != nil {
					return kills, stops, err
				}
			} else {
				kills++
				c.kill(i)
			}
		}
		if len(down) == 1 {
			time.Sleep(time.Duration(r.Int64N(int64(time.Second))))
		}
		for _, i := range down {
			if err := c.start(i); err != nil {
				return kills, stops, err
			}
		}
	}
	return kills, stops, load(0)
}

// catchUp lets a follower be behind by entries that no snapshot has, and returns how long it takes
// until it has them.
func (c *cluster) catchUp(entries, bytes int) (time.Duration, error) {
	c.snapshots, c.trailing = 1<<40, 1<<40
	for i := range c.nodes {
		if err := c.stop(i); err != nil {
			return 0, err
		}
	}
	for i := range c.nodes {
		if err := c.start(i); err != nil {
			return 0, err
		}
	}
	leader, err := c.leader()
	if err == nil {
		err = c.level()
	}
	if err != nil {
		return 0, err
	}
	follower := (leader + 1) % size
	if err := c.stop(follower); err != nil {
		return 0, err
	}
	const step = 10_000
	for rest, failed := entries, 0; rest > 0; {
		if _, err := c.ask(leader, "fill", min(rest, step), bytes); err == nil {
			rest -= step
			continue
		} else if failed++; failed > 20 {
			return 0, err
		}
		if leader, err = c.leader(); err != nil { // on a busy machine the other may lead now
			return 0, err
		}
	}
	begin := time.Now()
	if err := c.start(follower); err != nil {
		return 0, err
	}
	err = c.level()
	return time.Since(begin), err
}
