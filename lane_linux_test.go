package holdfast

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// forbidBarrier has the kernel refuse membarrier from now on, as a sandbox that a
// process enters does.
func forbidBarrier(t *testing.T) {
	t.Helper()
	if err := isolate.Forbid(unix.SYS_MEMBARRIER, unix.EPERM, unix.SECCOMP_FILTER_FLAG_TSYNC); err != nil {
		t.Skipf("no filter: %v", err)
	}
	if sys.Barrier() == nil {
		t.Fatal("the filter lets membarrier through")
	}
}

// TestBarrierIsForbiddenBesideLanes has owners write by the fast way while the process
// enters a filter that forbids membarrier. All go on, and nothing is lost: neither
// where a clock stops, nor at a failure, nor in Close.
func TestBarrierIsForbiddenBesideLanes(t *testing.T) {
	isolate.Process(t, func(t *testing.T) {
		const owners = 4
		type way struct {
			w    *Writer
			l    *Lane
			file *memory
			n    atomic.Int64
		}
		var ways [owners]*way
		for i := range ways {
			w, l, file := openLane(t, Policy{Buffer: 64 * KiB, FlushEvery: time.Millisecond, Sync: Sync{Mode: SyncNever}})
			ways[i] = &way{w: w, l: l, file: file}
		}
		var stop atomic.Bool
		var group sync.WaitGroup
		write := func(x *way, until func() bool) {
			for !until() {
				if err := x.l.writeNumbered(int(x.n.Load())); err != nil {
					t.Error(err)
					return
				}
				x.n.Add(1)
			}
		}
		for _, x := range ways[1:] {
			group.Go(func() { write(x, stop.Load) })
		}
		write(ways[0], func() bool { return ways[0].n.Load() == 1000 }) // and is idle
		fenced := func() bool {
			ways[1].w.mu.Lock()
			defer ways[1].w.mu.Unlock()
			return ways[1].w.barrier.Load()
		}
		if lanesWantBarrier && !fenced() {
			t.Skip("no membarrier here")
		}
		forbidBarrier(t)
		for lanesWantBarrier && fenced() { // until the next flush by time
			runtime.Gosched()
		}
		for range 100 {
			for _, x := range ways {
				said := x.n.Load()
				if err := x.w.Flush(); err != nil {
					t.Fatal(err)
				}
				if got := x.w.Flushed(); got < said {
					t.Fatalf("%d bytes are flushed, %d were accepted before", got, said)
				}
			}
		}
		stop.Store(true)
		group.Wait()
		for _, x := range ways {
			write(x, func() bool { return x.n.Load()%1000 == 999 })
			if err := x.w.Close(); err != nil {
				t.Error(err)
			}
			checkNumbered(t, x.file.Bytes(), int(x.n.Load()))
		}
		// A Writer that is made later has no fence from the start.
		w, l, file := openLane(t, Buffered(64*KiB))
		for n := range 5000 {
			if err := l.writeNumbered(n); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		checkNumbered(t, file.Bytes(), 5000)
	})
}

// TestEndOfTheLimitAsksForTheFence has the kernel refuse the fence: the caller learns that.
func TestEndOfTheLimitAsksForTheFence(t *testing.T) {
	isolate.Process(t, func(t *testing.T) {
		w, l, _ := openLane(t, Buffered(64*KiB))
		defer w.Close()
		if !w.barrier.Load() {
			t.Skip("no membarrier: owners publish with atomic stores")
		}
		if err := l.openFast(true); err != nil {
			t.Fatal(err)
		}
		forbidBarrier(t)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.openLanesLocked(false, w.trouble)
		if w.barrier.Load() {
			t.Error("the limit was taken down, and nobody asked for the fence")
		}
	})
}

// TestOwnerIsSeenWhereTheBarrierIsForbidden takes the limit down where the fence fails.
func TestOwnerIsSeenWhereTheBarrierIsForbidden(t *testing.T) {
	isolate.Process(t, func(t *testing.T) {
		w, _, _ := openLane(t, Buffered(64*KiB)) // registers
		defer w.Close()
		if !w.barrier.Load() {
			t.Skip("no membarrier: owners publish with atomic stores")
		}
		var once sync.Once // sync.OnceFunc turns a skip into a panic
		checkLimitAndOwner(t, 100, func() { once.Do(func() { forbidBarrier(t) }) })
	})
}

// TestCloseWithoutTheBarrierBesideALanesOwner takes the fence away from Writers whose
// owners go by it, and closes them while the owners write.
func TestCloseWithoutTheBarrierBesideALanesOwner(t *testing.T) {
	isolate.Process(t, func(t *testing.T) {
		type way struct {
			w    *Writer
			l    *Lane
			file *memory
		}
		ways := make([]way, 500)
		for i := range ways {
			w, l, file := openLane(t, Buffered(64*KiB))
			if err := l.writeNumbered(0); err != nil {
				t.Fatal(err)
			}
			if lanesWantBarrier && !w.barrier.Load() {
				t.Skip("no membarrier here")
			}
			ways[i] = way{w, l, file}
		}
		forbidBarrier(t)
		for _, x := range ways {
			accepted := 1
			meet(func() {
				for x.l.writeNumbered(accepted) == nil {
					accepted++
				}
			}, func() {
				if err := x.w.Close(); err != nil {
					t.Error(err)
				}
			})
			checkNumbered(t, x.file.Bytes(), accepted)
		}
	})
}

// TestWhereTheBarrierIsForbiddenTheWorldIsStopped counts the times that the runtime has
// stopped all goroutines, which is the fence then.
func TestWhereTheBarrierIsForbiddenTheWorldIsStopped(t *testing.T) {
	stops := func() (n uint64) {
		pauses := []metrics.Sample{{Name: "/sched/pauses/total/other:seconds"}}
		metrics.Read(pauses)
		for _, count := range pauses[0].Value.Float64Histogram().Counts {
			n += count
		}
		return n
	}
	isolate.Process(t, func(t *testing.T) {
		w, l, _ := openLane(t, Policy{Buffer: 64 * KiB, FlushEvery: time.Millisecond, Sync: Sync{Mode: SyncNever}})
		defer w.Close()
		if !w.barrier.Load() {
			t.Skip("no membarrier: owners publish with atomic stores")
		}
		before := stops()
		forbidBarrier(t)
		if err := l.writeNumbered(0); err != nil {
			t.Fatal(err)
		}
		for w.barrier.Load() { // until the next flush by time
			runtime.Gosched()
		}
		w.Stats() // waits for the lock, which the flusher holds for the fence
		if got := stops() - before; got != 1 {
			t.Errorf("the world was stopped %d times, want once", got)
		}
	})
}
