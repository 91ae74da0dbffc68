//go:build go1.25

package spin

import (
	"runtime"
	"sync"
	"testing"
)

// TestCondWakesThoseThatWait: without waiters a call does nothing, and takes no memory.
func TestCondWakesThoseThatWait(t *testing.T) {
	var mu Mutex
	c := Cond{L: &mu}
	if allocated := testing.AllocsPerRun(10, func() { c.Signal(); c.Broadcast() }); allocated != 0 {
		t.Errorf("%v allocations without a waiter", allocated)
	}
	const waiters = 3
	waiting, woken := 0, 0
	var group sync.WaitGroup
	for range waiters {
		group.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			waiting++
			c.Wait()
			woken++
		})
	}
	until := func(n *int, want int) {
		for done := false; !done; runtime.Gosched() {
			mu.Lock()
			done = *n == want
			mu.Unlock()
		}
	}
	until(&waiting, waiters)
	mu.Lock()
	c.Signal()
	mu.Unlock()
	until(&woken, 1)
	mu.Lock()
	c.Broadcast()
	mu.Unlock()
	group.Wait()
	if woken != waiters {
		t.Errorf("%d of %d are woken", woken, waiters)
	}
}
