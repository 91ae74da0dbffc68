//go:build go1.25

package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"runtime/metrics"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// starts returns when calls of one kind started, counted from a time.
func starts(f *fault.File, op fault.Op, from time.Time) (at []time.Duration) {
	for _, c := range f.Calls() {
		if c.Op == op {
			at = append(at, c.Start.Sub(from))
		}
	}
	return at
}

func inBubble(t *testing.T, policy string, test func(t *testing.T, w *holdfast.Writer, f *fault.File), faults ...fault.Fault) {
	t.Helper()
	t.Run(policy, func(t *testing.T) {
		watch(t)
		synctest.Test(t, func(t *testing.T) {
			w, f := newWriter(t, policy, faults...)
			test(t, w, f)
			w.Close()
			for _, v := range f.Violations() {
				t.Errorf("violation: %s", v)
			}
			if left := goroutinesLeft(true); left != "" {
				t.Errorf("goroutines are left:\n%s", left)
			}
		})
	})
}

// TestFlushAndSyncStartWhenThePolicySays writes a byte to an idle Writer, again
// and again, and looks at the times of the calls. None is late, none is early,
// and none is made without need.
func TestFlushAndSyncStartWhenThePolicySays(t *testing.T) {
	check := func(policy string, flushes, syncs string) {
		t.Helper()
		for _, way := range []string{"Write", "Enqueue"} {
			inBubble(t, policy, func(t *testing.T, w *holdfast.Writer, f *fault.File) {
				for range 3 {
					start := time.Now()
					if way == "Write" {
						put(t, w, 1)
					} else if _, err := w.Enqueue([]byte("x")); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Hour)
					calls := f.Calls()
					gotFlushes, gotSyncs := "", ""
					for _, c := range calls {
						at := c.Start.Sub(start)
						switch {
						case at < 0:
						case c.Op == fault.Write:
							gotFlushes += fmt.Sprint(at, " ")
						case c.Op == fault.Sync:
							gotSyncs += fmt.Sprint(at, " ")
						}
					}
					if gotFlushes != flushes || gotSyncs != syncs {
						t.Errorf("%s of a byte: flushes at %q, want %q; syncs at %q, want %q", way, gotFlushes, flushes, gotSyncs, syncs)
					}
				}
			})
		}
	}
	check("buffer=0,sync=never", "0s ", "")
	check("buffer=64KiB,sync=never", "", "")
	check("buffer=64KiB,flush=10ms,sync=never", "10ms ", "")
	check("buffer=0,sync=10ms", "0s ", "10ms ")
	check("buffer=64KiB,sync=10ms", "10ms ", "10ms ")
	check("buffer=64KiB,flush=10ms,sync=30ms", "10ms ", "30ms ")
	check("buffer=64KiB,flush=30ms,sync=10ms", "10ms ", "10ms ")
	check("buffer=64KiB,flush=10ms,sync=10ms", "10ms ", "10ms ")
	check("buffer=64KiB,sync=close", "", "")
	check("buffer=0,sync=close", "0s ", "")
}

// TestNoByteWaitsLongerThanItsPeriodUnderLoad writes a byte each millisecond. The
// flush and the sync of each start at most one period after it, and there is at
// most one of each in a period.
func TestNoByteWaitsLongerThanItsPeriodUnderLoad(t *testing.T) {
	check := func(policy string, op fault.Op, period time.Duration, most int) {
		t.Helper()
		inBubble(t, policy, func(t *testing.T, w *holdfast.Writer, f *fault.File) {
			start := time.Now()
			for range 200 {
				put(t, w, 1)
				time.Sleep(ms)
			}
			time.Sleep(time.Second)
			accepted := 0 // which byte, at most, the next call must cover in time
			for _, c := range f.Calls() {
				if c.Op != op {
					continue
				}
				if late := c.Start.Sub(start.Add(time.Duration(accepted)*ms)) - period; late > 0 {
					t.Errorf("byte %d waited %v longer than %v", accepted, late, period)
				}
				accepted = int(c.To)
			}
			if accepted != 200 {
				t.Errorf("%d bytes are covered, want 200", accepted)
			}
			if n := f.Count(op); n > most {
				t.Errorf("%d %vs for 200 ms, want at most %d", n, op, most)
			}
		})
	}
	check("buffer=64KiB,flush=10ms,sync=never", fault.Write, 10*ms, 21)
	check("buffer=64KiB,sync=10ms", fault.Sync, 10*ms, 21)
	check("buffer=0,sync=10ms", fault.Sync, 10*ms, 21)
	check("buffer=64KiB,flush=10ms,sync=30ms", fault.Write, 10*ms, 28)
	check("buffer=64KiB,flush=10ms,sync=30ms", fault.Sync, 30*ms, 8)
	check("buffer=64KiB,flush=30ms,sync=10ms", fault.Sync, 10*ms, 21)
	check("buffer=16B,flush=100ms,sync=never", fault.Write, 100*ms, 14)
}

