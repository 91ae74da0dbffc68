package costs

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/humanize"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// emptyLoop is the loop around an operation; the compiler keeps it.
func emptyLoop(n int) error {
	for range n {
	}
	return nil
}

// work is a task without a file, whose operations are timed as a difference.
func work(n int64, d difference) trial.Task {
	return trial.Task{Do: func(_ context.Context, c *trial.Clock) error { return d.measure(c, trial.Work, n) }}
}

//go:noinline
func successor(x int) int { return x + 1 }

func callTask(n int64) trial.Task {
	with := func(n int) error {
		x := 0
		for range n {
			x = successor(x)
		}
		runtime.KeepAlive(x)
		return nil
	}
	without := func(n int) error {
		x := 0
		for range n {
			x++
		}
		runtime.KeepAlive(x)
		return nil
	}
	return work(n, difference{with: with, without: without})
}

// The lines of the rings that are chased through: one that is well within any first
// cache, and one that is hardly in any cache.
const (
	lineBytes = 64
	smallRing = 16 << 10 / lineBytes
	largeRing = 256 << 20 / lineBytes
)

// A ring is a chain through memory. The first word of each line is the place of the
// next, and all lines are passed before the first comes again. The order comes from a linear
// congruence of full period (Hull and Dobell). So lines is a power of two, the multiplier 1 more
// than a multiple of 4, and the increment odd. The ring is made in the order of memory, and
// followed in an order that no prefetcher knows.
type ring struct {
	words []uint32
	at    uint32
}

func newRing(lines uint32) *ring {
	const word = 4
	const multiplier, increment = 1_664_525, 1_013_904_223
	const perLine = lineBytes / word
	r := &ring{words: make([]uint32, lines*perLine)}
	for i := range lines {
		r.words[i*perLine] = (multiplier*i + increment) % lines * perLine
	}
	return r
}

// eight follows eight links n times, sixteen twice as many: what lies between them
// are loads alone. A loop's counter is no overhead that could be taken off, for it
// runs in the shadow of the loads.
func (r *ring) eight(n int) error {
	w, at := r.words, r.at
	for range n {
		at = w[w[w[w[at]]]]
		at = w[w[w[w[at]]]]
	}
	r.at = at
	return nil
}

func (r *ring) sixteen(n int) error {
	w, at := r.words, r.at
	for range n {
		at = w[w[w[w[at]]]]
		at = w[w[w[w[at]]]]
		at = w[w[w[w[at]]]]
		at = w[w[w[w[at]]]]
	}
	r.at = at
	return nil
}

// chase makes the ring when it is run, and not for a plan: it may be large.
func chase(lines uint32) func(n int64) trial.Task {
	return func(n int64) trial.Task {
		var r *ring
		return trial.Task{
			Make: func(string) error { r = newRing(lines); return nil },
			Do: func(_ context.Context, c *trial.Clock) error {
				return difference{with: r.sixteen, without: r.eight, each: 8}.measure(c, trial.Work, n)
			},
		}
	}
}

// ringMemory is about what the process has while it makes the large ring: that one,
// and the one of the trial before.
const ringMemory = 600 << 20

// noMemory says why the large ring can't be made within a limit, or is empty.
func noMemory(limit int64, limited bool) string {
	if !limited || limit > ringMemory {
		return ""
	}
	return fmt.Sprintf("it takes up to %s of memory, and the control group of this process may have %s", humanize.Bytes(ringMemory), humanize.Bytes(int64(limit)))
}

func mutexTask(n int64) trial.Task {
	var mu sync.Mutex
	with := func(n int) error {
		for range n {
			mu.Lock()
			//lint:ignore SA2001 nothing is guarded: the lock itself is timed
			mu.Unlock()
		}
		return nil
	}
	return work(n, difference{with: with, without: emptyLoop})
}

// A shelf keeps the last value that was made, so that it is made on the heap.
type shelf struct{ last *[64]byte }

//go:noinline
func (s *shelf) fill(n int) {
	for range n {
		s.last = new([64]byte)
	}
}

func allocTask(n int64) trial.Task {
	var s shelf
	with := func(n int) error {
		s.fill(n)
		return nil
	}
	return work(n, difference{with: with, without: emptyLoop})
}

func clockTask(n int64) trial.Task {
	with := func(n int) error {
		var t time.Time
		for range n {
			t = time.Now()
		}
		runtime.KeepAlive(t)
		return nil
	}
	return work(n, difference{with: with, without: emptyLoop})
}

func copyPageTask(n int64) trial.Task {
	from, to := make([]byte, study.PageBytes), make([]byte, study.PageBytes)
	with := func(n int) error {
		for range n {
			copy(to, from)
		}
		return nil
	}
	return work(n, difference{with: with, without: emptyLoop})
}

func processorRungs() []rung {
	const loads = "each needs the last; 16 loads less 8"
	return []rung{
		{name: callRung, level: &callLevel, method: "not inlined, less the same inlined", does: "calls a function that adds one", count: 10_000_000, each: 2, task: callTask},
		{name: loadRung, level: &memoryLevel, method: loads, does: "follows a chain of loads through 16 KiB", count: 5_000_000, each: 4, task: chase(smallRing)},
		{name: mutexRung, method: bareLoop, does: "locks and unlocks a sync.Mutex that nobody else wants", count: 1_000_000, each: 12, task: mutexTask},
		{name: allocRung, method: bareLoop, does: "allocates 64 bytes on the heap, garbage collection included", count: 250_000, each: 40, task: allocTask},
		{name: clockRung, method: bareLoop, does: "reads the clock: time.Now", count: 300_000, each: 60, task: clockTask},
		{name: copyRung, method: bareLoop, does: "copies 4096 bytes within the first cache", count: 500_000, each: 50, task: copyPageTask},
		{name: memoryRung, level: &memoryLevel, method: loads, does: "follows a chain of loads through 256 MiB, in an unpredictable order", count: 100_000, each: 3000, missing: noMemory(machine.MemoryLimit()), task: chase(largeRing)},
		{name: bufferedRung, method: "os.File under bufio, 4 KiB", does: "writes 40 bytes through a bufio.Writer of 4 KiB, flushed at the end of each turn", count: 100_000, each: 60, bytes: 4_000_000, task: recordsTask(true)},
	}
}
