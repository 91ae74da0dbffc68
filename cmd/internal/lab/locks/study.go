// Package locks is the study of two experiments: a counter that many goroutines add
// to, and a map that they share. The file experiment is called the third of their
// trilogy.
//
// In the clock is the work from the start of the first goroutine until the last has
// ended. So the starting of goroutines is in it for all alike; an arm shows what that
// alone takes. The maps are filled, and the lines of the file are made, before it
// starts. The two file arms have the published clock: the writes and the last flush.
// Counts, keys, values and bytes are checked after it.
//
// The counter without a lock loses increments on purpose. It is an atomic load and an
// atomic store: another goroutine's store between the two is lost just as with count++.
// But it is no data race by Go's memory model, so the race detector still finds the unintended
// races. The store is an exchange on amd64, so the arm's time is no measure of count++.
//
// Start with [Study].
package locks

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/chart"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
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
		Claims:    study.ClaimsOf(study.FileIOExperiment, locksClaims),
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

// The sizes of the two experiments: 500 goroutines that add one a thousand times each,
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

// crews returns the chosen crews, or the published one.
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

// A load is how much a trial does. An experiment takes a millisecond or two, which
// says little, so each trial does it several times.
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

// stepsTime estimates a trial: its setup, its steps and its check.
func stepsTime(steps int64, each time.Duration) time.Duration {
	return 5*time.Millisecond + time.Duration(steps)*each
}

func showLocks(e study.Evidence) study.Shown {
	return study.Shown{
		Tables:  []study.Table{trilogyHere(e), countersHere(e), mapsHere(e)},
		Picture: mapPicture(e),
		Learnt:  locksLearnt(e),
	}
}

// trilogyHere is the published summary with our figures.
func trilogyHere(e study.Evidence) study.Table {
	t := study.Table{Title: "The trilogy here", Head: trilogy.Head}
	results := []string{
		study.SpeedUp(e, counterName("mutex"), counterName("batched")),
		study.SpeedUp(e, mapName(withMutex, 95), mapName(withRWMutex, 95)) + " at 95 % reads",
		study.SpeedUp(e, fileEach, fileBuffered),
	}
	for i, row := range trilogy.Rows {
		t.Rows = append(t.Rows, append(slices.Clone(row[:len(row)-1]), results[i]))
	}
	t.Notes = []string{
		"A result is how many times as long the way without the strategy took, with its 95 % interval.",
		"A lock for readers batches nothing: the second row is a strategy of another kind.",
		"The lines of the file are made before the clock starts; the study lines has the published form, which makes them in it.",
		study.OnCPUs(e),
	}
	return t
}

func countersHere(e study.Evidence) study.Table {
	t := study.Table{
		Title: "A counter",
		Notes: []string{
			"Each way starts its goroutines in the clock; \"" + onlyStart + "\" is what that takes.",
			"The racy way is an atomic load and an atomic store, which loses increments as count++ does but is no data race; its time is not that of count++.",
		},
	}
	lost := e.IntervalOf("Lost", study.Each(study.Value(lostIncrements)), study.Percent)
	return study.Tabulate(t, append(e.InGroups("counter"), e.InGroups("goroutines")...), []study.ArmColumn{
		{Head: "Way", Cell: func(c result.Cell) string { return strings.TrimPrefix(c.Name, counterName("")) }},
		goroutines, study.Records("Increments"),
		{Head: "Time of 1000 each", Cell: func(c result.Cell) string {
			return study.Duration(e.Median(c.Name, study.PerRecord) * float64(c.Writers) * stepsEach)
		}},
		e.IntervalOf("Per increment", study.PerRecord, study.Duration), e.MedianOf("CPUs used", study.CPUsUsed, study.Digits),
		{Head: lost.Head, Cell: func(c result.Cell) string {
			if !strings.HasPrefix(c.Group, "counter") {
				return study.Dash
			}
			return lost.Cell(c)
		}},
		e.Against("Against the mutex", func(c result.Cell) string {
			suffix, counts := strings.CutPrefix(c.Group, "counter")
			if !counts {
				return ""
			}
			return counterName("mutex") + suffix
		}),
	})
}

