//go:build go1.25

package files_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
)

func TestLossOfManyFilesIsBoundedByMemory(t *testing.T) {
	check := func(o files.Options, paths int, want holdfast.Bound) {
		t.Helper()
		got := o.Loss(paths)
		if got.Process != want {
			t.Errorf("%v, memory %v, %d paths: %v, want %v", o.Policy, o.Memory, paths, got.Process, want)
		}
		if got.Power != o.Policy.Loss().Power {
			t.Errorf("%v: a power cut takes %v", o.Policy, got.Power)
		}
	}
	buffered := holdfast.Buffered(64 * holdfast.KiB)
	check(files.Options{Policy: buffered}, 1, buffered.Loss().Process)
	check(files.Options{Policy: buffered}, 500, holdfast.Bound{Bytes: 500 * 128 * holdfast.KiB, Time: holdfast.Unlimited})
	check(files.Options{Policy: buffered}, 511, holdfast.Bound{Bytes: 511 * 128 * holdfast.KiB, Time: holdfast.Unlimited})
	check(files.Options{Policy: buffered}, 512, holdfast.Bound{Bytes: 64 * holdfast.MiB, Time: holdfast.Unlimited})
	check(files.Options{Policy: buffered}, 1<<20, holdfast.Bound{Bytes: 64 * holdfast.MiB, Time: holdfast.Unlimited})
	check(files.Options{Policy: buffered, Memory: 96 * holdfast.KiB}, 1, holdfast.Bound{Bytes: 96 * holdfast.KiB, Time: holdfast.Unlimited})
	check(files.Options{Policy: holdfast.Buffered(holdfast.GiB)}, 1, holdfast.Bound{Bytes: holdfast.GiB, Time: holdfast.Unlimited})
	check(files.Options{Policy: holdfast.Periodic(time.Second)}, 2, holdfast.Bound{Bytes: 256 * holdfast.KiB, Time: time.Second})
	check(files.Options{Policy: holdfast.Unbuffered()}, 500, holdfast.Bound{})

	byBytes := files.Options{Policy: holdfast.Policy{Buffer: 64 * holdfast.KiB, Sync: holdfast.Sync{Mode: holdfast.SyncPeriodic, Every: time.Second, Bytes: 4 * holdfast.MiB}}}
	for paths, waits := range map[int]holdfast.Size{1: 128 * holdfast.KiB, 2: 256 * holdfast.KiB, 1000: 64 * holdfast.MiB} {
		if got, want := byBytes.Loss(paths).Power, (holdfast.Bound{Bytes: 4*holdfast.MiB + waits, Time: time.Second, InFlight: true}); got != want {
			t.Errorf("%d paths: %+v, want %+v", paths, got, want)
		}
	}
	check(files.Options{Policy: holdfast.Durable()}, 500, holdfast.Bound{})
}
