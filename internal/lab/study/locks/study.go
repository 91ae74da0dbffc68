// Package locks is the study of the other two experiments that the file experiment is
// called the third of: a counter that many goroutines add to, and a map that they
// share.
//
// In the clock is the work from the start of the first goroutine until the last has
// ended. So the starting of goroutines is in it for all alike; an arm shows what that
// alone takes. The maps are filled, and the lines of the file are made, before it
// starts. The two file arms have the published clock: the writes and the last flush.
// Counts, keys, values and bytes are checked after it.
//
// The counter without a lock loses increments on purpose. It is an atomic load and an
// atomic store: another goroutine's store between the two is lost just as with count++.
// But it is no data race by Go's memory model, so the race detector still finds those
// that are not meant. The store is an exchange on amd64, so the arm's time is no
// measure of what count++ takes.
//
// Start with [Study].
package locks

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/lab/result"
	"github.com/holdfast-go/holdfast/internal/lab/study"
	"github.com/holdfast-go/holdfast/internal/lab/trial"
)

// Study returns the study, with its arms and claims.
func Study() study.Study {
	return study.Study{
		Name:      "locks",
		Question:  "what do a lock for every step, a lock for readers and batches cost many goroutines",
		Source:    study.FileIOExperiment,
		Takes:     []string{study.TakesCount, study.TakesWriters},
		Published: []study.Table{trilogy},
		Arms:      locksArms,
		Twin:      counterName("mutex"),
		Show:      showLocks,
		Claims:    locksClaims,
	}
}

// trilogy is the summary as it was printed.
var trilogy = study.Table{
	Title:  "The trilogy as published",
	Source: study.FileIOExperiment,
	Head:   []string{"Experiment", "Expensive Operation", "Batching Strategy", "Result"},
	Rows: [][]string{
		{"Atomic Counters", "Lock acquisition", "Batch updates per goroutine", "Faster"},
		{"Mutex vs RWMutex", "Write lock contention", "Read-heavy workloads", "2-3x speedup"},
		{"File I/O", "System calls", "Buffer in memory", "20x speedup"},
	},
}

// What the two experiments ran: 500 goroutines that add one a thousand times each,
// and 50 with a thousand operations on a map.
const (
	counterGoroutines = 500
	mapGoroutines     = 50
	stepsEach         = 1000
	fileLines         = 20_000
	usualPasses       = 10
)

// readShares are the parts of the map's operations that read, in percent.
var readShares = []int64{0, 20, 50, 80, 90, 95, 99}

// The names of the arms. Where several numbers of goroutines were chosen, those
// after the first are in the name.
const (
	fileEach     = "file, one write a line"
	fileBuffered = "file, bufio"
	heldLock     = "rwmutex, held"
)

func counterName(way string) string { return "counter, " + way }

func mapName(way string, reads int64) string { return fmt.Sprintf("map, %d %% reads, %s", reads, way) }

// A crew is how many goroutines work, and how arms of it are named.
type crew struct {
	goroutines int
	suffix     string
}

// crews returns those that were chosen, or the published one.
func crews(chosen []int, published int) []crew {
	var all []crew
	for i, n := range study.Or(chosen, []int{published}) {
		c := crew{goroutines: n}
		if i > 0 {
			c.suffix = fmt.Sprintf(", %d goroutines", n)
		}
		all = append(all, c)
	}
	return all
}

// A load is how much a trial does: an experiment takes a millisecond or two, which
// says little, so it is done several times over in each trial.
type load struct{ steps, passes int64 }

// load is the count that was chosen, or the published one: a thousand steps for each
// goroutine. It is repeated as often as the preset says.
func (c crew) load(choice study.Choice) load {
	if choice.Count > 0 {
		return load{steps: choice.Count, passes: 1}
	}
	passes := map[string]int64{study.PresetQuick: 3, study.PresetFull: 40}[choice.Preset.Name]
	return load{steps: int64(c.goroutines) * stepsEach, passes: cmp.Or(passes, usualPasses)}
}

func (l load) all() int64 { return l.steps * l.passes }

func locksArms(c study.Choice) []study.Arm {
	var arms []study.Arm
	for _, crew := range crews(c.Writers, counterGoroutines) {
		arms = append(arms, crew.counterArms(crew.load(c))...)
	}
	for _, crew := range crews(c.Writers, mapGoroutines) {
		for _, reads := range readShares {
			arms = append(arms, crew.mapArms(crew.load(c), reads)...)
		}
	}
	lines := int64(fileLines)
	if c.Count > 0 {
		lines = c.Count
	}
	return append(arms, heldArm(), linesArm(fileEach, lines, false), linesArm(fileBuffered, lines, true))
}

// heldArm asks a RWMutex for its read lock while another has the write lock, and
// after.
func heldArm() study.Arm {
	cell := result.Cell{
		Name: heldLock, Group: "held", Does: "goroutines try to read while one holds the write lock",
		Writers: mapGoroutines, Records: mapGoroutines,
	}
	return study.Arm{Cell: cell, Time: time.Millisecond, Task: func() trial.Task {
		held, after := new(atomic.Int64), new(atomic.Int64)
		do := func(_ context.Context, clock *trial.Clock) error {
			var lock sync.RWMutex
			try := func(admitted *atomic.Int64) {
				crew{goroutines: mapGoroutines}.work(mapGoroutines, func(_, _ int64) {
					if lock.TryRLock() {
						admitted.Add(1)
						lock.RUnlock()
					}
				})
			}
			lock.Lock()
			try(held)
			lock.Unlock()
			try(after)
			clock.Lap(trial.Work)
			clock.Tell(admittedWhileHeld, float64(held.Load()))
			clock.Tell(admittedAfter, float64(after.Load()))
			return nil
		}
		check := func(string) error {
			if n := after.Load(); n != mapGoroutines {
				return fmt.Errorf("%d of %d goroutines had the read lock that was free", n, mapGoroutines)
			}
			return nil
		}
		return trial.Task{Do: do, Check: check}
	}}
}

// stepsTime is about what a trial takes: its steps, and what is made before and
// checked after.
func stepsTime(steps int64, each time.Duration) time.Duration {
	return 5*time.Millisecond + time.Duration(steps)*each
}