// TestSyncByBytesStartsWithTheByteThatIsTooMany writes 4 bytes each second and checks each sync's
// bytes and start.
func TestSyncByBytesStartsWithTheByteThatIsTooMany(t *testing.T) {
	check := func(policy string, took time.Duration, writes int, want string) {
		t.Helper()
		inBubble(t, policy, func(t *testing.T, w *holdfast.Writer, f *fault.File) {
			start := time.Now()
			for i := range writes {
				if i%2 == 0 {
					put(t, w, 4)
				} else if _, err := w.Enqueue([]byte("four")); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Second)
			}
			time.Sleep(time.Hour)
			got := ""
			for _, c := range f.Calls() {
				if c.Op == fault.Sync {
					got += fmt.Sprintf("%d at %v, ", c.To, c.Start.Sub(start))
				}
			}
			if got != want {
				t.Errorf("syncs of %v: %s want %s", took, got, want)
			}
		}, fault.Fault{Op: fault.Sync, Delay: took})
	}
	const s = time.Second
	check("buffer=0,sync=10B", 0, 8, "12 at 2s, 24 at 5s, ")
	check("buffer=0,sync=12B", 0, 8, "12 at 2s, 24 at 5s, ")
	check("buffer=0,sync=13B", 0, 8, "16 at 3s, 32 at 7s, ")
	// Due while one runs: right behind it, and only if as much has come meanwhile. More waits.
	check("buffer=0,sync=12B", 3*s+s/2, 8, "12 at 2s, 24 at 5.5s, ")
	check("buffer=0,sync=12B", 2*s+s/2, 8, "12 at 2s, 24 at 5s, ")
	check("buffer=0,sync=12B", 10*s, 8, "12 at 2s, 24 at 12s, ")
	// Bytes in memory are not the sync's yet. Each flush of 8 bytes counts.
	check("buffer=8B,sync=12B", 0, 8, "16 at 3s, 32 at 7s, ")
	check("buffer=16B,flush=8B,sync=12B", 0, 8, "16 at 3s, 32 at 7s, ")
	check("buffer=8B,flush=1s/4B,sync=12B", 0, 8, "12 at 2s, 24 at 5s, ")
	// Whichever comes first; a sync by bytes of all begins the period anew.
	check("buffer=0,sync=3500ms/12B", 0, 8, "12 at 2s, 24 at 5s, 32 at 9.5s, ")
	check("buffer=0,sync=1500ms/12B", 0, 4, "8 at 1.5s, 16 at 3.5s, ")
}

// TestSyncByBytesFollowsTheSyncOfACall has the bytes fall due while a call's sync runs.
func TestSyncByBytesFollowsTheSyncOfACall(t *testing.T) {
	inBubble(t, "buffer=0,sync=12B", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
		start := time.Now()
		put(t, w, 4)
		go w.Sync()
		synctest.Wait()
		put(t, w, 8)
		put(t, w, 3) // 15 bytes are not durable, and 11 will not be
		time.Sleep(time.Minute)
		if got := starts(f, fault.Sync, start); len(got) != 1 {
			t.Errorf("syncs started at %v, want one", got)
		}
		start = time.Now()
		go w.Sync()
		synctest.Wait()
		put(t, w, 12)
		time.Sleep(time.Minute)
		if got := starts(f, fault.Sync, start)[1:]; len(got) != 2 || got[0] != 0 || got[1] != time.Second {
			t.Errorf("syncs started at %v, want 0s and 1s", got)
		}
		if got := w.Durable(); got != 27 {
			t.Errorf("%d bytes are durable, want 27", got)
		}
	}, fault.Fault{Op: fault.Sync, Delay: time.Second})
}

// TestFlushByBytesLeavesTheRestOfTheBuffer has a write of the file take an hour. The
// flush of 8 bytes has begun, and the rest of the buffer accepts new bytes.
func TestFlushByBytesLeavesTheRestOfTheBuffer(t *testing.T) {
	inBubble(t, "buffer=1KiB,flush=8B,sync=never", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
		start := time.Now()
		for range 10 {
			put(t, w, 4)
			time.Sleep(time.Second)
		}
		for range 45 {
			put(t, w, 20)
		}
		if d := time.Since(start); d != 10*time.Second {
			t.Errorf("the Writes took %v beside a write of an hour", d-10*time.Second)
		}
		time.Sleep(24 * time.Hour)
		if got := starts(f, fault.Write, start); len(got) < 2 || got[0] != time.Second || got[1] != time.Hour+time.Second {
			t.Errorf("flushes started at %v, want 1s, 1h1s, …", got)
		}
		if got := f.Size(); got != 940 {
			t.Errorf("%d bytes are in the kernel, want all, 940", got)
		}
	}, fault.Fault{Op: fault.Write, Take: fault.All, Delay: time.Hour})
}

// TestFlushByTimeWaitsForNoSync keeps a sync in flight: flushes by time go on
// beside it.
func TestFlushByTimeWaitsForNoSync(t *testing.T) {
	for _, policy := range []string{"buffer=64KiB,flush=10ms,sync=20ms", "buffer=4KiB,flush=10ms,sync=never", "buffer=64KiB,flush=10ms,sync=group", "buffer=64KiB,sync=10ms"} {
		inBubble(t, policy, func(t *testing.T, w *holdfast.Writer, f *fault.File) {
			put := func() {
				if _, err := w.Enqueue([]byte("x")); err != nil {
					t.Error(err)
				}
			}
			put()
			go w.Sync()
			synctest.Wait()
			start := time.Now()
			put()
			time.Sleep(time.Second / 2)
			if got := f.Size(); got != 2 {
				t.Errorf("%d bytes are in the kernel while the sync runs, want 2", got)
			}
			if got := starts(f, fault.Write, start); got[len(got)-1] != 10*ms {
				t.Errorf("flushes started at %v, want the last at 10ms", got)
			}
			time.Sleep(time.Minute)
		}, fault.Fault{Op: fault.Sync, Delay: time.Second})
	}
}

// TestLateSyncFlushesNothingFirst has a period pass during a sync. Bytes that the flusher has
// written meanwhile are synced at once, before a slow flush of newer ones.
func TestLateSyncFlushesNothingFirst(t *testing.T) {
	inBubble(t, "buffer=64KiB,flush=10ms,sync=20ms", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
		start := time.Now()
		put(t, w, 1) // in the kernel after 310 ms, and synced from then to 1310 ms
		time.Sleep(500 * ms)
		put(t, w, 1) // in the kernel after 810 ms
		time.Sleep(805 * ms)
		put(t, w, 1) // 5 ms old when the first sync ends
		time.Sleep(time.Minute)
		if got := starts(f, fault.Sync, start); len(got) < 2 || got[0] != 310*ms || got[1] != 1310*ms {
			t.Errorf("syncs started at %v, want the second when the first ended, at 1.31s", got)
		}
	}, fault.Fault{Op: fault.Sync, Delay: time.Second}, fault.Fault{Op: fault.Write, Take: fault.All, Delay: 300 * ms})
}

