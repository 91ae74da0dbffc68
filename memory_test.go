//go:build go1.25

package holdfast_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// memory is a file that keeps what it is given.
type memory struct{ bytes.Buffer }

func (m *memory) Sync() error  { return nil }
func (m *memory) Close() error { return nil }

// slowFile takes a second for each write while it is slow.
type slowFile struct {
	memory
	slow bool
}

func (f *slowFile) Write(p []byte) (int, error) {
	if f.slow {
		time.Sleep(time.Second)
	}
	return f.memory.Write(p)
}

// numberedBytes returns n bytes of a stream, from this offset on.
func numberedBytes(at, n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte((at + i) % 251)
	}
	return p
}

// TestWritesGoOnBesideAFlush has more written than the buffer takes while a flush is
// under way, after any number of bytes.
func TestWritesGoOnBesideAFlush(t *testing.T) {
	check := func(before int) {
		synctest.Test(t, func(t *testing.T) {
			file := &slowFile{}
			w, err := holdfast.New(file, holdfast.Buffered(64))
			if err != nil {
				t.Fatal(err)
			}
			at := 0
			put := func(n, record int) {
				for end := at + n; at < end; {
					k, err := w.Write(numberedBytes(at, min(record, end-at)))
					if err != nil {
						t.Error(err)
					}
					at += k
				}
			}
			put(before, 4)
			if err := w.Flush(); err != nil {
				t.Error(err)
			}
			put(2, 2)
			file.slow = true
			var group sync.WaitGroup
			group.Go(func() {
				if err := w.Flush(); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
			start := time.Now()
			put(60, 5)
			if d := time.Since(start); d != 0 {
				t.Errorf("after %d bytes, 60 bytes during a flush took %v", before, d)
			}
			put(300, 17)
			group.Wait()
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			if !bytes.Equal(file.Bytes(), numberedBytes(0, at)) {
				t.Errorf("after %d bytes: the file has other bytes", before)
			}
		})
	}
	for before := range 300 {
		check(before)
	}
}

// TestLongWriteBypassesALargeBuffer has a Write go from the caller's slice to the file,
// behind what waits, from 64 KiB on.
func TestLongWriteBypassesALargeBuffer(t *testing.T) {
	file := &memory{}
	w, err := holdfast.New(file, holdfast.Buffered(1*holdfast.MiB))
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	check := func(n, flushed int) {
		t.Helper()
		if _, err := w.Write(numberedBytes(at, n)); err != nil {
			t.Fatal(err)
		}
		if at += n; w.Flushed() != int64(flushed) {
			t.Errorf("after a Write of %d bytes %d of %d are flushed, want %d", n, w.Flushed(), at, flushed)
		}
	}
	check(10, 0)
	for range 2 {
		check(64*1024-1, 0)
	}
	check(64*1024, 10+3*64*1024-2)
	check(7, 10+3*64*1024-2)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(file.Bytes(), numberedBytes(0, at)) {
		t.Error("the file has other bytes")
	}
}

// TestStripThatFillsDuringAFlushIsFlushedWithoutACall fills a strip while the one before it is
// written. No call comes after that.
func TestStripThatFillsDuringAFlushIsFlushedWithoutACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := holdfast.New(&slowFile{slow: true}, holdfast.Policy{Buffer: 16 * holdfast.KiB, FlushBytes: 4 * holdfast.KiB})
		if err != nil {
			t.Fatal(err)
		}
		fill := func() {
			for range 4 {
				if _, err := w.Write(make([]byte, 1*holdfast.KiB)); err != nil {
					t.Error(err)
				}
			}
		}
		go fill()
		synctest.Wait() // it writes
		fill()
		time.Sleep(time.Minute)
		if flushed := w.Flushed(); flushed != 8<<10 {
			t.Errorf("%d bytes are flushed, want both strips", flushed)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestFirstFlushIsCounted takes a second for the first flush and no time for the second.
func TestFirstFlushIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := &slowFile{slow: true}
		w, err := holdfast.New(file, holdfast.Unbuffered())
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		for range 2 {
			if _, err := w.Write([]byte("record")); err != nil {
				t.Fatal(err)
			}
			file.slow = false
		}
		if s := w.Stats(); s.Flushes != 2 || s.SystemCalls != 2 || s.Flush.Max() != time.Second || s.Flush.Sum() != time.Second {
			t.Errorf("%d flushes, %d calls, times %v; want 2, 2 and a second", s.Flushes, s.SystemCalls, s.Flush)
		}
	})
}

