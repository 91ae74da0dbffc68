package holdfast_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

// TestNewRefusesNoFile gives it nil, and a nil *os.File.
func TestNewRefusesNoFile(t *testing.T) {
	var none *os.File
	for _, f := range []holdfast.File{nil, none} {
		if w, err := holdfast.New(f, holdfast.Buffered(4096)); w != nil || err == nil || !strings.Contains(err.Error(), "nil") {
			t.Errorf("New = %v, %v", w, err)
		}
	}
}

// TestNewRefusesToSyncAPipe gives it what has no stable storage.
func TestNewRefusesToSyncAPipe(t *testing.T) {
	r, pipe, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, p := range []holdfast.Policy{holdfast.Durable(), holdfast.Periodic(time.Second)} {
		if w, err := holdfast.New(pipe, p); w != nil || err == nil || !strings.Contains(err.Error(), "use sync=never") {
			t.Errorf("%v: New = %v, %v", p, w != nil, err)
		}
	}
	w, err := holdfast.New(pipe, holdfast.Unbuffered())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// TestLargestBufferIsTwiceAnInt takes the largest buffer, and one byte more.
func TestLargestBufferIsTwiceAnInt(t *testing.T) {
	largest := min(holdfast.GiB, holdfast.Size(math.MaxInt/2))
	if err := holdfast.Buffered(largest).Validate(); err != nil {
		t.Error(err)
	}
	more := holdfast.Buffered(largest + 1)
	if err := more.Validate(); err == nil || !strings.Contains(err.Error(), more.Buffer.String()) || !strings.Contains(err.Error(), largest.String()) {
		t.Errorf("buffer=%v: %v; want an error that names it and %v", more.Buffer, err, largest)
	}
}

// TestTruncatedUnderneathLeavesNoHole truncates the file between two Writes, as
// logrotate's copytruncate does.
func TestTruncatedUnderneathLeavesNoHole(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a file that is truncated when it is opened has a position of its own on Windows")
	}
	for name, open := range map[string]func(string, holdfast.Policy) (*holdfast.Writer, error){"Create": holdfast.Create, "Append": holdfast.Append} {
		for _, p := range []holdfast.Policy{holdfast.Unbuffered(), holdfast.Buffered(64), holdfast.Durable()} {
			path := filepath.Join(t.TempDir(), "log")
			w, err := open(path, p)
			if err != nil {
				t.Fatal(err)
			}
			write := func(s string) {
				if _, err := w.ReadFrom(strings.NewReader(s)); err != nil {
					t.Fatal(err)
				}
				if err := w.Flush(); err != nil {
					t.Fatal(err)
				}
			}
			write("before\n")
			if err := os.Truncate(path, 0); err != nil {
				t.Fatal(err)
			}
			write("after\n")
			write(strings.Repeat("long", 100))
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if got, _ := os.ReadFile(path); string(got) != "after\n"+strings.Repeat("long", 100) {
				t.Errorf("%s, %v: the file holds %q", name, p, got)
			}
		}
	}
}

// TestZeroWriterRefusesEveryCall, also one that has nothing to write or to wait for.
func TestZeroWriterRefusesEveryCall(t *testing.T) {
	var w holdfast.Writer
	calls := callsOf(&w)
	calls["Write of nothing"] = func() error { _, err := w.Write(nil); return err }
	calls["Enqueue of nothing"] = func() error { _, err := w.Enqueue(nil); return err }
	calls["ReadFrom of nothing"] = func() error { _, err := w.ReadFrom(strings.NewReader("")); return err }
	calls["WaitDurable of nothing"] = func() error { return w.WaitDurable(context.Background(), 0) }
	calls["CloseContext"] = func() error { return w.CloseContext(context.Background()) }
	for name, call := range calls {
		if err := call(); err == nil || !strings.Contains(err.Error(), "has no file") {
			t.Errorf("%s = %v", name, err)
		}
	}
	w.OnError(func(err error) { t.Error(err) })
	if s := w.Stats(); s.Writes != 0 || w.Written() != 0 || w.Flushed() != 0 || w.Durable() != 0 || w.Err() != nil {
		t.Errorf("%+v, Err = %v", s, w.Err())
	}
}

// TestNoWriterStarvesWhereEachWriteHasASync has 64 goroutines write for some hundred
// syncs each. On its disk a goroutine that comes back at once finds the turn free.
func TestNoWriterStarvesWhereEachWriteHasASync(t *testing.T) {
	for _, policy := range []string{"buffer=0,sync=each", "buffer=64KiB,sync=each"} {
		inBubble(t, policy, func(t *testing.T, w *holdfast.Writer, f *fault.File) {
			const writers, syncs = 64, 64 * 20
			var counts [writers]int
			var left atomic.Int64
			left.Store(syncs)
			var group sync.WaitGroup
			for i := range writers {
				group.Go(func() {
					for left.Add(-1) >= 0 {
						put(t, w, 10)
						counts[i]++
					}
				})
			}
			group.Wait()
			least := counts[0]
			for _, n := range counts {
				least = min(least, n)
			}
			if mean := syncs / writers; 2*least < mean {
				t.Errorf("the slowest of %d writers made %d Writes of %d on average: %v", writers, least, mean, counts)
			}
		}, fault.Fault{Op: fault.Sync, Delay: 200 * time.Microsecond})
	}
}