// TestSyncByTimeIsTriedAgain has a disk that is full for a while and a file that nobody
// writes to any more.
func TestSyncByTimeIsTriedAgain(t *testing.T) {
	inBubble(t, "buffer=64KiB,sync=20ms", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
		start := time.Now()
		put(t, w, 1)
		time.Sleep(time.Minute)
		if got := starts(f, fault.Sync, start); len(got) != 1 {
			t.Errorf("syncs started at %v, want one", got)
		}
		if got := w.Durable(); got != 1 {
			t.Errorf("%d bytes are durable, want 1", got)
		}
	}, fault.Fault{Op: fault.Write, Times: 9, Err: syscall.ENOSPC})
}

// TestIdleWriterDoesNothing leaves a Writer alone after all its periods have
// passed: no call is made and no goroutine waits.
func TestIdleWriterDoesNothing(t *testing.T) {
	inMemory(t, func(s *stage) {
		idle := func(when string) {
			s.noGoroutines()
			calls := len(s.f.Calls())
			time.Sleep(24 * time.Hour)
			if n := len(s.f.Calls()); n != calls {
				s.Errorf("%s: %d calls in a day", when, n-calls)
			}
			s.noGoroutines()
		}
		idle("new")
		s.takes(3)(s.w.Write([]byte("abc")))
		time.Sleep(time.Minute)
		idle("a minute after a Write")
		s.ok(s.w.Flush())
		s.ok(s.w.Sync())
		idle("after Sync")
		before := len(s.f.Calls())
		s.ok(s.w.Flush())
		s.ok(s.w.Sync())
		if n := len(s.f.Calls()); n != before {
			s.Errorf("Flush and Sync of nothing made %d calls", n-before)
		}
	})
}

// TestClocksStandStillBehindAFinalFailure counts the goroutines that start in a minute: the clocks would start thousands.
func TestClocksStandStillBehindAFinalFailure(t *testing.T) {
	check := func(policy, method string, call func(w *holdfast.Writer) error) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			w, err := holdfast.New(&panicking{method: method, delay: time.Second}, mustParse(t, policy))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Enqueue([]byte("record")); err != nil {
				t.Fatal(err)
			}
			go isolate.Caught(func() error { return call(w) })
			synctest.Wait()
			if _, err := w.Enqueue([]byte("record")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
			if !errors.Is(w.Err(), holdfast.ErrPanicked) {
				t.Fatalf("Err = %v", w.Err())
			}
			if n := startedInAMinute(); n > 100 {
				t.Errorf("%s, behind a panic of %s: %d goroutines started in a minute", policy, method, n)
			}
			w.Close()
		})
	}
	check("buffer=4KiB,sync=10ms", "Sync", (*holdfast.Writer).Sync)
	check("buffer=4KiB,flush=10ms,sync=never", "Write", (*holdfast.Writer).Flush)
}

// startedInAMinute returns how many goroutines the process starts meanwhile. Each call of a clock is one.
func startedInAMinute() uint64 {
	started := []metrics.Sample{{Name: "/sched/goroutines-created:goroutines"}}
	metrics.Read(started)
	before := started[0].Value.Uint64()
	time.Sleep(time.Minute)
	metrics.Read(started)
	return started[0].Value.Uint64() - before
}

// TestNoClockTicksForWhatAFailedWriteHasTaken: all of it.
func TestNoClockTicksForWhatAFailedWriteHasTaken(t *testing.T) {
	inBubble(t, "buffer=4KiB,flush=10ms,sync=never", func(t *testing.T, w *holdfast.Writer, _ *fault.File) {
		put(t, w, 10)
		asWriteError(t, w.Flush(), syscall.EIO, 10, 0)
		if n := startedInAMinute(); n > 100 {
			t.Errorf("%d goroutines started in a minute, and no byte waits", n)
		}
	}, fault.Fault{Op: fault.Write, Take: fault.All, Times: 1, Err: syscall.EIO})
}

// TestAFailedSyncHoldsUpNoFlushByTime has enough bytes in the kernel when a sync fails that a flush would wait for it.
func TestAFailedSyncHoldsUpNoFlushByTime(t *testing.T) {
	inBubble(t, "buffer=1KiB,sync=10ms/100B", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
		put(t, w, 200)
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		put(t, w, 50)
		time.Sleep(time.Second)
		if got := f.Size(); got != 250 {
			t.Errorf("%d bytes are in the kernel a second after the sync has failed, want all, 250", got)
		}
	}, fault.Fault{Op: fault.Sync, Delay: 3 * ms, Err: syscall.EIO})
}

// TestBufferedStreamTakesOneCallABuffer counts the calls for a plain stream.
func TestBufferedStreamTakesOneCallABuffer(t *testing.T) {
	check := func(policy string, records, size, writes, syncs int) {
		t.Helper()
		inBubble(t, policy, func(t *testing.T, w *holdfast.Writer, f *fault.File) {
			for range records {
				put(t, w, size)
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			if got := f.Count(fault.Write); got != writes {
				t.Errorf("%d writes, want %d", got, writes)
			}
			if got := f.Count(fault.Sync); got != syncs {
				t.Errorf("%d syncs, want %d", got, syncs)
			}
			for _, c := range f.Calls() {
				if c.Op == fault.Write && c.To != int64(records*size) && c.To%int64(c.Len) != 0 && policy != "buffer=0,sync=never" {
					t.Errorf("a write of %d..%d", c.From, c.To)
				}
			}
		})
	}
	check("buffer=0,sync=never", 100, 10, 100, 0)
	check("buffer=16B,sync=never", 100, 10, 100, 0)
	check("buffer=1KiB,sync=never", 100, 10, 1, 0)
	check("buffer=1KiB,sync=never", 1000, 10, 10, 0)
	check("buffer=1KiB,sync=never", 1024, 1, 1, 0)
	check("buffer=1KiB,sync=never", 1025, 1, 2, 0)
	check("buffer=1KiB,sync=close", 2048, 1, 2, 1)
	check("buffer=4KiB,sync=close", 1000, 40, 10, 1)
	check("buffer=64KiB,sync=close", 10000, 40, 7, 1)
	check("buffer=256KiB,sync=never", 20000, 40, 4, 0)
	check("buffer=0,sync=close", 3, 10, 3, 1)
	check("buffer=0,sync=each", 10, 10, 10, 10)
	check("buffer=64KiB,sync=each", 10, 10, 10, 10)
	check("buffer=64KiB,sync=group", 10, 10, 10, 10)
}

// TestNoWriteWaitsForMoreThanTwoLargeOnes has small Writes come in a stream of large ones. Each of these may flush memory first.
func TestNoWriteWaitsForMoreThanTwoLargeOnes(t *testing.T) {
	inBubble(t, "buffer=64B,sync=never", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() {
				for range 60 {
					put(t, w, 100)
				}
			})
		}
		for range 60 {
			start := time.Now()
			put(t, w, 1)
			if took := time.Since(start); took > 2*2*4*ms {
				t.Errorf("a Write of a byte took %v, and each call of the file 4ms", took)
			}
			time.Sleep(ms)
		}
		group.Wait()
	}, fault.Fault{Op: fault.Write, Take: fault.All, Delay: 4 * ms})
}

