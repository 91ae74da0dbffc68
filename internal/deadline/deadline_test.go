//go:build go1.25

package deadline

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestShortestIsTheLeastPeriodThatIsSet(t *testing.T) {
	check := func(want time.Duration, periods ...time.Duration) {
		t.Helper()
		if got := Shortest(periods...); got != want {
			t.Errorf("shortest(%v) = %v, want %v", periods, got, want)
		}
	}
	check(0)
	check(0, 0, 0)
	check(3, 0, 3)
	check(2, 3, 2, 4, 0)
}

func TestTimerFiresOnceAPeriodAfterItWasSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fired := make(chan time.Time, 10)
		var d Timer
		d.Init(time.Second, nil, func() { fired <- time.Now() })
		begin := time.Now()
		if d.Running() {
			t.Error("it runs before it was set")
		}
		d.Set(true)
		time.Sleep(time.Second / 2)
		d.Set(true) // it runs: that changes nothing
		if at := <-fired; at.Sub(begin) != time.Second {
			t.Errorf("fired after %v", at.Sub(begin))
		}
		d.Set(false)
		d.Set(true)
		d.Set(false)
		time.Sleep(time.Hour)
		if len(fired) > 0 {
			t.Error("fired after it was stopped")
		}
	})
	var never Timer
	never.Init(0, nil, nil)
	if never.Set(true); !never.Running() {
		t.Error("without a period it counts as running")
	}
}

// TestTimersOfADeviceTakeTurns has more timers fire at one time than may be in their calls, beside one of another
// device and one of none. Of a call that ends its goroutine, the next one takes the place.
func TestTimersOfADeviceTakeTurns(t *testing.T) {
	const timers = 3*abreast + 1
	synctest.Test(t, func(t *testing.T) {
		var running, most, done atomic.Int64
		var all [timers]Timer
		for i := range all {
			all[i].Init(time.Second, func() uint64 { return 1 }, func() {
				most.Store(max(most.Load(), running.Add(1)))
				time.Sleep(time.Hour)
				running.Add(-1)
				done.Add(1)
				if i%2 == 0 {
					runtime.Goexit()
				}
			})
			all[i].Set(true)
		}
		var others sync.WaitGroup
		for device := range uint64(3) {
			if device == 1 {
				continue
			}
			others.Add(1)
			var other Timer
			other.Init(2*time.Second, func() uint64 { return device }, others.Done)
			other.Set(true)
		}
		start := time.Now()
		others.Wait()
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("timers of other devices fired after %v", took)
		}
		time.Sleep(24 * time.Hour)
		if most.Load() != abreast || done.Load() != timers {
			t.Errorf("at most %d calls at once and %d in all, want %d and %d", most.Load(), done.Load(), abreast, timers)
		}
	})
	turns.Lock()
	defer turns.Unlock()
	if len(turns.devices) > 0 {
		t.Errorf("%d devices are left", len(turns.devices))
	}
}
