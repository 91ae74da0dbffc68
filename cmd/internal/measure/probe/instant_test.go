package probe

import (
	"testing"
	"time"
)

// TestTheClockOfTrialsHasShortSteps, and goes as fast as the one of package time.
func TestTheClockOfTrialsHasShortSteps(t *testing.T) {
	shortest := time.Hour
	begun, other := Now(), time.Now()
	for range 100 {
		at := Now()
		step := Since(at)
		for step == 0 {
			step = Since(at)
		}
		shortest = min(shortest, step)
	}
	if shortest < 0 || shortest > 10*time.Microsecond {
		t.Errorf("the shortest step was %v", shortest)
	}
	for time.Since(other) < 200*time.Millisecond {
	}
	// The other clock may move in steps of 16 ms.
	passed, want := Since(begun), time.Since(other)
	if gap := Now().Sub(begun) - passed; passed < want-20*time.Millisecond || gap < 0 {
		t.Errorf("%v passed, and %v by package time; %v after that", passed, want, gap)
	}
}