// TestGroupCommitSharesSyncs lets many goroutines Write at once, again and again,
// on a slow disk. One sync is in flight and releases all Writes that it covers
// together. The next covers the bytes that came meanwhile.
func TestGroupCommitSharesSyncs(t *testing.T) {
	for _, policy := range []string{"buffer=0,sync=group", "buffer=64KiB,sync=group", "buffer=64B,sync=group"} {
		inBubble(t, policy, func(t *testing.T, w *holdfast.Writer, f *fault.File) {
			const goroutines, rounds, took = 32, 10, 8 * ms
			var group sync.WaitGroup
			var mu sync.Mutex
			released := map[time.Time]int{}
			start := time.Now()
			for range goroutines {
				group.Go(func() {
					for range rounds {
						put(t, w, 10)
						mu.Lock()
						released[time.Now()]++
						mu.Unlock()
					}
				})
			}
			group.Wait()
			for _, c := range f.Calls() {
				if c.Op == fault.Sync && released[c.End] == 0 && c.To < goroutines*rounds*10 {
					t.Errorf("the sync that ended at %v released no one", c.End.Sub(start))
				}
				delete(released, c.End)
			}
			if len(released) > 0 {
				t.Errorf("Writes returned at %d times at which no sync ended", len(released))
			}
			// The first syncs cover few; then each covers all, or all but the
			// few that a join window of a quarter of a sync misses.
			if n := f.Count(fault.Sync); n > rounds+4 {
				t.Errorf("%d syncs for %d rounds of %d goroutines", n, rounds, goroutines)
			}
			if d := time.Since(start); d > (rounds+4)*took*5/4 {
				t.Errorf("%d rounds took %v", rounds, d)
			}
		}, fault.Fault{Op: fault.Sync, Delay: 8 * ms})
	}
}

// TestWriteWaitsForAtMostTheSyncInFlightAndItsOwn has Writes come at any moment
// of another's sync.
func TestWriteWaitsForAtMostTheSyncInFlightAndItsOwn(t *testing.T) {
	const took = 8 * ms
	for _, policy := range []string{"buffer=0,sync=group", "buffer=64KiB,sync=group"} {
		inBubble(t, policy, func(t *testing.T, w *holdfast.Writer, f *fault.File) {
			var group sync.WaitGroup
			for i := range 50 {
				group.Go(func() {
					time.Sleep(time.Duration(i) * 700 * time.Microsecond)
					start := time.Now()
					put(t, w, 10)
					if d := time.Since(start); d > 2*took+took/4 {
						t.Errorf("Write %d took %v with a sync of %v", i, d, took)
					}
				})
			}
			group.Wait()
		}, fault.Fault{Op: fault.Sync, Delay: took})
	}
}

// TestLoneWriterDoesNotWaitForOthers measures one goroutine under group commit,
// also after many have left.
func TestLoneWriterDoesNotWaitForOthers(t *testing.T) {
	const took = 8 * ms
	inBubble(t, "buffer=64KiB,sync=group", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
		alone := func(n int) time.Duration {
			start := time.Now()
			for range n {
				put(t, w, 10)
			}
			return time.Since(start)
		}
		if d := alone(20); d != 20*took {
			t.Errorf("20 Writes took %v with syncs of %v", d, took)
		}
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() { alone(5) })
		}
		group.Wait()
		alone(20) // the Writer may need some syncs to learn that it is alone
		if d := alone(20); d > 20*took*11/10 {
			t.Errorf("20 Writes took %v with syncs of %v, long after others had left", d, took)
		}
	}, fault.Fault{Op: fault.Sync, Delay: took})
}

// TestCloseWaitsForNoOneToJoin begins when a leader expects the others of the batch before.
func TestCloseWaitsForNoOneToJoin(t *testing.T) {
	inBubble(t, "buffer=64KiB,sync=group", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for range 3 {
					put(t, w, 10)
				}
			})
		}
		group.Wait()
		start, before := time.Now(), f.Count(fault.Sync)
		go w.Write(make([]byte, 10))
		synctest.Wait()
		if f.Count(fault.Sync) > before {
			t.Fatal("the leader waits for no one: the case is not the one that is meant")
		}
		time.Sleep(time.Nanosecond)
		w.Close()
		if got := starts(f, fault.Sync, start); got[before] != 1 {
			t.Errorf("the sync began %v after the Write, want 1ns, when Close began", got[before])
		}
	}, fault.Fault{Op: fault.Sync, Delay: 8 * ms})
}

