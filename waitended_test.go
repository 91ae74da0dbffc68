package holdfast_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

// A WaitDurable whose context ends leaves its flush behind. If that flush fails, the next call says so.
func TestFailureAfterAnEndedWaitIsReported(t *testing.T) {
	for _, policy := range []string{"buffer=100B,sync=never", "buffer=1KiB,sync=close", "buffer=64B,sync=group", "buffer=1KiB,sync=1h"} {
		t.Run(policy, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, err := holdfast.ParsePolicy(policy)
				if err != nil {
					t.Fatal(err)
				}
				f := fault.New(fault.Fault{Op: fault.Write, Times: 1, Err: syscall.EIO, Delay: 2 * time.Second})
				w, err := holdfast.New(f, p)
				if err != nil {
					t.Fatal(err)
				}
				end, err := w.Enqueue([]byte("record"))
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := w.WaitDurable(ctx, end); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("WaitDurable returned %v", err)
				}
				time.Sleep(time.Minute) // of the bubble's time: the flush fails meanwhile
				if err := w.Flush(); !errors.Is(err, syscall.EIO) {
					t.Errorf("Flush returned %v, not the failure", err)
				}
				if err := w.Close(); err != nil {
					t.Errorf("Close returned %v", err)
				}
				if got := string(f.ProcessCrash()); got != "record" {
					t.Errorf("the file holds %q", got)
				}
			})
		})
	}
}

// A WaitDurable that ends well because another call's sync covered its bytes after its own flush had
// failed leaves that failure to the next call.
func TestFailureBeforeAnotherSyncIsReported(t *testing.T) {
	rounds := 20_000 // few of them meet the order of goroutines that lost the failure
	if testing.Short() {
		rounds = 2000
	}
	for range rounds {
		w, err := holdfast.New(fault.New(fault.Fault{Op: fault.Write, Times: 1, Err: syscall.EIO}), holdfast.Durable())
		if err != nil {
			t.Fatal(err)
		}
		end, err := w.Enqueue([]byte("record"))
		if err != nil {
			t.Fatal(err)
		}
		var calls sync.WaitGroup
		var reported atomic.Int64
		call := func(wait func() error) {
			calls.Go(func() {
				if err := wait(); errors.Is(err, syscall.EIO) {
					reported.Add(1)
				} else if err != nil {
					t.Error(err)
				}
			})
		}
		call(func() error { return w.WaitDurable(t.Context(), end) })
		call(w.Flush)
		call(func() error { _, err := w.Write([]byte("more")); return err })
		calls.Wait()
		if err := w.Close(); errors.Is(err, syscall.EIO) {
			reported.Add(1)
		}
		if reported.Load() == 0 {
			t.Fatal("no call returned the failure of the write")
		}
	}
}
