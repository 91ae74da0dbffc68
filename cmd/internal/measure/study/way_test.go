package study

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

// TestPeriodicFlushes: the ticker flushes the right bytes at the right time, and ends.
func TestPeriodicFlushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fault.New()
		p := newPeriodic(f, 4096, time.Second)
		written := func(want int64) {
			t.Helper()
			synctest.Wait()
			if got := f.Size(); got != want {
				t.Errorf("%d bytes are in the file, want %d", got, want)
			}
		}
		mustWrite(t, p, "one\n")
		time.Sleep(time.Second - 1)
		written(0)
		time.Sleep(time.Nanosecond)
		written(4)
		mustWrite(t, p, "two\n")
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		written(8)
		if _, err := p.Write([]byte("late\n")); err == nil {
			t.Error("a Write after Close was accepted")
		}
		if err := p.Close(); err == nil {
			t.Error("a second Close found nothing wrong")
		}
		if wrong := f.Violations(); len(wrong) > 0 {
			t.Error(wrong)
		}
	})
}

// TestPeriodicReportsItsErrors: if a flush fails that no call waited for, the next call returns its
// error.
func TestPeriodicReportsItsErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("full")
		p := newPeriodic(fault.New(fault.Fault{Op: fault.Write, Err: full}), 4096, time.Second)
		mustWrite(t, p, "one\n")
		time.Sleep(time.Second)
		synctest.Wait()
		if _, err := p.Write([]byte("two\n")); !errors.Is(err, full) {
			t.Errorf("Write: %v", err)
		}
		if err := p.Close(); !errors.Is(err, full) {
			t.Errorf("Close: %v", err)
		}
	})
}

func mustWrite(t *testing.T, w Sink, text string) {
	t.Helper()
	if _, err := w.Write([]byte(text)); err != nil {
		t.Error(err)
	}
}
