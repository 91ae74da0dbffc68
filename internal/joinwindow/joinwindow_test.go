package joinwindow

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestJoinTimeShrinksWhileNoneJoins(t *testing.T) {
	var j Window
	if d := j.length(); d != 0 {
		t.Errorf("before the first sync: %v", d)
	}
	j.Took(time.Second)
	for _, want := range []time.Duration{time.Second / 4, time.Second / 8, time.Second / 16} {
		if d := j.length(); d != want {
			t.Errorf("%v, want %v", d, want)
		}
		j.ended(false)
	}
	for range 100 {
		j.ended(false)
	}
	if d := j.length(); d != time.Second>>(joinShift+maxPatience) {
		t.Errorf("after many that did not come: %v", d)
	}
	j.ended(true)
	if d := j.length(); d != time.Second/4 {
		t.Errorf("after all came: %v", d)
	}
}

// TestALeaderWaitsForThoseThatAreExpected waits by a timer and by yielding: until all have
// come, until the window is over, and until it is stopped.
func TestALeaderWaitsForThoseThatAreExpected(t *testing.T) {
	check := func(what string, took, come time.Duration, stopped bool, want time.Duration) {
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
	check("they come too late", long, time.Second, false, long/4)
	check("it is stopped", long, 10*time.Millisecond, true, 0)
	check("all come at once", short, 0, false, 0)
	check("no sync was seen", 0, time.Millisecond, false, 0)
}
