//go:build go1.25

package wal

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

// mustOpenDisk opens a log on a disk that can't write and sync in one call.
func mustOpenDisk(t *testing.T, d *fault.Disk, policy string) *Log {
	t.Helper()
	p, err := holdfast.ParsePolicy(policy)
	if err != nil {
		t.Fatal(err)
	}
	l, _, err := open(noDsync{d}, "/log", Options{Policy: p, SegmentSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var full = fault.DiskFault{Op: fault.DiskWrite, Err: syscall.ENOSPC}

// TestClocksRunAgainAfterACallThatFailed: the batches of calls stop the clocks, and a full disk fails them. When there is room
// again, no call is needed: what was accepted is flushed and durable within the policy's bounds.
func TestClocksRunAgainAfterACallThatFailed(t *testing.T) {
	calls := map[string]func(t *testing.T, l *Log) error{
		"Wait":           func(t *testing.T, l *Log) error { return l.Wait(background, l.Last()) },
		"WaitCtx":        func(t *testing.T, l *Log) error { return l.Wait(t.Context(), l.Last()) },
		"Append":         func(_ *testing.T, l *Log) error { _, err := l.Append(make([]byte, 5000)); return err },
		"Read":           func(_ *testing.T, l *Log) error { _, err := l.Read(l.Last()); return err },
		"TruncateBefore": func(_ *testing.T, l *Log) error { return l.TruncateBefore(l.Last()) },
		"TruncateAfter":  func(_ *testing.T, l *Log) error { return l.TruncateAfter(l.Last() - 1) },
	}
	for name, call := range calls {
		for _, policy := range []string{
			"buffer=4KiB,flush=10ms,sync=never", "buffer=4KiB,sync=10ms", "buffer=4KiB,flush=5ms,sync=10ms",
			"buffer=4KiB,flush=10ms,sync=64B", "buffer=4KiB,sync=10ms/4KiB", "buffer=4KiB,sync=64B", "buffer=0,sync=10ms",
		} {
			synctest.Test(t, func(t *testing.T) {
				d := newDisk(t, nil)
				l := mustOpenDisk(t, d, policy)
				for range 2 {
					if _, err := l.Append(make([]byte, 100)); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait() // a sync by bytes has ended
				d.Add(full)
				_, err := l.Append(make([]byte, 100))
				if err = errors.Join(err, call(t, l)); !errors.Is(err, syscall.ENOSPC) {
					t.Fatalf("%s under %s: the test proves nothing: %v", name, policy, err)
				}
				time.Sleep(time.Second)
				d.Mend()
				time.Sleep(10 * time.Millisecond)
				synctest.Wait()
				p := l.opts.Policy
				s := l.Stats()
				if limit := p.Loss().Process; limit.Time != holdfast.Unlimited && s.NotFlushed != 0 {
					t.Errorf("%s under %s: %d bytes are not flushed", name, policy, s.NotFlushed)
				}
				if limit := p.Loss().Power; limit.Time != holdfast.Unlimited && s.NotDurable != 0 || p.Sync.Bytes > 0 && p.FlushEvery > 0 && s.NotDurable >= int64(p.Sync.Bytes) {
					t.Errorf("%s under %s: %d bytes are not durable", name, policy, s.NotDurable)
				}
				if err := l.Close(); err != nil && !errors.Is(err, syscall.ENOSPC) {
					t.Error(err)
				}
			})
		}
	}
}

// TestAFullDiskSyncsWhatItHas: a record is in the kernel when the disk is full for the next one.
func TestAFullDiskSyncsWhatItHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(t, nil)
		l := mustOpenDisk(t, d, "buffer=4KiB,flush=1ms,sync=10ms")
		for n := range 2 {
			if n == 1 {
				d.Add(full)
			}
			if _, err := l.Append([]byte("record")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Millisecond)
		}
		time.Sleep(10 * time.Millisecond)
		if synctest.Wait(); l.Durable() != 1 {
			t.Errorf("durable up to %d, want 1", l.Durable())
		}
		if err := l.Close(); !errors.Is(err, syscall.ENOSPC) {
			t.Error(err)
		}
	})
}

// TestAFailureOfABatchIsReportedOnce: the batch of two calls can't write the second record. It makes the first one durable, so
// the call for that has what it wants. The next call returns the failure, if the other call has not.
func TestAFailureOfABatchIsReportedOnce(t *testing.T) {
	for _, waits := range [][]uint64{{1}, {1, 2}, {2, 1}} { // the first leads
		synctest.Test(t, func(t *testing.T) {
			d := newDisk(t, nil)
			l := mustOpenDisk(t, d, "buffer=4KiB,sync=close")
			add := func() error { _, err := l.Append([]byte("record")); return err }
			d.Add(fault.DiskFault{Op: fault.DiskWrite, Times: 1, Take: fault.All, Delay: time.Second})
			d.Add(fault.DiskFault{Op: fault.DiskWrite, First: 2, Times: 1, Err: syscall.ENOSPC})
			if err := add(); err != nil {
				t.Fatal(err)
			}
			var calls sync.WaitGroup
			calls.Go(func() {
				if _, err := l.Read(1); err != nil { // flushes it
					t.Error(err)
				}
			})
			synctest.Wait()
			if err := add(); err != nil {
				t.Fatal(err)
			}
			for _, index := range waits {
				calls.Go(func() {
					if err := l.Wait(background, index); errors.Is(err, syscall.ENOSPC) != (index == 2) || l.Durable() != 1 {
						t.Errorf("Wait(%d) = %v, durable %d", index, err, l.Durable())
					}
				})
				synctest.Wait()
			}
			calls.Wait()
			if err, returned := add(), len(waits) == 2; errors.Is(err, syscall.ENOSPC) == returned {
				t.Errorf("Wait for %v, and then the next call = %v", waits, err)
			}
			if err := errors.Join(add(), l.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestACutDoesNotShareTheBatchAtWork, though that makes all durable.
func TestACutDoesNotShareTheBatchAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(t, nil)
		l := mustOpenDisk(t, d, "buffer=64KiB,sync=group")
		d.Add(fault.DiskFault{Op: fault.DiskDatasync, Times: 1, Delay: time.Second})
		go l.Append([]byte("a"), []byte("b"))
		synctest.Wait()
		if err := l.TruncateAfter(1); err != nil || l.Last() != 1 || l.Durable() != 1 {
			t.Errorf("TruncateAfter = %v; last %d, durable %d", err, l.Last(), l.Durable())
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestAFlushByBytesStartsBehindASync without a further call.
func TestAFlushByBytesStartsBehindASync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(t, nil)
		l := mustOpenDisk(t, d, "buffer=64KiB,flush=1KiB,sync=close")
		defer l.Close()
		add := func(size int) {
			if _, err := l.Append(make([]byte, size)); err != nil {
				t.Fatal(err)
			}
		}
		add(1)
		d.Add(fault.DiskFault{Op: fault.DiskDatasync, Times: 1, Delay: time.Second})
		go l.Wait(background, 1)
		synctest.Wait()
		add(1000)
		add(1000)
		time.Sleep(time.Second)
		if synctest.Wait(); l.Stats().NotFlushed != 0 {
			t.Errorf("%+v", l.Stats())
		}
	})
}

// TestASignalForEachCallEndsInAnError and loses nothing.
func TestASignalForEachCallEndsInAnError(t *testing.T) {
	d := newDisk(t, nil)
	l := mustOpenDisk(t, d, "buffer=0,sync=never")
	d.Add(fault.DiskFault{Op: fault.DiskWrite, Err: syscall.EINTR})
	if last, err := l.Append([]byte("record")); last != 1 || !errors.Is(err, syscall.EINTR) {
		t.Errorf("Append = %d, %v", last, err)
	}
	d.Mend()
	if err := l.Wait(background, 1); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// A crowded disk counts the writes that are made at once.
type crowded struct {
	noDsync
	now, most atomic.Int64
}

func (d *crowded) WriteAt(fd int, p []byte, at int64) (int, error) {
	n := d.now.Add(1)
	for most := d.most.Load(); n > most && !d.most.CompareAndSwap(most, n); most = d.most.Load() {
	}
	defer d.now.Add(-1)
	return d.noDsync.WriteAt(fd, p, at)
}

// TestLogsThatAreDueTogetherTakeTurns: each write takes a while, and a thread. Time is real, because the process's clock has no
// timers of a bubble.
func TestLogsThatAreDueTogetherTakeTurns(t *testing.T) {
	const logs, abreast = 150, 64
	d := &crowded{noDsync: noDsync{newDisk(t, nil)}}
	var all []*Log
	for n := range logs {
		l, _, err := open(d, fmt.Sprintf("/log/%d", n), Options{Policy: holdfast.Periodic(500 * time.Millisecond), SegmentSize: 64 * holdfast.KiB})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		all = append(all, l)
	}
	d.Add(fault.DiskFault{Op: fault.DiskWrite, Take: fault.All, Delay: 100 * time.Millisecond})
	for _, l := range all {
		if _, err := l.Append([]byte("record")); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range all {
		for l.Durable() != 1 {
			time.Sleep(time.Millisecond)
		}
	}
	d.Mend() // each Close writes too
	if most := d.most.Load(); most > abreast {
		t.Errorf("%d writes at once, want at most %d", most, abreast)
	}
}