func TestStatsTellTheLongestSync(t *testing.T) {
	inBubble(t, "buffer=64KiB,sync=group", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
		for _, longest := range []time.Duration{2 * ms, 8 * ms, 8 * ms} {
			put(t, w, 10)
			if got := w.Stats().LongestSync; got != longest {
				t.Errorf("the longest sync took %v, want %v", got, longest)
			}
		}
	}, fault.Fault{Op: fault.Sync, Times: 1, Delay: 2 * ms}, fault.Fault{Op: fault.Sync, First: 2, Times: 1, Delay: 8 * ms}, fault.Fault{Op: fault.Sync, First: 3, Delay: ms})
}

func TestEachWriteHasASyncOfItsOwn(t *testing.T) {
	for _, policy := range []string{"buffer=0,sync=each", "buffer=64KiB,sync=each"} {
		inBubble(t, policy, func(t *testing.T, w *holdfast.Writer, f *fault.File) {
			var group sync.WaitGroup
			for range 8 {
				group.Go(func() {
					for range 5 {
						put(t, w, 10)
					}
				})
			}
			group.Wait()
			if n := f.Count(fault.Sync); n != 40 {
				t.Errorf("%d syncs for 40 Writes", n)
			}
			if n := f.Count(fault.Write); n != 40 {
				t.Errorf("%d writes for 40 Writes", n)
			}
		}, fault.Fault{Op: fault.Sync, Delay: ms})
	}
}

// TestSyncsMadeTogetherShareOne calls Sync from many goroutines at once.
func TestSyncsMadeTogetherShareOne(t *testing.T) {
	inMemory(t, func(s *stage) {
		_, err := s.w.Enqueue([]byte("abc"))
		s.ok(err)
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() {
				if err := s.w.Sync(); err != nil {
					s.Error(err)
				}
			})
		}
		group.Wait()
		if n := s.f.Count(fault.Sync); n > 2 {
			s.Errorf("20 Syncs made %d syncs", n)
		}
	}, fault.Fault{Op: fault.Sync, Delay: ms})
}

// TestWriteWaitsForNoOnesFlushOrSync keeps a write of the file, and a sync, in
// flight for an hour: a call that finds room in memory does not notice.
func TestWriteWaitsForNoOnesFlushOrSync(t *testing.T) {
	stuck := func(policy, what string, begin func(t *testing.T, w *holdfast.Writer), faults ...fault.Fault) {
		t.Helper()
		inBubble(t, policy, func(t *testing.T, w *holdfast.Writer, f *fault.File) {
			put(t, w, 10)
			var group sync.WaitGroup
			group.Go(func() { begin(t, w) })
			time.Sleep(time.Minute) // flushes and syncs by time are in flight, too
			start := time.Now()
			for range 20 {
				put(t, w, 1)
				if _, err := w.Enqueue([]byte("x")); err != nil {
					t.Error(err)
				}
			}
			w.Stats()
			if d := time.Since(start); d != 0 {
				t.Errorf("with %s in flight, 40 Writes of a byte took %v", what, d)
			}
			group.Wait()
		}, faults...)
	}
	write := fault.Fault{Op: fault.Write, First: 1, Times: 1, Take: fault.All, Delay: time.Hour}
	sync := fault.Fault{Op: fault.Sync, First: 1, Times: 1, Delay: time.Hour}
	flush := func(t *testing.T, w *holdfast.Writer) { w.Flush() }
	for _, policy := range []string{
		"buffer=4KiB,sync=never", "buffer=256KiB,sync=never", "buffer=4KiB,flush=10ms,sync=never",
		"buffer=256KiB,flush=10ms,sync=never", "buffer=4KiB,sync=close",
	} {
		stuck(policy, "a Flush", flush, write)
		stuck(policy, "a full buffer", func(t *testing.T, w *holdfast.Writer) {
			p, _ := holdfast.ParsePolicy(policy)
			for rest := int(p.Buffer) - int(w.Written()); rest > 0; rest -= 32 << 10 { // fills the buffer to the last byte
				put(t, w, min(rest, 32<<10)) // no large Write, which bypasses it
			}
		}, write)
		stuck(policy, "a Sync", func(t *testing.T, w *holdfast.Writer) { w.Sync() }, sync)
	}
	for _, policy := range []string{"buffer=4KiB,sync=10ms", "buffer=256KiB,sync=10ms", "buffer=256KiB,flush=3ms,sync=10ms", "buffer=0,sync=10ms"} {
		stuck(policy, "a sync by time", func(t *testing.T, w *holdfast.Writer) {}, sync)
	}
	stuck("buffer=256KiB,flush=3ms,sync=10ms", "a flush by time", func(t *testing.T, w *holdfast.Writer) {}, write)
	stuck("buffer=256KiB,sync=10ms", "a flush by time", func(t *testing.T, w *holdfast.Writer) {}, write)
}

// TestMemoryIsBounded has more written than a stalled file takes. Accepted bytes that are not in
// the kernel never exceed two buffers, and Writes wait.
func TestMemoryIsBounded(t *testing.T) {
	inMemory(t, func(s *stage) {
		const records, size = 40, 3000
		most := 2 * int64(s.policy.Buffer)
		counts, mu := [4]int64{}, sync.Mutex{}
		note := func(i int, n int) {
			mu.Lock()
			defer mu.Unlock()
			counts[i] += int64(n)
			held := counts[0] + counts[1] + counts[2] + counts[3] - s.f.Size()
			if held > most {
				s.Errorf("%d bytes are accepted and not in the kernel, more than %d", held, most)
			}
		}
		var group sync.WaitGroup
		for i := range 4 {
			group.Go(func() {
				for k := range records {
					s.takes(size)(s.w.Write(pattern(byte(i), k, size)))
					note(i, size)
				}
			})
		}
		group.Wait()
		s.ok(s.w.Close())
		s.inOrder(s.content(), records, records, records, records)
		if s.policy.Buffer > 0 && s.policy.Buffer <= 64*holdfast.KiB && s.policy.Buffer > size && !s.policy.Loss().Power.None() && s.w.Stats().Waits == 0 {
			s.Errorf("no Write waited: %+v", s.w.Stats())
		}
	}, fault.Fault{Op: fault.Write, Take: fault.All, Delay: time.Second})
}

