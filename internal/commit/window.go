package commit

import (
	"runtime"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/sys"
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
	// A window is from a quarter of a sync on, and twice as long as a batch took to be back, so that few miss it.
	windowShare, comebackTwice = 4, 2
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

// length is how long the leader waits at most. Two half batches take as long as a whole one that is away for a sync: then
// the window is closed.
func (j *window) length() time.Duration {
	if j.comeback > j.work {
		return 0
	}
	quarter, most := j.work/windowShare, j.work
	if !j.first.IsZero() { // those have waited that came during the last sync
		most = min(most, most+quarter-time.Since(j.first))
	}
	return max(quarter, min(most, comebackTwice*j.comeback))
}

// await lets others join a leader that has mu, and releases mu meanwhile. Calls counts those that have
// joined, the leader included.
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

// yield waits by letting other goroutines run, and other threads: the goroutine that wakes the last batch may have lost its
// processor to this very thread, and nobody comes before it has it again. Without that, one leader in two waited in vain
// (8 goroutines, a sync of 60 µs, 2 CPUs: batches of 4 in place of 8).
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
