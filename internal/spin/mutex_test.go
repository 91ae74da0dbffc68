//go:build go1.25

package spin

import (
	"runtime"
	"sync"
	"testing"
)

// TestRightToTryOnIsGivenBack looks at the queue behind a goroutine that had to wait long.
func TestRightToTryOnIsGivenBack(t *testing.T) {
	var mu Mutex
	mu.Lock()
	var waiter sync.WaitGroup
	taken := false
	waiter.Go(func() {
		mu.Lock()
		taken = true
		mu.Unlock()
	})
	for mu.queue.TryLock() {
		mu.queue.Unlock()
		runtime.Gosched()
	}
	mu.Unlock()
	waiter.Wait()
	if !taken || !mu.queue.TryLock() {
		t.Error("a goroutine that has had the lock still keeps others from trying")
	}
}

// TestRightToTryOnIsKeptWithTheLock looks at the queue while a goroutine has the lock that had to wait
// long for it. To give the right back takes µs, for which no other goroutine would get the lock.
func TestRightToTryOnIsKeptWithTheLock(t *testing.T) {
	var mu Mutex
	mu.Lock()
	taken, looked := make(chan bool), make(chan bool)
	var waiter sync.WaitGroup
	waiter.Go(func() {
		mu.Lock()
		taken <- true
		<-looked
		mu.Unlock()
	})
	for mu.queue.TryLock() {
		mu.queue.Unlock()
		runtime.Gosched()
	}
	mu.Unlock()
	<-taken
	if mu.queue.TryLock() {
		t.Error("the right to try on was given back with the lock held")
		mu.queue.Unlock()
	}
	close(looked)
	waiter.Wait()
	if !mu.queue.TryLock() {
		t.Error("the right to try on was not given back")
	}
}

// TestLockKeepsOthersOutAndReleasesAll has many goroutines take the lock, with fewer
// and with more Ps than CPUs. No addition is lost, and no goroutine waits for ever,
// not even for a condition.
func TestLockKeepsOthersOutAndReleasesAll(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, procs := range []int{1, 2, 16, 32} {
		runtime.GOMAXPROCS(procs)
		for _, goroutines := range []int{2, 16, 100} {
			turns := 100_000 / goroutines
			if testing.Short() || procs == 1 {
				turns /= 10
			}
			var mu Mutex
			ticked := sync.Cond{L: &mu}
			n, ticks, left := 0, 0, goroutines
			var group sync.WaitGroup
			for range goroutines {
				group.Go(func() {
					for i := range turns {
						mu.Lock()
						n++
						if i%100 == 0 {
							for now := ticks; ticks == now; {
								ticked.Wait()
							}
						}
						mu.Unlock()
					}
					mu.Lock()
					left--
					mu.Unlock()
				})
			}
			for done := false; !done; runtime.Gosched() {
				mu.Lock()
				ticks++
				ticked.Broadcast()
				done = left == 0
				mu.Unlock()
			}
			group.Wait()
			if n != goroutines*turns {
				t.Errorf("GOMAXPROCS=%d: %d additions by %d goroutines, want %d", procs, n, goroutines, goroutines*turns)
			}
		}
	}
}