// TestCloseOnAFullDiskSyncsWhatWasFlushed fills the disk in the middle of a flush.
func TestCloseOnAFullDiskSyncsWhatWasFlushed(t *testing.T) {
	for _, policy := range []string{"buffer=64KiB,sync=close", "buffer=64KiB,sync=1h"} {
		inBubble(t, policy, func(t *testing.T, w *holdfast.Writer, f *fault.File) {
			f.SetRoom(1000)
			if _, err := w.Write(make([]byte, 3000)); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("Close = %v, want ENOSPC", err)
			}
			if got := len(f.ProcessCrash()); got != 1000 {
				t.Fatalf("%d bytes are in the kernel, want 1000", got)
			}
			if got := f.Stable(); got != 1000 {
				t.Errorf("1000 bytes are in the kernel, %d are stable after Close", got)
			}
			if got := w.Durable(); got != 1000 {
				t.Errorf("Durable is %d, want 1000", got)
			}
		})
	}
}

// TestRecordsOfSomeKiBSpillWhole writes records that leave some KiB behind a block when
// they have filled it.
func TestRecordsOfSomeKiBSpillWhole(t *testing.T) {
	for size := 3000; size <= 8192; size += 307 {
		inBubble(t, "buffer=64KiB,sync=never", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
			var want []byte
			for i := range 100 {
				p := pattern(1, i, size)
				want = append(want, p...)
				if _, err := w.Write(p); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if got := f.ProcessCrash(); !bytes.Equal(got, want) {
				t.Errorf("records of %d bytes: the file differs from byte %d on", size, firstDifference(got, want))
			}
		})
	}
}

// TestLeaderWokenInVainWakesTheNext has two wait for the next batch. The sync
// before it covers the first of them too, because its leader had to wait for another
// flush. So the first is woken to lead, has no need to, and must wake the second.
func TestLeaderWokenInVainWakesTheNext(t *testing.T) {
	inBubble(t, "buffer=64KiB,sync=never", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
		var group sync.WaitGroup
		var done [3]atomic.Bool
		enqueue := func() int64 {
			end, err := w.Enqueue([]byte("x"))
			if err != nil {
				t.Error(err)
			}
			return end
		}
		wait := func(i int) {
			end := enqueue()
			group.Go(func() {
				if err := w.WaitDurable(context.Background(), end); err != nil {
					t.Error(err)
				}
				done[i].Store(true)
			})
			synctest.Wait()
		}
		enqueue()
		group.Go(func() { w.Flush() })
		synctest.Wait()
		wait(0) // leads, and waits for the flush
		wait(1)
		time.Sleep(1500 * ms) // the leader flushes what both need
		wait(2)
		time.Sleep(time.Minute)
		for i := range done {
			if !done[i].Load() {
				t.Errorf("WaitDurable %d waits for a batch that nobody leads", i)
				go w.Sync() // lets it go
			}
		}
		group.Wait()
		if n := f.Count(fault.Sync); n != 2 {
			t.Errorf("%d syncs, want 2: the case is not the one that is meant", n)
		}
	}, fault.Fault{Op: fault.Sync, Delay: time.Second}, fault.Fault{Op: fault.Write, Take: fault.All, Delay: time.Second})
}

// TestCloseAcceptsNothingBesideAFlush begins while a flush takes an hour, and memory has room.
func TestCloseAcceptsNothingBesideAFlush(t *testing.T) {
	inBubble(t, "buffer=4KiB,sync=never", func(t *testing.T, w *holdfast.Writer, _ *fault.File) {
		put(t, w, 10)
		go w.Flush()
		synctest.Wait()
		put(t, w, 1)
		go w.Close()
		synctest.Wait()
		if n, err := w.Write([]byte("x")); n != 0 || !errors.Is(err, holdfast.ErrClosed) {
			t.Errorf("Write = %d, %v", n, err)
		}
		if end, err := w.Enqueue([]byte("x")); end != 0 || !errors.Is(err, holdfast.ErrClosed) {
			t.Errorf("Enqueue = %d, %v", end, err)
		}
	}, fault.Fault{Op: fault.Write, Take: fault.All, Delay: time.Hour})
}

// TestWaitDurableBesideCloseIsForItsSync: Close makes the bytes durable, and the wait began after it.
func TestWaitDurableBesideCloseIsForItsSync(t *testing.T) {
	inBubble(t, "buffer=4KiB,sync=close", func(t *testing.T, w *holdfast.Writer, _ *fault.File) {
		end, err := w.Enqueue([]byte("record"))
		if err != nil {
			t.Fatal(err)
		}
		go w.Close()
		synctest.Wait()
		if err := w.WaitDurable(context.Background(), end+1); !errors.Is(err, holdfast.ErrClosed) {
			t.Errorf("WaitDurable of what was never written = %v", err)
		}
		if err := w.WaitDurable(context.Background(), end); err != nil || w.Durable() != end {
			t.Errorf("WaitDurable = %v, with %d durable", err, w.Durable())
		}
	}, fault.Fault{Op: fault.Sync, Delay: time.Second})
}

// TestCloseOnAFullDiskWaitsForTheSyncInFlight, which is that of another call and of fewer bytes.
func TestCloseOnAFullDiskWaitsForTheSyncInFlight(t *testing.T) {
	inBubble(t, "buffer=4KiB,sync=close", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
		f.SetRoom(1000)
		write := func(n int) {
			if _, err := w.Write(make([]byte, n)); err != nil {
				t.Error(err)
			}
		}
		write(500)
		synced := make(chan error, 1)
		go func() { synced <- w.Sync() }()
		synctest.Wait()
		write(3000)
		if err := w.Close(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Close = %v, want ENOSPC", err)
		}
		if err := <-synced; err != nil || f.Stable() != 1000 || w.Durable() != 1000 {
			t.Errorf("Sync = %v; %d bytes are stable, %d durable, want 1000", err, f.Stable(), w.Durable())
		}
	}, fault.Fault{Op: fault.Sync, Times: 1, Delay: time.Second})
}
