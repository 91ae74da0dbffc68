//go:build go1.25

package wal

import (
	"errors"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

func TestADurableWriteLeavesNothingAtRisk(t *testing.T) {
	l, _, err := open(newDisk(t, nil), "/log", small)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 3 {
		if _, err := l.Append([]byte("record")); err != nil {
			t.Fatal(err)
		}
		if s := l.Stats(); s.NotDurable != 0 || s.Oldest != 0 {
			t.Errorf("%+v", s)
		}
	}
}

func TestStatsOfTheLog(t *testing.T) {
	for _, dsync := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			d := newDisk(t, nil)
			var under disk = d
			if !dsync {
				under = noDsync{d}
			}
			l, _, err := open(under, "/log", Options{Policy: holdfast.Buffered(4 * holdfast.KiB), SegmentSize: leastSegment})
			if err != nil {
				t.Fatal(err)
			}
			if s := l.Stats(); s.NotDurable != 0 || s.Oldest != 0 || s.Writes != 0 {
				t.Errorf("new: %+v", s)
			}
			last, err := l.Append([]byte("a"), []byte("b"))
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			if s := l.Stats(); s.Writes != 1 || s.NotFlushed == 0 || s.NotDurable != s.NotFlushed || s.Oldest != time.Second {
				t.Errorf("in memory: %+v", s)
			}
			if _, err := l.Read(last); err != nil { // which writes it
				t.Fatal(err)
			}
			if s := l.Stats(); s.NotFlushed != 0 || s.NotDurable == 0 || s.Flushes != 1 || s.Flush.Count() != 1 || s.Syncs != 0 || s.Oldest != time.Second {
				t.Errorf("in the kernel: %+v", s)
			}
			if err := l.Wait(t.Context(), last); err != nil {
				t.Fatal(err)
			}
			if s := l.Stats(); s.NotDurable != 0 || s.Syncs != 1 || s.Sync.Count() != 1 || s.Oldest != 0 {
				t.Errorf("durable: %+v", s)
			}
			time.Sleep(time.Hour)
			if _, err := l.Append([]byte("c")); err != nil {
				t.Fatal(err)
			}
			if s := l.Stats(); s.Oldest != 0 || s.NotDurable == 0 {
				t.Errorf("just appended: %+v", s)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Hour)
			if s := l.Stats(); s.NotFlushed != 0 || s.NotDurable == 0 || s.Oldest != 0 || s.Syncs != 1 {
				t.Errorf("closed under sync=never: %+v", s)
			}
		})
	}
}

// TestAFinalFailureIsHeardAfterOneThatIsTriedAgain, without a write that works between them.
func TestAFinalFailureIsHeardAfterOneThatIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard []bool
		d := newDisk(t, nil)
		l, _, err := open(d, "/log", Options{SegmentSize: leastSegment, Policy: holdfast.Durable(), OnError: func(e *Error) { heard = append(heard, e.Final) }})
		if err != nil {
			t.Fatal(err)
		}
		full := make([]byte, leastSegment-headerSize-36)
		if _, err := l.Append(full); err != nil {
			t.Fatal(err)
		}
		l.background.Wait() // the next segment is prepared
		d.Add(fault.DiskFault{Op: fault.DiskRename, Times: 1, Err: syscall.EIO})
		if _, err := l.Append(full); !errors.Is(err, syscall.EIO) {
			t.Error(err)
		}
		d.Add(fault.DiskFault{Op: fault.DiskSync, Times: 1, Err: syscall.EIO})
		if err := l.Wait(t.Context(), l.Last()); !errors.Is(err, syscall.EIO) {
			t.Error(err)
		}
		l.Close() // it has failed
		synctest.Wait()
		if !slices.Equal(heard, []bool{false, true}) {
			t.Errorf("final ones among those that were heard: %v", heard)
		}
	})
}

// TestASlowSyncIsHeardOfWhileItRuns, and the counts have the log's indices.
func TestASlowSyncIsHeardOfWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(t, nil)
		var l *Log
		var heard []uint64
		l, _, err := open(d, "/log", Options{Policy: holdfast.Durable(), SlowSync: time.Second, OnSlowSync: func(s holdfast.SlowSync) {
			if heard = append(heard, l.Durable()); s.Path != "/log" || time.Since(s.Since) != time.Second {
				t.Errorf("heard of %v after %v", s, time.Since(s.Since))
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		l.noDsync = true // its writes and syncs are two calls
		for range 2 {
			if last, err := l.Append([]byte("record")); err != nil || l.Wait(t.Context(), last) != nil {
				t.Fatal(err)
			}
		}
		d.Add(fault.DiskFault{Op: fault.DiskDatasync, Delay: time.Minute, Times: 1, Take: fault.All})
		if last, err := l.Append([]byte("record")); err != nil || l.Wait(t.Context(), last) != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !slices.Equal(heard, []uint64{2}) {
			t.Errorf("heard of it when %v were durable, want once, at 2", heard)
		}
		if s := l.Stats(); s.First != 1 || s.Last != 3 || s.Durable != 3 || s.Syncs < 3 {
			t.Errorf("%+v", s)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}