var goroutines = study.ArmColumn{Head: "Goroutines", Cell: func(c result.Cell) string { return study.Whole(float64(c.Writers)) }}

func mapsHere(e study.Evidence) study.Table {
	t := study.Table{
		Title: "A map, time of one operation",
		Notes: []string{
			"Against: the time as a multiple of the Mutex's, so below 1 is faster, with a 95 % interval for each ratio alone.",
			"CPUs used: where it is about 1 (one CPU, or other programs have the rest) no two readers read at once.",
			"The map has all its keys before the clock starts; a sync.Map keeps its values as interfaces, and allocates one for each write.",
			heldHere(e),
		},
	}
	// A row has all ways of a group, and is its mutex arm.
	rows := slices.DeleteFunc(e.InGroups("map"), func(c result.Cell) bool { return !strings.Contains(c.Name, " "+withMutex) })
	of := func(way string, column study.ArmColumn) study.ArmColumn {
		return study.ArmColumn{Head: column.Head, Cell: func(c result.Cell) string {
			c.Name = strings.Replace(c.Name, " "+withMutex, " "+way, 1)
			return column.Cell(c)
		}}
	}
	each := func(way string) study.ArmColumn { return of(way, e.IntervalOf(way, study.PerRecord, study.Duration)) }
	against := func(way string) study.ArmColumn {
		return of(way, e.Against(way+" against "+withMutex, func(c result.Cell) string { return strings.Replace(c.Name, " "+way, " "+withMutex, 1) }))
	}
	return study.Tabulate(t, rows, []study.ArmColumn{
		{Head: "Reads", Cell: func(c result.Cell) string {
			reads, _, _ := strings.Cut(strings.TrimPrefix(c.Group, "map, "), " reads")
			return reads
		}},
		goroutines, each(withMutex), each(withRWMutex), each(withSyncMap), against(withRWMutex), against(withSyncMap),
		of(withRWMutex, e.MedianOf("CPUs used by "+withRWMutex, study.CPUsUsed, study.Digits)),
	})
}

func heldHere(e study.Evidence) string {
	n := e.Median(heldLock, study.Value(admittedWhileHeld))
	if math.IsNaN(n) {
		return "Whether a held write lock lets readers in was not tried."
	}
	return fmt.Sprintf("While one goroutine held the write lock, %s of %d readers were let in.", study.Whole(n), mapGoroutines)
}

// mapPicture has a row for each share of reads, and a dot for each way.
func mapPicture(e study.Evidence) *chart.Dots {
	d := &chart.Dots{Title: "Time of one operation on a shared map, by the share of reads", Scale: study.Duration}
	for _, w := range mapWays() {
		d.Series = append(d.Series, w.name)
	}
	for _, reads := range readShares {
		row := chart.Row{Label: fmt.Sprintf("%d %% reads", reads)}
		for i, way := range d.Series {
			row.Points = append(row.Points, study.Point(i, e.Summary(mapName(way, reads), study.PerRecord)))
		}
		d.Rows = append(d.Rows, row)
	}
	return d
}

func locksLearnt(e study.Evidence) string {
	each := func(way string) string { return study.Duration(e.Median(counterName(way), study.PerRecord)) }
	more := fmt.Sprintf(" (%s an increment, %s under a mutex for each, %s as an atomic addition)", each("batched"), each("mutex"), each("atomic"))
	parts := e.Learnt(
		study.Said{Format: "batches made a counter %s as fast" + more, Over: mutexCounter, Under: counterName("batched")},
		study.Said{Format: "a lock that readers share made a map %s as fast at 95 %% reads", Over: mapName(withMutex, 95), Under: mapName(withRWMutex, 95)},
		study.Said{Format: "a buffer made a file take lines %s as fast", Over: fileEach, Under: fileBuffered},
	)
	if parts == nil {
		return ""
	}
	return fmt.Sprintf("on %s CPUs %s", e.Fact("GOMAXPROCS"), strings.Join(parts, ", "))
}
