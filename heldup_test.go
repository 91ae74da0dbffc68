package holdfast_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/fault"
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