// TestNoByteIsLostWhileMemoryGrows has some goroutines write small records while others need more memory: that is made without
// the lock, the last time in a size that no pool has.
func TestNoByteIsLostWhileMemoryGrows(t *testing.T) {
	rounds := 20
	if isolate.RaceEnabled { // each takes ten times as long, and one has nearly all the races
		rounds = 2
	}
	for range rounds {
		file := &memory{}
		w, err := holdfast.New(file, holdfast.Buffered(3*holdfast.MiB))
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for stream, size := range []int{60_000, 40_000, 10, 100} {
			group.Go(func() {
				for i := range 700_000 / size {
					if _, err := w.Write(pattern(byte(stream), i, size)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		(&stage{T: t}).inOrder(file.Bytes(), 11, 17, 70_000, 7000)
	}
}

type failingSync struct{ slowFile }

func (f *failingSync) Sync() error {
	f.slow = true
	time.Sleep(time.Millisecond)
	return errBoom
}

// TestFailedSyncReleasesThoseThatWaitForRoom has a sync fail while a write takes a second.
func TestFailedSyncReleasesThoseThatWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := holdfast.New(&failingSync{}, holdfast.Policy{Buffer: 4 * holdfast.KiB})
		if err != nil {
			t.Fatal(err)
		}
		w.Write([]byte("synced"))
		go w.Sync()
		synctest.Wait()
		var failed atomic.Int32
		for _, size := range []int{4096, 4000, 100, 100, 100} {
			go func() {
				if _, err := w.Write(make([]byte, size)); errors.Is(err, errBoom) {
					failed.Add(1)
				}
			}()
			synctest.Wait()
		}
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if got := failed.Load(); got != 3 {
			t.Errorf("%d calls that wait for room return the failed sync at once, want 3", got)
		}
		w.Close()
	})
}

// TestIdleWriterTakesTwoKiB fills strips, syncs and writes one record more. A Writer's memory
// beside its file is small then, once garbage was collected: empty memory is let go.
func TestIdleWriterTakesTwoKiB(t *testing.T) {
	isolate.Once(t) // it measures
	const writers, most = 40, 2048
	check := func(policy string) {
		p, err := holdfast.ParsePolicy(policy)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		files, all := make([]*os.File, writers), make([]*holdfast.Writer, writers)
		for i := range files {
			if files[i], err = os.Create(filepath.Join(dir, strconv.Itoa(i))); err != nil {
				t.Fatal(err)
			}
			defer files[i].Close()
		}
		record := make([]byte, 60*1024)
		before := heapInUse()
		for i, f := range files {
			w, err := holdfast.New(f, p)
			if err != nil {
				t.Fatal(err)
			}
			all[i] = w
			for range 3 {
				if _, err := w.Enqueue(record); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Sync(); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(record[:40]); err != nil {
				t.Fatal(err)
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			if p.Sync.Every > 0 { // else the sync comes by time
				if err := w.Sync(); err != nil {
					t.Fatal(err)
				}
			}
			if left := goroutinesLeft(false); left != "" {
				t.Fatalf("goroutines are left:\n%s", left)
			}
		}
		if each := (heapInUse() - before) / writers; each > most {
			t.Errorf("%s: an idle Writer takes %d bytes, want %d at most", policy, each, most)
		}
		for _, w := range all {
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, policy := range []string{"buffer=0,sync=never", "buffer=64KiB,sync=never", "buffer=64KiB,flush=1B,sync=never", "buffer=256KiB,flush=10ms,sync=1s", "buffer=64KiB,sync=20ms",
		"buffer=64KiB,sync=64MiB", "buffer=64KiB,sync=close", "buffer=64KiB,sync=group", "buffer=64KiB,sync=each"} {
		check(policy)
	}
}

// TestNothingKeepsAClosedWriter that has lost bytes: no clock of a day does.
func TestNothingKeepsAClosedWriter(t *testing.T) {
	closed := func() weak.Pointer[holdfast.Writer] {
		w, err := holdfast.New(&fullFile{left: 3}, holdfast.Policy{Buffer: 4096, FlushEvery: 24 * time.Hour, Sync: holdfast.SyncEvery(48 * time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		put(t, w, 10)
		if err := w.Close(); err == nil {
			t.Error("Close = nil")
		}
		return weak.Make(w)
	}()
	for range 10 {
		runtime.GC()
	}
	if closed.Value() != nil {
		t.Error("a Writer is kept though it is closed")
	}
}

// heapInUse returns the bytes of the heap that are reached. Two collections empty the pools.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestWritesGoOnBehindAFlush fills the buffer exactly, or not, before each Flush.
func TestWritesGoOnBehindAFlush(t *testing.T) {
	file := &memory{}
	w, err := holdfast.New(file, holdfast.Buffered(4*holdfast.KiB))
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, n := range []int{4096, 5, 4091, 40} {
		if _, err := w.Write(numberedBytes(at, n)); err != nil {
			t.Fatal(err)
		}
		at += n
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(file.Bytes(), numberedBytes(0, at)) {
		t.Error("the file has other bytes")
	}
}

// TestBypassGoesOnAfterThoseThatItHeldUp lets a small Write and a large one wait
// for another large one. The small one goes first, and must then wake the large
// one. Nothing else could wake it.
func TestBypassGoesOnAfterThoseThatItHeldUp(t *testing.T) {
	inBubble(t, "buffer=64B,sync=never", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
		for _, size := range []int{100, 10, 100} {
			go func() {
				if n, err := w.Write(make([]byte, size)); n != size || err != nil {
					t.Errorf("Write of %d bytes = %d, %v", size, n, err)
				}
			}()
			synctest.Wait()
		}
		time.Sleep(time.Second)
		if got, want := w.Written(), int64(210); got != want {
			t.Errorf("%d bytes are accepted after a second, want %d", got, want)
		}
	}, fault.Fault{Op: fault.Write, Take: fault.All, Delay: 4 * ms})
}

// TestFlushWakesThoseThatItMakesRoomFor has calls wait for room, and looks how many were accepted
// at least when the first flush has ended. Each flush takes 4 ms.
func TestFlushWakesThoseThatItMakesRoomFor(t *testing.T) {
	for _, c := range []struct{ calls, size, soon int }{
		{10, 100, 10}, // room for all: each must wake the next
		{3, 3000, 1},  // room for one, and not for all
	} {
		inBubble(t, "buffer=4KiB,sync=never", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
			const held = 4096 + 4000
			write := func(size int) {
				go func() {
					if n, err := w.Write(make([]byte, size)); n != size || err != nil {
						t.Errorf("Write of %d bytes = %d, %v", size, n, err)
					}
				}()
				synctest.Wait()
			}
			write(4096)
			write(4000)
			for range c.calls {
				write(c.size)
			}
			time.Sleep(5 * ms)
			synctest.Wait()
			if got, want := w.Written(), int64(held+c.soon*c.size); got < want {
				t.Errorf("%d calls with %d bytes: %d bytes are accepted after a flush, want %d at least", c.calls, c.size, got, want)
			}
			time.Sleep(time.Second)
			if got, want := w.Written(), int64(held+c.calls*c.size); got != want {
				t.Errorf("%d calls with %d bytes: %d bytes are accepted after a second, want %d", c.calls, c.size, got, want)
			}
			if got := w.Stats().Waits; got != int64(c.calls) {
				t.Errorf("%d calls with %d bytes: %d have waited", c.calls, c.size, got)
			}
		}, fault.Fault{Op: fault.Write, Take: fault.All, Delay: 4 * ms})
	}
}

// TestCallsThatWaitForRoomGoOnAfterABypass has many calls wait for room when a large Write begins to
// hold them up. No flush need follow it.
func TestCallsThatWaitForRoomGoOnAfterABypass(t *testing.T) {
	for range 20 { // which goroutine gets the lock first is chance
		inBubble(t, "buffer=4KiB,sync=never", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
			sizes := append([]int{4096, 4000}, slices.Repeat([]int{100}, 30)...)
			sum := 0
			for _, size := range append(sizes, 5000) {
				sum += size
				go func() {
					if n, err := w.Write(make([]byte, size)); n != size || err != nil {
						t.Errorf("Write of %d bytes = %d, %v", size, n, err)
					}
				}()
				synctest.Wait()
			}
			time.Sleep(time.Second)
			if got, want := w.Written(), int64(sum); got != want {
				t.Errorf("%d bytes are accepted after a second, want %d", got, want)
			}
		}, fault.Fault{Op: fault.Write, Take: fault.All, Delay: 4 * ms})
	}
}

// TestCloseReleasesAllThatWaitForRoom closes a Writer while a write takes a second.
func TestCloseReleasesAllThatWaitForRoom(t *testing.T) {
	inBubble(t, "buffer=4KiB,sync=never", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
		var released atomic.Int32
		for _, size := range []int{4096, 4000, 100, 100, 100, 100} {
			go func() {
				if _, err := w.Write(make([]byte, size)); errors.Is(err, holdfast.ErrClosed) {
					released.Add(1)
				}
			}()
			synctest.Wait()
		}
		go w.Close()
		synctest.Wait()
		if got := released.Load(); got != 4 {
			t.Errorf("%d calls that wait for room return ErrClosed at once, want 4", got)
		}
	}, fault.Fault{Op: fault.Write, Take: fault.All, Delay: time.Second})
}
