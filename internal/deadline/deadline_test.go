package deadline

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestShortestIsThatOfThePeriodsThatAreSet(t *testing.T) {
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

func TestDeadlineFiresOnceAPeriodAfterItWasArmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fired := make(chan time.Time, 10)
		var d Timer
		d.Init(time.Second, func() { fired <- time.Now() })
		begin := time.Now()
		if d.Running() {
			t.Error("it runs before it was armed")
		}
		d.Arm()
		time.Sleep(time.Second / 2)
		d.Arm() // it runs: that changes nothing
		if at := <-fired; at.Sub(begin) != time.Second {
			t.Errorf("fired after %v", at.Sub(begin))
		}
		d.Disarm()
		d.Arm()
		d.Disarm()
		time.Sleep(time.Hour)
		if len(fired) > 0 {
			t.Error("fired after it was disarmed")
		}
	})
	var never Timer
	never.Init(0, nil)
	if never.Arm(); !never.Running() {
		t.Error("without a period it counts as running")
	}
}
