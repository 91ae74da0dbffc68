package holdfast_test

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

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
