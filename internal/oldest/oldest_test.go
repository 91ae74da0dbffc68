//go:build go1.25

package oldest

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestOldestIsNeverYoungerThanTheOldestByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Clock
		began := time.Now()
		check := func(want time.Duration) {
			t.Helper()
			if got := c.Oldest().Sub(began); got != want {
				t.Errorf("after %v the oldest is of %v, want %v", time.Since(began), got, want)
			}
		}
		if !c.Oldest().IsZero() || c.Running() {
			t.Error("a new clock has a byte")
		}
		time.Sleep(time.Second)
		c.Begin() // byte 0
		time.Sleep(time.Second)
		c.Begin() // byte 1
		check(time.Second)
		c.Turn(2)
		if c.Running() {
			t.Error("the next byte is not looked at")
		}
		time.Sleep(time.Second)
		c.Begin() // byte 2
		check(time.Second)
		c.Durable(1)
		check(time.Second)
		c.Durable(2)
		check(3 * time.Second)

		c.Turn(3)
		time.Sleep(time.Second)
		c.Begin() // byte 3
		c.Turn(4) // a second sync, and the first has failed
		check(3 * time.Second)
		time.Sleep(time.Second)
		c.Durable(4)
		check(4 * time.Second)
		c.Turn(4)
		c.Durable(4)
		c.Begin()
		check(5 * time.Second)
	})
}
