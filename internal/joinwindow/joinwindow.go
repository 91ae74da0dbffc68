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
// a fraction of a sync. The zero Window does not wait. The lock of the group commit guards
// it.
type Window struct {
	sync     time.Duration // how long the last sync took
	patience int           // the window is sync >> (joinShift + patience)
	expected int           // how many may come: the last batch, and those that waited meanwhile
	parked   bool          // a leader sleeps until expected have come
	arrivals chan struct{}
}

const (
	// joinShift makes the window a quarter of a sync: half batches cost a half.
	joinShift = 2
	// maxPatience ends the wait for goroutines that do not come back.
	maxPatience = 8
	// maxYields bounds the wait by yielding, whatever the clock does.
	maxYields = 1000
	// parkAbove is the shortest window for which a timer is precise enough.
	parkAbove = 200 * time.Microsecond
)

// Took records how long a sync took.
func (j *Window) Took(d time.Duration) { j.sync = d }

// Finished records the size of a batch, and how many waited meanwhile.
func (j *Window) Finished(size, waiting int) { j.expected = size + waiting }

// Arrived records how many have joined so far, the leader included.
func (j *Window) Arrived(joined int) {
	if j.parked && joined >= j.expected {
		j.parked = false
		close(j.arrivals)
	}
}

func (j *Window) length() time.Duration { return j.sync >> (joinShift + j.patience) }

// Await lets others join a leader that has mu, and releases mu meanwhile. joined returns,
// under mu, how many have joined, the leader included. The end of stop ends the wait.
func (j *Window) Await(mu sync.Locker, joined func() int, stop <-chan struct{}) {
	window := j.length()
	if joined() >= j.expected || window == 0 {
		return
	}
	if window < parkAbove {
		j.yield(mu, joined, window)
	} else {
		j.park(mu, window, stop)
	}
	j.ended(joined() >= j.expected)
}

func (j *Window) yield(mu sync.Locker, joined func() int, window time.Duration) {
	start := time.Now()
	for i := 0; i < maxYields && joined() < j.expected; i++ {
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

// ended records whether all came for which a leader waited.
func (j *Window) ended(all bool) {
	if all {
		j.patience = 0
	} else if j.patience < maxPatience {
		j.patience++
	}
}
