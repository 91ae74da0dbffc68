package holdfast

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
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
		p[i] = numbered(at + i)
	}
	return p
}

// TestWriterAloneNeedsOneBlock writes fast from one goroutine: the second block is
// made only for records that may be longer than the spill.
func TestWriterAloneNeedsOneBlock(t *testing.T) {
	check := func(block Size, record int, ring bool) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			file := &memory{}
			w, err := New(file, Buffered(block))
			if err != nil {
				t.Fatal(err)
			}
			at, most := 0, 0
			for at < 20*int(block) {
				if _, err := w.Write(numberedBytes(at, record)); err != nil {
					t.Fatal(err)
				}
				at += record
				most = max(most, len(w.buf))
			}
			if (most == 2*int(block)) != ring {
				t.Errorf("buffer=%v, records of %d bytes: memory of %d bytes", block, record, most)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(file.Bytes(), numberedBytes(0, at)) {
				t.Errorf("buffer=%v, records of %d bytes: the file has other bytes", block, record)
			}
		})
	}
	check(4*KiB, 1, false)
	check(4*KiB, 40, false)
	check(64*KiB, 3000, false)
	check(4*KiB, 3000, true) // does not always fit behind a block
	check(4*KiB, 4096, true)
	check(7, 1, true) // no spill
	check(7, 3, true)
}

