package locks

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// mapKeys is how many keys the map has, at most: one for each operation of the
// published experiment.
const mapKeys = mapGoroutines * stepsEach

// A shared map can be used by many goroutines.
type sharedMap interface {
	get(key int64) (value int64, ok bool)
	set(key, value int64)
}

// A mapWay is one way to share a map.
type mapWay struct {
	name, does string
	each       time.Duration // of one operation, about
	start      func() sharedMap
}

// The ways' names.
const (
	withMutex   = "Mutex"
	withRWMutex = "RWMutex"
	withSyncMap = "sync.Map"
)

func mapWays() []mapWay {
	return []mapWay{
		{withMutex, "a map with a sync.Mutex", 150, func() sharedMap { return &mutexMap{m: map[int64]int64{}} }},
		{withRWMutex, "a map with a sync.RWMutex, which readers share", 200, func() sharedMap { return &rwMutexMap{m: map[int64]int64{}} }},
		{withSyncMap, "a sync.Map", 200, func() sharedMap { return new(syncMap) }},
	}
}

type mutexMap struct {
	lock sync.Mutex
	m    map[int64]int64
}

func (m *mutexMap) get(key int64) (int64, bool) {
	m.lock.Lock()
	value, ok := m.m[key]
	m.lock.Unlock()
	return value, ok
}

func (m *mutexMap) set(key, value int64) {
	m.lock.Lock()
	m.m[key] = value
	m.lock.Unlock()
}

type rwMutexMap struct {
	lock sync.RWMutex
	m    map[int64]int64
}

func (m *rwMutexMap) get(key int64) (int64, bool) {
	m.lock.RLock()
	value, ok := m.m[key]
	m.lock.RUnlock()
	return value, ok
}

func (m *rwMutexMap) set(key, value int64) {
	m.lock.Lock()
	m.m[key] = value
	m.lock.Unlock()
}

type syncMap struct{ m sync.Map }

func (m *syncMap) get(key int64) (int64, bool) {
	value, ok := m.m.Load(key)
	if !ok {
		return 0, false
	}
	return value.(int64), true
}

func (m *syncMap) set(key, value int64) { m.m.Store(key, value) }

// A mapLoad is a sequence of steps on a map. Out of a hundred, reads look a key up
// and the others set one, evenly mixed and the same for every way. Every pass does the
// same once more.
type mapLoad struct {
	load
	keys, reads int64
}

// isRead says so of exactly reads of any hundred steps in a row.
func (l mapLoad) isRead(step int64) bool { return step*l.reads%100 >= 100-l.reads }

// readKey walks over the keys by a prime that divides no round number. So a goroutine
// reads keys that all the others set.
func (l mapLoad) readKey(step int64) int64 { return step * 7919 % l.keys }

func (l mapLoad) setKey(step int64) int64 { return step % l.keys }

// setValue returns the value that every step stores for the key; before the first store it is 0.
func (l mapLoad) setValue(key int64) int64 { return key + 1<<20 }

// run does n steps from the first on, and returns how many reads found their key.
func (l mapLoad) run(m sharedMap, first, n int64) (found int64) {
	for step := first; step < first+n; step++ {
		if !l.isRead(step) {
			key := l.setKey(step)
			m.set(key, l.setValue(key))
		} else if _, ok := m.get(l.readKey(step)); ok {
			found++
		}
	}
	return found
}

func (w mapWay) task(c crew, l mapLoad) trial.Task {
	shared, found := w.start(), new(atomic.Int64)
	fill := func(string) error {
		for key := range l.keys {
			shared.set(key, 0)
		}
		return nil
	}
	do := func(_ context.Context, clock *trial.Clock) error {
		for range l.passes {
			c.work(l.steps, func(first, n int64) { found.Add(l.run(shared, first, n)) })
		}
		clock.Lap(trial.Work)
		return nil
	}
	return trial.Task{Make: fill, Do: do, Check: func(string) error { return l.check(shared, found.Load()) }}
}

// check replays the steps, and asks the map for every key.
func (l mapLoad) check(m sharedMap, found int64) error {
	reads, set := int64(0), make([]bool, l.keys)
	for step := range l.steps {
		if l.isRead(step) {
			reads++
		} else {
			set[l.setKey(step)] = true
		}
	}
	if reads *= l.passes; found != reads {
		return fmt.Errorf("%d of %d reads found their key", found, reads)
	}
	for key := range l.keys {
		want := int64(0)
		if set[key] {
			want = l.setValue(key)
		}
		if value, ok := m.get(key); !ok || value != want {
			return fmt.Errorf("the map has %d at the key %d, not %d", value, key, want)
		}
	}
	return nil
}

// Figures of the arm of the held lock.
const (
	admittedWhileHeld = "readers_while_held"
	admittedAfter     = "readers_after"
)

func (c crew) mapArms(l load, reads int64) (arms []study.Arm) {
	for _, way := range mapWays() {
		does := mapLoad{load: l, keys: min(l.steps, mapKeys), reads: reads}
		cell := result.Cell{
			Name: mapName(way.name, reads) + c.suffix, Group: fmt.Sprintf("map, %d %% reads%s", reads, c.suffix), Does: way.does,
			Writers: c.goroutines, Records: l.all(),
		}
		arms = append(arms, study.Arm{Cell: cell, Time: stepsTime(l.all(), way.each), Task: func() trial.Task { return way.task(c, does) }})
	}
	return arms
}
