package trial

import (
	"testing"
	"time"
)

// TestAgeOfTheOldestByte: bytes 1 to 10 are seen at 0 and are durable at 30. Those up to 20 are
// seen at 10 and wait until 50.
func TestAgeOfTheOldestByte(t *testing.T) {
	begun := time.Now()
	var a age
	check := func(ms int, written, durable int64, want int) {
		t.Helper()
		a.look(begun.Add(time.Duration(ms)*time.Millisecond), written, durable)
		if got := a.oldest; got != time.Duration(want)*time.Millisecond {
			t.Errorf("after %d ms the oldest was %v, want %d ms", ms, got, want)
		}
	}
	check(0, 10, 0, 0)
	check(10, 20, 0, 10)
	check(20, 20, 5, 20)
	check(30, 20, 10, 20)
	check(45, 20, 10, 35)
	check(50, 20, 20, 35)
	check(500, 20, 20, 35)
	check(600, 30, 20, 35)
	check(700, 30, 30, 35)
}