// TestMemoryGrowsUnderAFlush has more written than one block takes while a flush is
// under way, after any number of blocks and of bytes behind them.
func TestMemoryGrowsUnderAFlush(t *testing.T) {
	check := func(before int) {
		synctest.Test(t, func(t *testing.T) {
			file := &slowFile{}
			w, err := New(file, Buffered(64))
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
			if err := w.Flush(); err != nil { // memory starts anew anywhere in a block
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
			put(70, 5)
			if d := time.Since(start); d != 0 {
				t.Errorf("after %d bytes, 70 bytes during a flush took %v", before, d)
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

// TestManyGrowOnce has many goroutines come upon a full block at once.
func TestManyGrowOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := &slowFile{slow: true}
		w, err := New(file, Buffered(1*KiB))
		if err != nil {
			t.Fatal(err)
		}
		record := bytes.Repeat([]byte{'x'}, 30)
		var group sync.WaitGroup
		for range 64 {
			group.Go(func() {
				for range 100 {
					if _, err := w.Write(record); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if want := 64 * 100 * len(record); file.Len() != want {
			t.Errorf("%d bytes in the file, want %d", file.Len(), want)
		}
	})
}

// TestMemoryGrowsWithWhatItHolds has memory grow with the bytes that wait, and let go when none
// does. For a file of the system it stays at a strip and its spill, however large the buffer is.
func TestMemoryGrowsWithWhatItHolds(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := New(f, Buffered(64*MiB))
	if err != nil {
		t.Fatal(err)
	}
	put := func(n int) {
		t.Helper()
		if _, err := w.Write(bytes.Repeat([]byte{'x'}, n)); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want int) {
		t.Helper()
		if len(w.buf) != want {
			t.Errorf("%d bytes wait in memory of %d, want %d", w.Written()-w.Flushed(), len(w.buf), want)
		}
	}
	if size := unsafe.Sizeof(*w); size > 2048 {
		t.Errorf("an idle Writer has %d bytes", size)
	}
	check(0)
	put(40)
	check(1024)
	put(984)
	check(1024)
	put(1)
	check(4096)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	check(0)
	put(5000)
	check(16384)
	for range 300 { // each filled strip ends in a Flush, so that none is left to the background
		put(4000)
		if w.Written()-w.Flushed() > 200*1024 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	check(256 * 1024)
	for range 300 {
		put(1000)
	}
	w.background.Wait()
	if n := w.Written() - w.Flushed(); n >= 256*1024 {
		t.Errorf("%d bytes wait, want less than 256 KiB", n)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(f.Name()); err != nil || info.Size() != 40+984+1+5000+300*4000+300*1000 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestLongWriteBypassesALargeBuffer has a Write go from the caller's slice to the file,
// behind what waits, from 64 KiB on.
func TestLongWriteBypassesALargeBuffer(t *testing.T) {
	file := &memory{}
	w, err := New(file, Buffered(1*MiB))
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
	if len(w.buf) < 200*1024 {
		t.Errorf("the Write fits into no memory of %d bytes anyway", len(w.buf))
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

// flushes is a file that keeps how long each write was.
type flushes struct {
	memory
	sizes []int
}

func (f *flushes) Write(p []byte) (int, error) {
	f.sizes = append(f.sizes, len(p))
	return f.memory.Write(p)
}

// TestRingStartsAnewWhileFlushesKeepUp fills strips and flushes them in turn, in a much
// larger ring. Only its first strips are used, since the caches do not hold it all.
func TestRingStartsAnewWhileFlushesKeepUp(t *testing.T) {
	check := func(record, before int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			const strip = 4096
			file := &flushes{}
			w, err := New(file, Policy{Buffer: 64 * KiB, FlushBytes: strip})
			if err != nil {
				t.Fatal(err)
			}
			w.mu.Lock()
			w.growLocked(2 * w.block)
			w.mu.Unlock()
			at := 0
			put := func(n int) {
				if _, err := w.Write(numberedBytes(at, n)); err != nil {
					t.Fatal(err)
				}
				at += n
			}
			put(before)
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			for at < 1<<17+1<<16 {
				put(record)
			}
			if used := len(bytes.TrimRight(w.buf, "\x00")); used > 4*strip {
				t.Errorf("records of %d bytes behind %d: %d bytes of memory are used", record, before, used)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(file.Bytes(), numberedBytes(0, at)) {
				t.Errorf("records of %d bytes behind %d: the file has other bytes", record, before)
			}
		})
	}
	for _, record := range []int{16, 40, 2000, 3000} {
		check(record, 10)
		check(record, 5000)
	}
}

// TestStripsLieWholeInTheRing has records whose rest stays behind each block, after a flush
// that did not end where a block ends. Each block goes to the file in one write all the same,
// also where the ring ends.
func TestStripsLieWholeInTheRing(t *testing.T) {
	for before := 1; before < 2*4096; before += 1021 {
		synctest.Test(t, func(t *testing.T) {
			file := &flushes{}
			w, err := New(file, Buffered(4*KiB))
			if err != nil {
				t.Fatal(err)
			}
			at := 0
			put := func(n int) {
				if _, err := w.Write(numberedBytes(at, n)); err != nil {
					t.Fatal(err)
				}
				at += n
			}
			w.Lane()
			put(min(before, 4000))
			put(before - min(before, 4000))
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			file.sizes = file.sizes[:0]
			for range 40 {
				put(3000)
			}
			for i, size := range file.sizes[1:] {
				if size != 4096 {
					t.Errorf("behind %d bytes, write %d has %d", before, i+1, size)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(file.Bytes(), numberedBytes(0, at)) {
				t.Errorf("behind %d bytes: the file has other bytes", before)
			}
		})
	}
}

// TestLaneHoldsManyRecords has a lane of the usual buffers hold dozens of records, and never
// less than 512 bytes.
func TestLaneHoldsManyRecords(t *testing.T) {
	check := func(block Size, want, ninth int) {
		t.Helper()
		w, err := New(&memory{}, Buffered(block))
		if err != nil {
			t.Fatal(err)
		}
		if l := w.Lane(); len(l.buf) != want {
			t.Errorf("buffer=%v: a lane has %d bytes, want %d", block, len(l.buf), want)
		}
		for range 7 {
			w.Lane()
		}
		if l := w.Lane(); len(l.buf) != ninth {
			t.Errorf("buffer=%v: the ninth lane has %d bytes, want %d", block, len(l.buf), ninth)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	check(1*KiB, 512, 1)
	check(16*KiB, 512, 512)
	check(32*KiB, 1024, 1024)
	check(64*KiB, 2048, 2048)
	check(256*KiB, 8192, 2048)
	check(512*KiB, 8192, 4096)
	check(0, 1, 1)
}

// TestBytesFillASmallLaneBesideFew has a small lane outlive the large ones. WriteByte must not go
// beyond its end.
func TestBytesFillASmallLaneBesideFew(t *testing.T) {
	w, err := New(&memory{}, Buffered(256*KiB))
	if err != nil {
		t.Fatal(err)
	}
	var large []*Lane
	for range 8 {
		large = append(large, w.Lane())
	}
	small := w.Lane()
	for _, l := range large {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 * len(small.buf) {
		if err := small.WriteByte(byte(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got := w.Written(); got != int64(3*len(small.buf)) {
		t.Errorf("%d bytes are written, want %d", got, 3*len(small.buf))
	}
}

// briefFile takes a microsecond for each write.
type briefFile struct{ memory }

func (f *briefFile) Write(p []byte) (int, error) {
	time.Sleep(time.Microsecond)
	return f.memory.Write(p)
}

// TestOneSlowBlockStartsNoFlusher fills blocks fast and slowly: the second slow one in turn is
// flushed in the background, and so is the first of all.
func TestOneSlowBlockStartsNoFlusher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := New(&briefFile{}, Buffered(4*KiB))
		if err != nil {
			t.Fatal(err)
		}
		part := make([]byte, 1*KiB+1)
		check := func(pause time.Duration, want bool) {
			t.Helper()
			time.Sleep(pause)
			start := time.Now()
			for range 4 { // the last fills the block
				if _, err := w.Write(part); err != nil {
					t.Fatal(err)
				}
			}
			if background := time.Since(start) == 0; background != want {
				t.Errorf("a block after %v is flushed in the background: %v, want %v", pause, background, want)
			}
			time.Sleep(10 * time.Microsecond) // until a flush in the background is over
		}
		const slowly = 2 * fastFill
		if _, err := w.Write(part[:1]); err != nil {
			t.Fatal(err)
		}
		check(slowly, true)
		for range 2 {
			check(0, false)
			check(0, false)
			check(slowly, false)
			check(0, false)
			check(slowly, false)
			check(slowly, true)
			check(slowly, true)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestStripThatFillsDuringAFlushIsFlushedWithoutACall fills a strip while the one before it is
// written. No call comes after that.
func TestStripThatFillsDuringAFlushIsFlushedWithoutACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := New(&slowFile{slow: true}, Policy{Buffer: 16 * KiB, FlushBytes: 4 * KiB})
		if err != nil {
			t.Fatal(err)
		}
		fill := func() {
			for range 4 {
				if _, err := w.Write(make([]byte, 1*KiB)); err != nil {
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

// TestLittleThatHasWrappedStaysInTheRing has a flush leave a few bytes, some at the end of
// the ring and some at its beginning.
func TestLittleThatHasWrappedStaysInTheRing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := &slowFile{}
		w, err := New(file, Policy{Buffer: 1 * KiB, FlushBytes: 64})
		if err != nil {
			t.Fatal(err)
		}
		w.mu.Lock()
		w.growLocked(2 * w.block)
		w.pos, w.flushed = 2046, 2040 // as if so much had been written
		copy(w.buf[2040:], numberedBytes(0, 6))
		w.openLocked()
		w.mu.Unlock()
		file.slow = true
		var group sync.WaitGroup
		group.Go(func() {
			if err := w.Flush(); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if _, err := w.Write(numberedBytes(6, 4)); err != nil {
			t.Fatal(err)
		}
		group.Wait()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(file.Bytes(), numberedBytes(0, 10)) {
			t.Errorf("the file has %d", file.Bytes())
		}
	})
}

// TestFirstFlushIsCounted: its time is kept beside the histogram, which may be made later.
func TestFirstFlushIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := &slowFile{slow: true}
		w, err := New(file, Unbuffered())
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		const timed = 16 // of short flushes one of so many is timed
		for range timed + 1 {
			if _, err := w.Write([]byte("record")); err != nil {
				t.Fatal(err)
			}
			file.slow = false
		}
		if s := w.Stats(); s.Flushes != timed+1 || s.SystemCalls != timed+1 || s.Flush.Count() != 2 || s.Flush.Max() != time.Second || s.Flush.Sum() != time.Second {
			t.Errorf("%d flushes, %d calls, times %v; want %d, %d and two, of a second and of nothing", s.Flushes, s.SystemCalls, s.Flush, timed+1, timed+1)
		}
	})
}

// TestBypassHoldsUpThoseThatWaitForRoom looks who is counted as held up by a large Write: those go
// first when it ends, and wait for no second one.
func TestBypassHoldsUpThoseThatWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := New(&slowFile{slow: true}, Policy{Buffer: 4 * KiB})
		if err != nil {
			t.Fatal(err)
		}
		var calls sync.WaitGroup
		for _, size := range []int{4096, 4000, 100, 100, 100, 5000} {
			calls.Go(func() { w.Write(make([]byte, size)) })
			synctest.Wait()
		}
		w.mu.Lock()
		heldUp := w.heldUp
		w.mu.Unlock()
		if heldUp != 3 {
			t.Errorf("%d calls are held up by a large Write, want the 3 that waited for room", heldUp)
		}
		calls.Wait()
		w.Close()
	})
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
		w, err := New(&failingSync{}, Policy{Buffer: 4 * KiB})
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

// TestIdleWriterTakesTwoKiB fills strips, syncs and writes one record more. What a Writer keeps
// beside its file is small then, once garbage was collected: memory that is empty is let go.
func TestIdleWriterTakesTwoKiB(t *testing.T) {
	const writers, most = 40, 2048
	check := func(policy string) {
		p, err := ParsePolicy(policy)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		files, all := make([]*os.File, writers), make([]*Writer, writers)
		for i := range files {
			if files[i], err = os.Create(filepath.Join(dir, strconv.Itoa(i))); err != nil {
				t.Fatal(err)
			}
			defer files[i].Close()
		}
		record := make([]byte, 60*1024)
		before := heapInUse()
		for i, f := range files {
			w, err := New(f, p)
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
			w.background.Wait()
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
	for _, policy := range []string{"buffer=0,sync=never", "buffer=64KiB,sync=never", "buffer=256KiB,flush=10ms,sync=1s", "buffer=64KiB,sync=20ms",
		"buffer=64KiB,sync=64MiB", "buffer=64KiB,sync=close", "buffer=64KiB,sync=group", "buffer=64KiB,sync=each"} {
		check(policy)
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

// TestWriteAfterMemoryIsLetGo fills a strip exactly, so that Flush finds memory empty and lets go of it. The
// fast path of the next Write must not use the room that was there.
func TestWriteAfterMemoryIsLetGo(t *testing.T) {
	file := &memory{}
	w, err := New(file, Buffered(4*KiB))
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
		if w.buf != nil {
			t.Errorf("after a record of %d bytes and Flush the Writer holds %d bytes of empty memory", n, len(w.buf))
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(file.Bytes(), numberedBytes(0, at)) {
		t.Error("the file has other bytes")
	}
}
