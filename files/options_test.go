//go:build go1.25

package files

import (
	"io/fs"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/handles"
)

func TestZeroFilesOptionsAreValidAndFilledIn(t *testing.T) {
	var zero Options
	if err := zero.Validate(); err != nil {
		t.Fatal(err)
	}
	full := zero.withDefaults()
	if err := full.Validate(); err != nil {
		t.Fatal(err)
	}
	if full.Workers < 1 || full.Handles < fewestHandles || full.Handles > mostHandles || full.Memory != 64*holdfast.MiB ||
		full.Perm != 0o666 || full.Retry != (Retry{Attempts: 4, Base: 100 * time.Millisecond, Cap: time.Second}) {
		t.Errorf("the defaults are %+v", full)
	}
	if again := full.withDefaults(); again != full {
		t.Errorf("filled in twice: %+v, then %+v", full, again)
	}
	const largest = min(holdfast.GiB, holdfast.Size(math.MaxInt/2)) // where int has 32 bits, a byte less
	large := Options{Policy: holdfast.Buffered(largest)}
	if got := large.withDefaults(); got.Validate() != nil || got.Memory != largest {
		t.Errorf("a buffer above the default memory: %v, %v", got.Memory, got.Validate())
	}
}

func TestDefaultHandlesAreAQuarterOfTheLimit(t *testing.T) {
	check := func(limit int, known bool, want int) {
		t.Helper()
		if got := defaultHandles(limit, known); got != want {
			t.Errorf("defaultHandles(%d, %t) = %d, want %d", limit, known, got, want)
		}
	}
	check(0, false, 4096)
	check(0, true, 8)
	check(32, true, 8)
	check(64, true, 16)
	check(1024, true, 256)
	check(4096, true, 1024)
	check(20000, true, 4096)
	check(math.MaxInt, true, 4096)
}

func TestValidateNamesFieldValueAndHint(t *testing.T) {
	check := func(o Options, words ...string) {
		t.Helper()
		err := o.Validate()
		if len(words) == 0 {
			if err != nil {
				t.Errorf("%+v: %v", o, err)
			}
			return
		}
		if err == nil {
			t.Errorf("%+v is valid", o)
			return
		}
		if !strings.Contains(err.Error(), "; ") {
			t.Errorf("%q has no hint", err)
		}
		for _, word := range words {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%q does not name %q", err, word)
			}
		}
	}
	check(Options{Policy: holdfast.Policy{Buffer: -1}}, "buffer=-1")
	check(Options{Policy: holdfast.Policy{FlushEvery: time.Second}}, "flush=1s")
	check(Options{Workers: -1}, "workers=-1")
	check(Options{Workers: maxWorkers})
	check(Options{Workers: maxWorkers + 1}, "workers=65537")
	check(Options{Handles: -1}, "handles=-1")
	check(Options{Handles: handles.LeastHandles - 1}, "handles=3", "4")
	check(Options{Handles: handles.LeastHandles})
	check(Options{Handles: maxHandles + 1}, "handles=16777217")
	check(Options{Memory: -1}, "memory=-1")
	check(Options{Batch: -1}, "batch=-1")
	check(Options{Batch: maxBatch + 1}, "batch=1048577")
	check(Options{Memory: holdfast.KiB, Policy: holdfast.Buffered(holdfast.KiB + 1)}, "memory=1KiB", "buffer=1025B")
	check(Options{Memory: holdfast.KiB, Policy: holdfast.Buffered(holdfast.KiB)})
	check(Options{Memory: maxMemory})
	check(Options{Memory: maxMemory + 1}, "memory=1099511627777B")
	check(Options{Perm: 0o777})
	check(Options{Perm: 0o600 | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky})
	check(Options{Perm: 0o1000}, "perm=01000")
	check(Options{Perm: fs.ModeDir | 0o700}, "perm=020000000700")
	check(Options{Retry: Retry{Attempts: 1}})
	check(Options{Retry: Retry{Attempts: -1}}, "retry.attempts=-1")
	check(Options{Retry: Retry{Attempts: maxAttempts + 1}}, "retry.attempts=1048577")
	check(Options{Retry: Retry{Base: -1}}, "retry.base=-1ns")
	check(Options{Retry: Retry{Cap: -1}}, "retry.cap=-1ns")
	check(Options{Retry: Retry{Base: time.Second, Cap: time.Second}})
	check(Options{Retry: Retry{Base: time.Second, Cap: time.Second - 1}}, "retry.base=1s", "retry.cap=999.999999ms")
	check(Options{Retry: Retry{Base: 2 * time.Second}}, "retry.base=2s", "retry.cap=1s")
	check(Options{Retry: Retry{Cap: longestCap + 1}}, "retry.cap=24h0m0.000000001s")
}

func TestUnixPermKeepsTheSpecialBits(t *testing.T) {
	check := func(m fs.FileMode, want uint32) {
		t.Helper()
		if got := unixPerm(m); got != want {
			t.Errorf("unixPerm(%v) = %#o, want %#o", m, got, want)
		}
	}
	check(0o644, 0o644)
	check(0o644|fs.ModeSetuid, 0o4644)
	check(0o644|fs.ModeSetgid, 0o2644)
	check(0o644|fs.ModeSticky, 0o1644)
}
