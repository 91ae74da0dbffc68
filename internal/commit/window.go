package commit

import (
	"runtime"
	"sync"
	"time"
)

// A window decides how long the leader of a batch lets others join. Without it group commit falls into half
// batches: the first goroutine to wake starts a tiny sync, and the rest waits for that. So a leader waits for
// as many as are likely to come, but at most for a sync. Nobody waits for more than two syncs and a
// quarter. The zero window does not wait.
type window struct {
	work     time.Duration // how long the work of the last batch took
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

// finished records the size of a batch, and how many waited meanwhile.
func (j *window) finished(size, waiting int) {
	now := time.Now()
	if j.away > 0 {
		j.comeback = now.Sub(j.released) // or longer
	}
	j.expected, j.released, j.away = size+waiting, now, size-size/stragglers
}

// back counts one that has come, and records when those of the last batch are back. This is
// known whether a leader waits for them or not. So the window opens again after it was
// too short, and does not open for goroutines that stay away.
func (j *window) back() {
	if j.away--; j.away == 0 {
		j.comeback = time.Since(j.released)
	}
}

// joined records how many have joined so far, the leader included.
func (j *window) joined(calls int) {
	if j.first.IsZero() {
		j.first = time.Now()
	}
	j.back()
	if calls >= j.expected {
		j.wake()
	}
}

// hurry says that nobody else can join. It ends the leader's wait, or the next one's.
func (j *window) hurry() {
	j.enough = true
	j.wake()
}

func (j *window) wake() {
	if j.parked {
		j.parked = false
		close(j.arrivals)
	}
}

func (j *window) length() time.Duration {
	if j.work >= slowSync && j.comeback <= j.work {
		quarter := j.work / windowShare
		most := j.work // of which those have waited that came during the last sync
		if !j.first.IsZero() {
			most = min(most, j.work+quarter-time.Since(j.first))
		}
		return max(quarter, min(most, comebackTwice*j.comeback))
	}
	if j.comeback > j.work/comebackShare {
		return 0
	}
	return j.work / windowShare
}

// await lets others join a leader that has mu, and releases mu meanwhile. Calls counts those that have
// joined, the leader included.
func (j *window) await(mu sync.Locker, calls *int) {
	window := j.length()
	if !j.enough && *calls < j.expected && window > 0 {
		if window < parkAbove {
			j.yield(mu, calls, window)
		} else {
			j.park(mu, window)
		}
	}
	j.enough, j.first = false, time.Time{}
}

func (j *window) yield(mu sync.Locker, calls *int, window time.Duration) {
	start := time.Now()
	for i := 0; i < maxYields && !j.enough && *calls < j.expected; i++ {
		mu.Unlock()
		runtime.Gosched()
		late := time.Since(start) > window
		mu.Lock()
		if late {
			return
		}
	}
}

func (j *window) park(mu sync.Locker, window time.Duration) {
	j.parked, j.arrivals = true, make(chan struct{})
	timer := time.NewTimer(window)
	mu.Unlock()
	select {
	case <-j.arrivals:
	case <-timer.C:
	}
	timer.Stop()
	mu.Lock()
	j.parked = false
}
