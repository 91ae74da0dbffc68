package commit

import (
	"runtime"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// A window bounds the time in which a leader lets others join. Without it group commit falls into
// half batches: the first goroutine to wake starts a small sync, and the others wait for it. So a
// leader waits for the expected number of calls, but at most for the time of a sync. No call waits
// for more than 2¼ syncs. The zero window does not wait.
type window struct {
	work     time.Duration // the time of the last batch's work
	expected int           // number of calls that may come: the last batch, and the calls that waited meanwhile
	released time.Time     // the end of the last batch
	away     int           // number of its calls that are not back
	comeback time.Duration // the time until a batch was back, except for an eighth of it
	first    time.Time     // the arrival of the first call in the next batch
	enough   bool          // no other call can join this batch
	parked   bool          // a leader sleeps until the expected number is there
	arrivals chan struct{}
}

const (
	// A window lasts at least a quarter of a sync, and twice the comeback of a batch, so that few
	// calls miss it.
	windowShare, comebackTwice = 4, 2
	// stragglers: comeback does not count an eighth of a batch.
	stragglers = 8
	// maxYields bounds the wait by yielding, whatever the clock does.
	maxYields = 1000
	// parkAbove is the shortest window for which the leader sleeps. On Linux an idle Go
	// program waits in whole milliseconds. So a window that does not fill may end 1 ms late.
	parkAbove = 200 * time.Microsecond
)

// finished records the size of a batch, and the number of calls that waited meanwhile.
func (j *window) finished(size, waiting int) {
	now := time.Now()
	if j.away > 0 {
		j.comeback = now.Sub(j.released) // at least
	}
	j.expected, j.released, j.away = size+waiting, now, size-size/stragglers
}

// back counts a call, and records the comeback when the last batch is back. It does so even if no
// leader waits: so the window opens again after it was too short, and does not open for goroutines
// that stay away.
func (j *window) back() {
	if j.away--; j.away == 0 {
		j.comeback = time.Since(j.released)
	}
}

// joined records the number of calls in the batch, including the leader.
func (j *window) joined(calls int) {
	if j.first.IsZero() {
		j.first = time.Now()
	}
	j.back()
	if calls >= j.expected {
		j.wake()
	}
}

// hurry ends the leader's wait, or the next one's: no other call can join.
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

// length returns the longest wait of the leader. If a batch takes longer than a sync to be back,
// two half batches are as fast as a whole one: then the window is closed.
func (j *window) length() time.Duration {
	if j.comeback > j.work {
		return 0
	}
	quarter, most := j.work/windowShare, j.work
	if !j.first.IsZero() { // calls that came during the last sync have waited already
		most = min(most, most+quarter-time.Since(j.first))
	}
	return max(quarter, min(most, comebackTwice*j.comeback))
}

// await lets others join a leader that has mu, and releases mu meanwhile. calls counts the calls in
// the batch, including the leader.
func (j *window) await(mu sync.Locker, calls *int) {
	window := j.length()
	if !j.enough && *calls < j.expected && window > 0 {
		if window < parkAbove {
			j.yield(mu, calls, window)
		} else {
			j.park(mu, calls, window)
		}
	}
	j.enough, j.first = false, time.Time{}
}

// yield waits by letting other goroutines and threads run: the goroutine that wakes the last batch
// may have lost its processor to this thread, and no call comes before it runs again. Without that,
// one leader in two waited in vain (8 goroutines, a sync of 60 µs, 2 CPUs: batches of 4 instead of
// 8).
func (j *window) yield(mu sync.Locker, calls *int, window time.Duration) {
	start := time.Now()
	for i := 0; i < maxYields && !j.enough && *calls < j.expected; i++ {
		mu.Unlock()
		sys.YieldThread()
		runtime.Gosched()
		late := time.Since(start) > window
		mu.Lock()
		if late {
			return
		}
	}
}

func (j *window) park(mu sync.Locker, calls *int, window time.Duration) {
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
