package spin

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

const us = time.Microsecond

// TestStripsAreHandedOverWhereBothTakeAboutAsLong tells a Relay how long strips take, and counts those
// that it hands over of 200.
func TestStripsAreHandedOverWhereBothTakeAboutAsLong(t *testing.T) {
	check := func(procs int, alone bool, fill, flush time.Duration, want int) {
		t.Helper()
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		r := Relay{waiting: true}
		now, last, n := time.Duration(0), time.Duration(0), 0
		for range 200 {
			now += fill
			hand := r.Hand(last, now)
			if hand != r.Pending() {
				t.Error("Hand and Pending differ")
			}
			last = now
			if hand {
				n++
			} else {
				now += flush
				r.Kept(now, alone)
			}
		}
		if n != want {
			t.Errorf("%d Ps, alone %v, fill %v, flush %v: %d of 200 are handed over, want %d", procs, alone, fill, flush, n, want)
		}
	}
	const most = 200 - 4 // one of 64 is kept
	check(2, true, 80*us, 80*us, most)
	check(2, true, 40*us, 80*us, most)
	check(2, true, 39*us, 80*us, 0)
	check(2, true, 240*us, 80*us, most)
	check(2, true, 241*us, 80*us, 0)
	check(2, true, 8*us, 8*us, most)
	check(2, true, 8*us, 8*us-1, 0)
	check(2, false, 80*us, 80*us, 0)
	check(1, true, 80*us, 80*us, 0)
	var asleep Relay
	asleep.Hand(0, 80*us)
	if !asleep.Kept(160*us, true) || asleep.Hand(80*us, 240*us) {
		t.Error("a strip was handed over, and nobody waits for it")
	}
}

// TestAfterALateStripSomeAreKept looks at when strips are handed over again.
func TestAfterALateStripSomeAreKept(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	r := Relay{waiting: true}
	now := time.Duration(0)
	keep := func() bool {
		last := now
		now += 50 * us
		if r.Hand(last, now) {
			return false
		}
		now += 50 * us
		r.Kept(now, true)
		return true
	}
	if !keep() || keep() {
		t.Fatal("the second strip is the first to be handed over")
	}
	r.Late()
	if r.Pending() {
		t.Error("a late strip is still handed over")
	}
	n := 0
	for keep() {
		n++
	}
	if n != kept {
		t.Errorf("%d strips are kept after one was late, want %d", n, kept)
	}
	for range 10 { // nothing is handed over that could be late
		keep()
	}
	r.pending = false
	before := r.left
	if r.Late(); r.left != before {
		t.Error("a strip that was kept counts as late")
	}
}

// TestWaitEndsWithTheNextStrip hands strips to a goroutine that waits for them with the lock released.
func TestWaitEndsWithTheNextStrip(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	var mu Mutex
	var r Relay
	mu.Lock()
	if r.Wait(&mu) {
		t.Error("a strip is there before one was handed over")
	}
	r.Hand(0, 50*us)
	r.Kept(100*us, true)
	if r.Wait(&mu) || r.left != -kept {
		t.Error("a wait in vain has no end, or does not count")
	}
	taken := 0
	for _, end := range []func(){func() { r.Hand(100*us, 150*us) }, r.Stop} {
		for range 100 { // the other goroutine may come late
			r.left = handed
			var group sync.WaitGroup
			group.Go(func() {
				mu.Lock()
				end()
				mu.Unlock()
			})
			if r.Wait(&mu) {
				taken++
			}
			mu.Unlock()
			group.Wait()
			mu.Lock()
		}
	}
	mu.Unlock()
	if taken == 0 {
		t.Error("no wait ended with what it waited for")
	}
}