// TestCloseReleasesWritesThatWait closes while Writes wait for memory: they return ErrClosed, and
// their bytes are not in the file.
func TestCloseReleasesWritesThatWait(t *testing.T) {
	inMemory(t, func(s *stage) {
		var group sync.WaitGroup
		var mu sync.Mutex
		accepted := [6]int{}
		for i := range 6 {
			group.Go(func() {
				for k := 0; ; k++ {
					var n int
					var err error
					p := pattern(byte(i), k, 1000)
					if i > 1 {
						n, err = s.w.Write(p)
					} else if _, err = s.w.Enqueue(p); err == nil {
						n = len(p)
					}
					if n == len(p) {
						mu.Lock()
						accepted[i]++
						mu.Unlock()
					}
					if err != nil {
						if !errors.Is(err, holdfast.ErrClosed) || (n != 0 && n != len(p)) {
							s.Errorf("Write = %d, %v", n, err)
						}
						return
					}
				}
			})
		}
		time.Sleep(20*time.Second + 1)
		start := time.Now()
		s.ok(s.w.Close())
		took := time.Since(start)
		group.Wait()
		if took > 20*time.Second {
			s.Errorf("Close took %v", took)
		}
		s.inOrder(s.content(), accepted[:]...)
	}, fault.Fault{Op: fault.Write, Take: fault.All, Delay: time.Second})
}

const ms = time.Millisecond

// newWriter returns a Writer on a file with these faults, closed with the test.
func newWriter(t *testing.T, policy string, faults ...fault.Fault) (*holdfast.Writer, *fault.File) {
	t.Helper()
	p, err := holdfast.ParsePolicy(policy)
	if err != nil {
		t.Fatal(err)
	}
	f := fault.New(faults...)
	w, err := holdfast.New(f, p)
	if err != nil {
		t.Fatal(err)
	}
	return w, f
}

func put(t *testing.T, w *holdfast.Writer, size int) {
	t.Helper()
	if n, err := w.Write(make([]byte, size)); n != size || err != nil {
		t.Fatalf("Write of %d bytes = %d, %v", size, n, err)
	}
}

// TestSyncByTimeCountsFromAByteAcceptedDuringASync lets a byte come while a sync
// is in flight: its own sync starts one period after it, not later.
func TestSyncByTimeCountsFromAByteAcceptedDuringASync(t *testing.T) {
	for _, policy := range []string{"buffer=0,sync=10ms", "buffer=32B,sync=10ms", "buffer=64KiB,sync=10ms", "buffer=64KiB,flush=2ms,sync=10ms"} {
		for _, after := range []time.Duration{0, 1, ms, 5 * ms, 9 * ms} {
			synctest.Test(t, func(t *testing.T) {
				w, f := newWriter(t, policy, fault.Fault{Op: fault.Sync, Delay: 10 * ms})
				start := time.Now()
				put(t, w, 1)
				time.Sleep(10*ms + after) // the first sync is in flight until 20 ms
				put(t, w, 1)
				time.Sleep(100 * ms)
				for _, c := range f.Calls() {
					if c.Op == fault.Sync && c.To == 2 {
						if got, want := c.Start.Sub(start), 20*ms+after; got > want {
							t.Errorf("%s: the sync of what came %v into a sync started at %v, want %v", policy, after, got, want)
						}
						break
					}
				}
				w.Close()
			})
		}
	}
}

// TestSyncByTimeWaitsForNoOneToJoin lets callers share a sync first, so that a
// group commit would expect them again.
func TestSyncByTimeWaitsForNoOneToJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, f := newWriter(t, "buffer=32B,sync=10ms", fault.Fault{Op: fault.Sync, Delay: 8 * ms})
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for range 3 {
					put(t, w, 1)
					if err := w.Sync(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		start := time.Now()
		put(t, w, 1)
		time.Sleep(time.Second)
		calls := f.Calls()
		if got := calls[len(calls)-1].Start.Sub(start); got != 10*ms {
			t.Errorf("the sync by time started after %v, want 10ms", got)
		}
		w.Close()
	})
}

// TestSyncByBytesWaitsForNoNewerBytes lets a call flush and sync when a sync by bytes falls due. It
// syncs what the kernel has, before it flushes what came later.
func TestSyncByBytesWaitsForNoNewerBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, f := newWriter(t, "buffer=40B,sync=64B", fault.Fault{Op: fault.Write, Take: fault.All, Delay: 10 * ms})
		for range 2 {
			put(t, w, 20)
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		put(t, w, 32)
		flushed := make(chan error)
		go func() { flushed <- w.Flush() }()
		synctest.Wait()
		due := time.Now().Add(10 * ms) // then the kernel has 64 bytes, if the flusher was first, or 72
		put(t, w, 32)
		if err := w.Sync(); err != nil || w.Durable() != 104 {
			t.Errorf("Sync = %v, and %d bytes are durable, not 104", err, w.Durable())
		}
		if err := <-flushed; err != nil {
			t.Error(err)
		}
		for _, c := range f.Calls() {
			if c.Op == fault.Sync {
				if !c.Start.Equal(due) || c.To > 72 {
					t.Errorf("the first sync began %v after it was due, and covers %d bytes, more than the 72 of then", c.Start.Sub(due), c.To)
				}
				break
			}
		}
		w.Close()
	})
}

// TestSyncThatItsBatchDoesNotCoverGoesOn has two calls wait for the next sync, of which one needs more than the other.
func TestSyncThatItsBatchDoesNotCoverGoesOn(t *testing.T) {
	for _, leastFirst := range []bool{true, false} {
		testBatchOfTwo(t, leastFirst)
	}
}

