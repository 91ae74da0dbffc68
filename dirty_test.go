package holdfast_test

import (
	"errors"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
)

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
