//go:build go1.25

package deadline

import (
	"math/rand/v2"
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

// on returns a timer of a clock, as Init makes it where time is real.
func on(c *clock, period time.Duration, device uint64, fire func()) *Timer {
	return &Timer{period: period, fire: fire, clock: c, device: &device}
}

func TestTimerFiresOnceAPeriodAfterItWasSet(t *testing.T) {
	check := func(name string, made func(fire func()) *Timer) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fired := make(chan time.Time, 10)
				d := made(func() { fired <- time.Now() })
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
				d.Set(true)
				d.Release()
				time.Sleep(time.Hour)
				if len(fired) > 0 {
					t.Error("fired after it was stopped")
				}
			})
		})
	}
	check("of its own", func(fire func()) *Timer {
		d, device := new(Timer), uint64(1)
		d.Init(time.Second, &device, ForSync, fire)
		if d.clock != nil {
			t.Error("a bubble's timer is of the process's clock")
		}
		return d
	})
	check("of a clock", func(fire func()) *Timer { return on(newClock(), time.Second, 1, fire) })
	check("of a clock, without a limit", func(fire func()) *Timer { return on(newClock(), time.Second, 0, fire) })
	var never Timer
	never.Init(0, nil, ForSync, nil)
	if never.Set(true); !never.Running() {
		t.Error("without a period it counts as running")
	}
	never.Release()
}

// TestTimersOfAClockFireInTime sets and stops timers of many periods at random. Each fires a period after it was set, and never
// when it is stopped. Afterwards the clock refers to none.
func TestTimersOfAClockFireInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, r := newClock(), rand.New(rand.NewPCG(1, 2))
		const timers, steps = 50, 20_000
		var all [timers]*Timer
		var due [timers]time.Time // zero: stopped
		fired := 0
		var mu sync.Mutex // as a Writer's lock
		for i := range all {
			period := time.Duration(10*r.IntN(100)+5) * time.Millisecond // all is done at multiples of 10 ms, and fires between them
			all[i] = on(c, period, uint64(1+i), func() {
				mu.Lock()
				defer mu.Unlock()
				all[i].Set(false)
				if now := time.Now(); now != due[i] {
					t.Errorf("timer %d of %v fired at %v, want %v", i, period, now, due[i])
				}
				due[i] = time.Time{}
				fired++
			})
		}
		for range steps {
			i := r.IntN(timers)
			runs := r.IntN(3) > 0
			mu.Lock()
			if !runs {
				due[i] = time.Time{}
			} else if !all[i].Running() {
				due[i] = time.Now().Add(all[i].period)
			}
			if all[i].Set(runs); r.IntN(20) == 0 {
				due[i] = time.Time{}
				all[i].Release()
			}
			mu.Unlock()
			time.Sleep(time.Duration(r.IntN(3)) * 10 * time.Millisecond)
			synctest.Wait()
			mu.Lock()
			for k, at := range due {
				if !at.IsZero() && at.Before(time.Now()) {
					t.Fatalf("timer %d was due at %v and has not fired at %v", k, at, time.Now())
				}
			}
			mu.Unlock()
		}
		mu.Lock()
		defer mu.Unlock()
		for _, d := range all {
			d.Release()
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.timers) > 0 || fired < steps/10 {
			t.Errorf("%d timers are left, and %d have fired", len(c.timers), fired)
		}
	})
}

// TestTimersOfADeviceTakeTurns has more timers fire at one time than may be in their calls, beside one of another
// device and one of none. Who waits for a turn has no goroutine. Of a call that ends its goroutine, the next one takes the place.
func TestTimersOfADeviceTakeTurns(t *testing.T) {
	const timers = 50*abreast + 1
	synctest.Test(t, func(t *testing.T) {
		c, before := newClock(), runtime.NumGoroutine()
		var running, most, goroutines, done atomic.Int64
		for i := range timers {
			on(c, time.Second, 1, func() {
				most.Store(max(most.Load(), running.Add(1)))
				goroutines.Store(max(goroutines.Load(), int64(runtime.NumGoroutine()-before)))
				time.Sleep(time.Hour)
				running.Add(-1)
				done.Add(1)
				if i%2 == 0 {
					runtime.Goexit()
				}
			}).Set(true)
		}
		var others sync.WaitGroup
		for device := range uint64(3) {
			if device == 1 {
				continue
			}
			others.Add(1)
			on(c, 2*time.Second, device, others.Done).Set(true)
		}
		start := time.Now()
		others.Wait()
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("timers of other devices fired after %v", took)
		}
		time.Sleep(24 * 7 * time.Hour)
		if most.Load() != abreast || done.Load() != timers {
			t.Errorf("at most %d calls at once and %d in all, want %d and %d", most.Load(), done.Load(), abreast, timers)
		}
		if n := goroutines.Load(); n > 2*abreast { // one may end while the next begins
			t.Errorf("%d goroutines for %d timers that are due", n, timers)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.queues) > 0 {
			t.Errorf("%d queues are left", len(c.queues))
		}
	})
}
