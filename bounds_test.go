package holdfast_test

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

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
