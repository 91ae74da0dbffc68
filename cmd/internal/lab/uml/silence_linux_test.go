package uml

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestSilenceEndsAGuestThatReportsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		begun := time.Now()
		heard := watchSilence(ctx, time.Minute, cancel)
		for range 100 {
			time.Sleep(time.Minute - time.Second)
			heard()
			synctest.Wait()
		}
		if ctx.Err() != nil {
			t.Fatalf("it was ended after %v, though it gave signs of life", time.Since(begun))
		}
		last := time.Now()
		<-ctx.Done()
		if quiet := time.Since(last); quiet < time.Minute || quiet > time.Minute+time.Minute/beatsPer {
			t.Errorf("it was ended after %v", quiet)
		}
	})
}
