package main

import (
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestSignalSentTwiceEndsTheRunInOrder: what timeout(1) sends to the process and to its group is one
// interrupt, and only one that comes later ends the process at once.
func TestSignalSentTwiceEndsTheRunInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal, 1)
		var released atomic.Bool
		ctx, caught := untilSignal(t.Context(), signals, func() { released.Store(true) })
		signals <- os.Interrupt
		<-ctx.Done()
		if caught.Load() != int32(syscall.SIGINT) {
			t.Errorf("caught %d", caught.Load())
		}
		time.Sleep(sameSignal - 1)
		synctest.Wait()
		if released.Load() {
			t.Error("a signal within that time would end the process at once")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if !released.Load() {
			t.Error("Ctrl-C would never end the process")
		}
	})
}
