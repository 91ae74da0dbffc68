package joinwindow

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestWindowFollowsHowLongABatchTakesToComeBack opens the window by the last comeback,
// whether a leader waited for it or not, and closes it for goroutines that stay away.
func TestWindowFollowsHowLongABatchTakesToComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j Window
		if d := j.length(); d != 0 {
			t.Errorf("before the first sync: %v", d)
		}
		check := func(what string, sync, after time.Duration, come int, want time.Duration) {
			t.Helper()
			j.Took(sync)
			j.Finished(16, 0)
			time.Sleep(after)
			for i := range come {
				j.Arrived(i + 1)
			}
			j.first = time.Time{} // its leader has begun
			time.Sleep(2*sync - after)
			if d := j.length(); d != want {
				t.Errorf("%s: %v, want %v", what, d, want)
			}
		}
		const slow, fast = time.Second, slowSync - 1
		check("at once", slow, 0, 16, slow/windowShare)
		check("an eighth late", slow, 0, 14, slow/windowShare)
		check("soon", slow, slow/5, 16, 2*slow/5)
		check("late", slow, slow*3/5, 16, slow)
		check("just in time", slow, slow, 16, slow)
		check("all too late", slow, slow+1, 16, 0)
		check("in time again", slow, slow/2, 16, slow)
		check("fast, at once", fast, 0, 16, fast/windowShare)
		check("fast, all late", fast, fast/comebackShare+1, 16, 0)
		check("fast, two fifths late", fast, fast*2/5, 16, 0)
		check("fast, in time again", fast, fast/comebackShare, 16, fast/windowShare)
		check("late once more", slow, slow*3/5, 16, slow)
		for _, waits := range []struct{ since, want time.Duration }{{0, slow}, {slow / 2, slow * 3 / 4}, {slow * 3 / 4, slow / 2}, {slow, slow / 4}, {2 * slow, slow / 4}} {
			j.first = time.Now().Add(-waits.since)
			if d := j.length(); d != waits.want {
				t.Errorf("one has waited for %v: %v, want %v", waits.since, d, waits.want)
			}
		}
		j.first = time.Time{}
		j.Finished(16, 0)
		time.Sleep(slow + 1)
		j.Arrived(1)
		j.Finished(16, 1)
		if d := j.length(); d != 0 {
			t.Errorf("most stayed away: %v", d)
		}
	})
}

// TestALeaderWaitsForThoseThatAreExpected waits by a timer and by yielding: until all have
// come, until the window is over, and until it is stopped.
func TestALeaderWaitsForThoseThatAreExpected(t *testing.T) {
	check := func(what string, took, come time.Duration, stopped bool, want time.Duration, full ...time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var j Window
			j.Took(took)
			j.Finished(2, 1)
			joined, stop := 1, make(chan struct{})
			var others sync.WaitGroup
			for range 2 {
				others.Go(func() {
					time.Sleep(come)
					mu.Lock()
					defer mu.Unlock()
					joined++
					j.Arrived(joined)
				})
			}
			if stopped {
				close(stop)
			}
			for _, after := range full {
				others.Go(func() {
					time.Sleep(after)
					mu.Lock()
					defer mu.Unlock()
					j.Enough()
				})
			}
			start := time.Now()
			mu.Lock()
			j.Await(&mu, func() int { return joined }, stop)
			mu.Unlock()
			if got := time.Since(start); got != want {
				t.Errorf("%s: it waited for %v, want %v", what, got, want)
			}
			others.Wait()
		})
	}
	const long, short = 400 * time.Millisecond, 400 * time.Microsecond
	check("all come", long, 10*time.Millisecond, false, 10*time.Millisecond)
	check("they come too late", long, time.Second, false, long/windowShare)
	check("it is stopped", long, 10*time.Millisecond, true, 0)
	check("all come at once", short, 0, false, 0)
	check("memory fills", long, time.Second, false, 20*time.Millisecond, 20*time.Millisecond)
	check("no sync was seen", 0, time.Millisecond, false, 0)
}