func testBatchOfTwo(t *testing.T, leastFirst bool) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := newWriter(t, "buffer=1KiB,sync=1h", fault.Fault{Op: fault.Sync, Delay: 10 * ms})
		var calls sync.WaitGroup
		flushed := func() {
			put(t, w, 10)
			if err := w.Flush(); err != nil {
				t.Error(err)
			}
		}
		begin := func(what string, end int64, call func() error) {
			calls.Go(func() {
				if err := call(); err != nil || w.Durable() < end {
					t.Errorf("%s = %v, and %d bytes are durable, want %d", what, err, w.Durable(), end)
				}
			})
			synctest.Wait()
		}
		flushed()
		begin("the sync before", 10, w.Sync)
		flushed()
		least := func() {
			begin("WaitDurable", 20, func() error { return w.WaitDurable(context.Background(), 20) })
		}
		if leastFirst {
			least()
		}
		put(t, w, 10)
		begin("Sync", 30, w.Sync)
		if !leastFirst {
			least()
		}
		calls.Wait()
		w.Close()
	})
}

// TestCloseBesideAFailingSyncReportsIt closes while a caller's Sync is in flight
// that fails.
func TestCloseBesideAFailingSyncReportsIt(t *testing.T) {
	for _, policy := range []string{"buffer=1KiB,sync=never", "buffer=0,sync=never", "buffer=1KiB,sync=close", "sync=group"} {
		synctest.Test(t, func(t *testing.T) {
			w, _ := newWriter(t, policy, fault.Fault{Op: fault.Sync, Delay: ms, Err: syscall.EIO})
			w.Enqueue([]byte("x"))
			var group sync.WaitGroup
			group.Go(func() {
				if err := w.Sync(); !errors.Is(err, syscall.EIO) {
					t.Errorf("%s: Sync = %v", policy, err)
				}
			})
			synctest.Wait()
			var failed *holdfast.SyncError
			if err := w.Close(); !errors.As(err, &failed) {
				t.Errorf("%s: Close = %v, want a SyncError", policy, err)
			}
			group.Wait()
		})
	}
}

// TestFailedSyncIsReportedByEveryCallBesideAFailedWrite lets a flush in the
// background fail, go on, and then the sync fail.
func TestFailedSyncIsReportedByEveryCallBesideAFailedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := newWriter(t, "buffer=1KiB,flush=2ms,sync=5ms",
			fault.Fault{Op: fault.Write, First: 1, Times: 1, Err: syscall.EIO},
			fault.Fault{Op: fault.Sync, Err: syscall.EIO})
		put(t, w, 1)
		time.Sleep(20 * ms)
		var failedWrite *holdfast.WriteError
		var failedSync *holdfast.SyncError
		_, err := w.Write([]byte("x"))
		if !errors.As(err, &failedSync) || !errors.As(err, &failedWrite) {
			t.Errorf("Write = %v, want both the WriteError and the SyncError", err)
		}
		if _, err = w.Write([]byte("x")); !errors.As(err, &failedSync) || errors.As(err, &failedWrite) {
			t.Errorf("second Write = %v, want just the SyncError", err)
		}
		w.Close()
	})
}

// TestLargeWritesDoNotHoldUpASyncByTime keeps a slow file busy with Writes larger
// than the buffer: a small one in between is synced in time all the same.
func TestLargeWritesDoNotHoldUpASyncByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, f := newWriter(t, "buffer=64B,sync=10ms", fault.Fault{Op: fault.Write, Take: fault.All, Delay: 4 * ms})
		var group sync.WaitGroup
		start := time.Now()
		for range 3 {
			group.Go(func() {
				for range 20 {
					put(t, w, 100)
				}
			})
		}
		group.Wait()
		var last time.Duration
		for _, c := range f.Calls() {
			if c.Op == fault.Sync {
				at := c.Start.Sub(start)
				if at-last > 10*ms+2*4*ms {
					t.Errorf("no sync between %v and %v", last, at)
				}
				last = at
			}
		}
		if end := time.Since(start); end-last > 10*ms+2*4*ms {
			t.Errorf("no sync between %v and %v", last, end)
		}
		w.Close()
	})
}

// TestSyncOfSomeBytesDoesNotForgetTheOthers waits for the older of two records, at
// every place in memory: the younger one is synced in its time all the same.
func TestSyncOfSomeBytesDoesNotForgetTheOthers(t *testing.T) {
	for before := range 128 {
		for _, delay := range []time.Duration{0, ms} {
			synctest.Test(t, func(t *testing.T) {
				w, f := newWriter(t, "buffer=32B,sync=10ms", fault.Fault{Op: fault.Write, Take: fault.All, Delay: delay})
				for range before {
					put(t, w, 1)
				}
				if err := w.Sync(); err != nil {
					t.Fatal(err)
				}
				end, err := w.Enqueue(make([]byte, 10))
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(ms)
				put(t, w, 10)
				start := time.Now()
				if err := w.WaitDurable(context.Background(), end); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour)
				for _, c := range f.Calls() {
					if c.Op == fault.Sync && c.To == w.Written() {
						if late := c.Start.Sub(start) - 10*ms - 2*delay; late > 0 {
							t.Errorf("after %d bytes, writes take %v: the sync of the younger record is %v late", before, delay, late)
						}
						return
					}
				}
				t.Errorf("after %d bytes, writes take %v: the younger record was not synced within an hour", before, delay)
			})
		}
	}
}

// slowDisk takes a second for each sync. It counts what it has and no sync has covered.
type slowDisk struct {
	takes   time.Duration // for each write
	mu      sync.Mutex
	written int
	durable int
	most    int
	fails   bool
}

func (d *slowDisk) Write(p []byte) (int, error) {
	time.Sleep(d.takes)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.written += len(p)
	d.most = max(d.most, d.written-d.durable)
	return len(p), nil
}

func (d *slowDisk) Sync() error {
	d.mu.Lock()
	covers := d.written
	d.mu.Unlock()
	time.Sleep(time.Second)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fails {
		return syscall.EIO
	}
	d.durable = covers
	return nil
}

func (d *slowDisk) Close() error { return nil }

func (d *slowDisk) has() (written, durable int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.written, d.durable
}

