// Package joinwindow lets the leader of a group commit wait for others.
package joinwindow

import (
	"runtime"
	"sync"
	"time"
)

// A Window decides how long the leader of a group commit lets others join. Without it group
// commit falls into half batches: the first goroutine to wake starts a tiny sync, and the
// rest waits for that. So a leader waits for as many as are likely to come, but at most for
// a sync. Nobody waits for more than two syncs and a quarter. The zero Window does not wait. The
// lock of the group commit guards it.
type Window struct {
	sync     time.Duration // how long the last sync took
	expected int           // how many may come: the last batch, and those that waited meanwhile
	released time.Time     // when the last batch was
	away     int           // how many of it are not back
	comeback time.Duration // how long a batch took to be back, all but an eighth of it
	first    time.Time     // when the first of those came that wait for the next batch
	enough   bool          // nobody else can join this batch
	parked   bool          // a leader sleeps until expected have come
	arrivals chan struct{}
}

const (
	// windowShare makes the window a quarter of a sync: half batches cost a half.
	windowShare = 4
	// comebackShare closes the window for goroutines that take longer than a third of a sync, if that is
	// fast. In a quarter too few of them come to pay for it. A batch of a few that is soon back would open
	// it in between (docs/design/decisions.md).
	comebackShare = 3
	// slowSync is from when on a window may be more than a quarter. It is twice as long then as a
	// batch took to be back, so that few miss it. Two half batches take as long as a whole one that
	// is away for a sync. For faster syncs this gained nothing (docs/design/decisions.md).
	slowSync      = parkAbove * windowShare
	comebackTwice = 2
	// stragglers is the part of a batch that comeback does not count.
	stragglers = 8
	// maxYields bounds the wait by yielding, whatever the clock does.
	maxYields = 1000
	// parkAbove is the shortest window for which the leader sleeps. On Linux an idle Go
	// program waits in whole milliseconds. So a window that does not fill may end 1 ms late.
	parkAbove = 200 * time.Microsecond
)

// Took records how long a sync took.
func (j *Window) Took(d time.Duration) { j.sync = d }

// Finished records the size of a batch, and how many waited meanwhile.
func (j *Window) Finished(size, waiting int) {
	now := time.Now()
	if j.away > 0 {
		j.comeback = now.Sub(j.released) // or longer
	}
	j.expected, j.released, j.away = size+waiting, now, size-size/stragglers
}

// back counts one that has come, and records when those of the last batch are back. This is
// known whether a leader waits for them or not. So the window opens again after it was
// too short, and does not open for goroutines that stay away.
func (j *Window) back() {
	if j.away--; j.away == 0 {
		j.comeback = time.Since(j.released)
	}
}

// Arrived records how many have joined so far, the leader included.
func (j *Window) Arrived(joined int) {
	if j.first.IsZero() {
		j.first = time.Now()
	}
	j.back()
	if joined >= j.expected {
		j.wake()
	}
}

// Enough says that nobody else can join, because memory is full. It ends the leader's wait,
// or the next one's.
func (j *Window) Enough() {
	j.enough = true
	j.wake()
}

func (j *Window) wake() {
	if j.parked {
		j.parked = false
		close(j.arrivals)
	}
}

func (j *Window) length() time.Duration {
	if j.sync >= slowSync && j.comeback <= j.sync {
		quarter := j.sync / windowShare
		most := j.sync // of which those have waited that came during the last sync
		if !j.first.IsZero() {
			most = min(most, j.sync+quarter-time.Since(j.first))
		}
		return max(quarter, min(most, comebackTwice*j.comeback))
	}
	if j.comeback > j.sync/comebackShare {
		return 0
	}
	return j.sync / windowShare
}

// Await lets others join a leader that has mu, and releases mu meanwhile. joined returns,
// under mu, how many have joined, the leader included. The end of stop ends the wait.
func (j *Window) Await(mu sync.Locker, joined func() int, stop <-chan struct{}) {
	j.back() // the leader
	defer func() { j.enough, j.first = false, time.Time{} }()
	window := j.length()
	if j.enough || joined() >= j.expected || window == 0 {
		return
	}
	if window < parkAbove {
		j.yield(mu, joined, window)
	} else {
		j.park(mu, window, stop)
	}
}

func (j *Window) yield(mu sync.Locker, joined func() int, window time.Duration) {
	start := time.Now()
	for i := 0; i < maxYields && !j.enough && joined() < j.expected; i++ {
		mu.Unlock()
		runtime.Gosched()
		late := time.Since(start) > window
		mu.Lock()
		if late {
			return
		}
	}
}

func (j *Window) park(mu sync.Locker, window time.Duration, stop <-chan struct{}) {
	j.parked, j.arrivals = true, make(chan struct{})
	timer := time.NewTimer(window)
	mu.Unlock()
	select {
	case <-j.arrivals:
	case <-timer.C:
	case <-stop:
	}
	timer.Stop()
	mu.Lock()
	j.parked = false
}
