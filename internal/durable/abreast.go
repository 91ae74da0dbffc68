package durable

import (
	"sync"
	"sync/atomic"
)

// Abreast calls do with each number below n, at most some at a time. The caller's goroutine takes
// part.
func Abreast(some, n int, do func(i int)) {
	var next atomic.Int64
	work := func() {
		for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
			do(int(i))
		}
	}
	var all sync.WaitGroup
	for range min(some, n) - 1 {
		all.Add(1)
		go func() {
			defer all.Done()
			work()
		}()
	}
	work()
	all.Wait()
}

// Waiters is the number of files written, or of files or directories synced, at once when each is
// synced by itself. They wait for the disk and share its commits.
const Waiters = 64