// TestSyncByBytesBoundsWhatIsNotDurable writes faster than the disk syncs. Whatever the size of the
// Writes, the kernel never has more than twice the policy's bytes that are not durable, and a block.
func TestSyncByBytesBoundsWhatIsNotDurable(t *testing.T) {
	const limit, total = 1 << 20, 10 << 20
	check := func(policy string, size, goroutines, most int, takes time.Duration, flush bool) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			p, err := holdfast.ParsePolicy(policy)
			if err != nil {
				t.Fatal(err)
			}
			disk := &slowDisk{takes: takes}
			w, err := holdfast.New(disk, p)
			if err != nil {
				t.Fatal(err)
			}
			var group sync.WaitGroup
			for range goroutines {
				group.Go(func() {
					for range total / goroutines / size {
						if _, err := w.Write(make([]byte, size)); err != nil {
							t.Error(err)
						}
						if flush {
							if err := w.Flush(); err != nil {
								t.Error(err)
							}
						}
					}
				})
			}
			group.Wait()
			if err := errors.Join(w.Sync(), w.Close()); err != nil {
				t.Error(err)
			}
			if want := total / goroutines / size * goroutines * size; disk.written != want || disk.durable != want {
				t.Errorf("%s: %d bytes are written and %d durable, want %d", policy, disk.written, disk.durable, want)
			}
			if disk.most > most {
				t.Errorf("%s, Writes of %d bytes: %d bytes were not durable, want %d at most", policy, size, disk.most, most)
			}
		})
	}
	for _, size := range []int{200, 4 << 10, 60 << 10} {
		for _, goroutines := range []int{1, 8} {
			check("buffer=64KiB,sync=1MiB", size, goroutines, 2*limit+64<<10, 0, false)
			check("buffer=64KiB,sync=1MiB", size, goroutines, 2*limit+64<<10, ms, false) // strips fill beside a flush
		}
	}
	check("buffer=64KiB,sync=1MiB", 60<<10, 1, 2*limit+64<<10, 0, true)
	check("buffer=64KiB,sync=1h/1MiB", 200, 1, 2*limit+64<<10, 0, false)
	check("buffer=64KiB,sync=1MiB", 256<<10, 8, 2*limit+256<<10, 0, false)
	check("buffer=0,sync=1MiB", 200, 8, 2*limit+200, 0, false)
}

// TestWaitForASyncByBytesEnds has flushes wait for a sync when that fails, and when Close begins.
func TestWaitForASyncByBytesEnds(t *testing.T) {
	check := func(fails bool) {
		synctest.Test(t, func(t *testing.T) {
			disk := &slowDisk{fails: fails}
			w, err := holdfast.New(disk, holdfast.Policy{Buffer: 64 * holdfast.KiB, Sync: holdfast.Sync{Mode: holdfast.SyncPeriodic, Bytes: 1 * holdfast.MiB}})
			if err != nil {
				t.Fatal(err)
			}
			failed := make(chan error, 1)
			go func() {
				var err error
				for n := 0; n < 4<<20 && err == nil; n += 1 << 10 {
					_, err = w.Write(make([]byte, 1<<10))
				}
				failed <- err
			}()
			synctest.Wait()
			if written, _ := disk.has(); written < 2<<20 || written > 2<<20+64<<10 {
				t.Errorf("%d bytes are written while the first sync runs", written)
			}
			if fails {
				time.Sleep(2 * time.Second)
			}
			start := time.Now()
			if err := w.Close(); (err != nil) != fails {
				t.Errorf("Close = %v", err)
			}
			if took := time.Since(start); took > 3*time.Second {
				t.Errorf("Close took %v", took)
			}
			last := <-failed
			if _, durable := disk.has(); last == nil || !fails && (!errors.Is(last, holdfast.ErrClosed) || int64(durable) != w.Written()) {
				t.Errorf("the last Write returned %v; %d of %d bytes are durable", last, durable, w.Written())
			}
		})
	}
	check(false)
	check(true)
}

type slowSync struct{ memory }

func (f *slowSync) Sync() error {
	time.Sleep(time.Second)
	return nil
}

// TestFlushByTimeDoesNotWaitForASyncByBytes has a sync take a second, while more than twice its bytes come.
func TestFlushByTimeDoesNotWaitForASyncByBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := holdfast.ParsePolicy("buffer=4KiB,flush=3ms,sync=1KiB")
		if err != nil {
			t.Fatal(err)
		}
		w, err := holdfast.New(&slowSync{}, p)
		if err != nil {
			t.Fatal(err)
		}
		for written := 100; written <= 6000; written += 100 {
			if _, err := w.Write(make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(4 * time.Millisecond)
			synctest.Wait()
			if flushed := w.Flushed(); flushed != int64(written) {
				t.Fatalf("4 ms after a Write the kernel has %d bytes, want %d", flushed, written)
			}
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestASlowSyncIsHeardOfWhileItRuns, once, and one that ends in time is not. Close waits for no report.
func TestASlowSyncIsHeardOfWhileItRuns(t *testing.T) {
	inBubble(t, "buffer=64KiB,sync=group", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
		var heard []holdfast.SlowSync
		w.OnSlowSync(time.Second, func(s holdfast.SlowSync) {
			if heard = append(heard, s); w.Durable() != 10 {
				t.Errorf("heard when %d bytes were durable", w.Durable())
			}
			time.Sleep(time.Minute)
		})
		put(t, w, 10)
		start := time.Now()
		put(t, w, 10)
		put(t, w, 10)
		if took := time.Since(start); took != 5*time.Second+ms {
			t.Errorf("the Writes took %v", took)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(heard) != 1 || !heard[0].Since.Equal(start) || heard[0].Path != "" {
			t.Errorf("heard of %v", heard)
		}
	}, fault.Fault{Op: fault.Sync, Times: 1, Delay: time.Second - 1}, fault.Fault{Op: fault.Sync, First: 2, Times: 1, Delay: 5 * time.Second}, fault.Fault{Op: fault.Sync, First: 3, Delay: ms})
}
