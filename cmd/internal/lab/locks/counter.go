package locks

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// A counterWay is one way for many goroutines to add up one number.
type counterWay struct {
	name, does string
	each       time.Duration // of one increment, about
	start      func() counter
}

// A counter is a number that goroutines share. Each calls count, which adds one n
// times; total is for after the last.
type counter struct {
	count func(n int64)
	total func() int64
}

// onlyStart is the way that counts nothing, and racy the one that may lose some.
const (
	onlyStart = "start only"
	racy      = "racy"
)

// lostIncrements is the name of the value that a racy counter reports.
const lostIncrements = "lost_increments"

var counterWays = []counterWay{
	{racy, "an atomic load and an atomic store: increments are lost between the two", 15, func() counter {
		sum := new(atomic.Int64)
		return counter{total: sum.Load, count: func(n int64) {
			for range n {
				sum.Store(sum.Load() + 1)
			}
		}}
	}},
	{"mutex", "a sync.Mutex for each increment", 60, func() counter { return batchedCounter(1) }},
	{"atomic", "atomic.Int64.Add", 20, func() counter {
		sum := new(atomic.Int64)
		return counter{total: sum.Load, count: func(n int64) {
			for range n {
				sum.Add(1)
			}
		}}
	}},
	{"batches of 10", "ten increments of its own, then one lock", 6, func() counter { return batchedCounter(10) }},
	{"batched", "each goroutine counts alone and takes the lock once", 2, func() counter { return batchedCounter(math.MaxInt64) }},
	{onlyStart, "the goroutines start and end, and count nothing", 1, idleCounter},
}

// batchedCounter takes the lock after each size increments, and at the end.
func batchedCounter(size int64) counter {
	var lock sync.Mutex
	sum := int64(0)
	add := func(n int64) {
		lock.Lock()
		sum += n
		lock.Unlock()
	}
	return counter{total: func() int64 { return sum }, count: func(n int64) {
		own := int64(0)
		for range n {
			if own++; own == size {
				add(own)
				own = 0
			}
		}
		if own > 0 {
			add(own)
		}
	}}
}

func idleCounter() counter {
	return counter{total: func() int64 { return 0 }, count: func(int64) {}}
}

func (w counterWay) task(c crew, l load) trial.Task {
	shared := w.start()
	do := func(_ context.Context, clock *trial.Clock) error {
		for range l.passes {
			c.work(l.steps, func(_, n int64) { shared.count(n) })
		}
		clock.Lap(trial.Work)
		clock.Tell(lostIncrements, float64(l.all()-shared.total()))
		return nil
	}
	return trial.Task{Do: do, Check: func(string) error { return w.check(shared.total(), l.all()) }}
}

// check allows what the way says of itself: a racy counter may be short, but has
// counted something, and nothing twice.
func (w counterWay) check(total, steps int64) error {
	switch {
	case w.name == onlyStart && total == 0, total == steps:
		return nil
	case w.name == racy && 0 < total && total < steps:
		return nil
	}
	return fmt.Errorf("the counter %q is at %d after %d increments", w.name, total, steps)
}

// work shares the steps out among the goroutines, the same number to each but for the
// remainder. It returns when all have done theirs: those from its first on, n of them.
func (c crew) work(steps int64, do func(first, n int64)) {
	var all sync.WaitGroup
	share := func(g int) int64 { return steps * int64(g) / int64(c.goroutines) }
	for g := range c.goroutines {
		all.Go(func() { do(share(g), share(g+1)-share(g)) })
	}
	all.Wait()
}

func (c crew) counterArms(l load) (arms []study.Arm) {
	for _, way := range counterWays {
		cell := result.Cell{
			Name: counterName(way.name) + c.suffix, Group: "counter" + c.suffix, Does: way.does,
			Writers: c.goroutines, Records: l.all(),
		}
		if way.name == onlyStart {
			cell.Group = "goroutines" + c.suffix
		}
		arms = append(arms, study.Arm{Cell: cell, Time: stepsTime(l.all(), way.each), Task: func() trial.Task { return way.task(c, l) }})
	}
	return arms
}
