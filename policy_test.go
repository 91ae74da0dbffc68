package holdfast_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

func TestPolicyTextIsReadAndPrinted(t *testing.T) {
	check := func(text string, want holdfast.Policy, printed string) {
		t.Helper()
		got, err := holdfast.ParsePolicy(text)
		if err != nil || got != want {
			t.Errorf("ParsePolicy(%q) = %+v, %v; want %+v", text, got, err, want)
		}
		if got := want.String(); got != printed {
			t.Errorf("%+v prints %q, want %q", want, got, printed)
		}
		if again, err := holdfast.ParsePolicy(printed); err != nil || again != want {
			t.Errorf("ParsePolicy(%q) = %+v, %v; want %+v", printed, again, err, want)
		}
	}
	check("buffer=0", holdfast.Policy{}, "buffer=0,sync=never")
	check("sync=never", holdfast.Policy{}, "buffer=0,sync=never")
	check("buffer=0,flush=0s,sync=never", holdfast.Policy{}, "buffer=0,sync=never")
	check("buffer=1", holdfast.Policy{Buffer: 1}, "buffer=1B,sync=never")
	check("buffer=1B", holdfast.Policy{Buffer: 1}, "buffer=1B,sync=never")
	check("buffer=1023", holdfast.Policy{Buffer: 1023}, "buffer=1023B,sync=never")
	check("buffer=1024", holdfast.Policy{Buffer: holdfast.KiB}, "buffer=1KiB,sync=never")
	check("buffer=1025", holdfast.Policy{Buffer: 1025}, "buffer=1025B,sync=never")
	check("buffer=64k", holdfast.Buffered(64*holdfast.KiB), "buffer=64KiB,sync=never")
	check("buffer=64kB", holdfast.Buffered(64000), "buffer=64000B,sync=never")
	check("buffer=1GiB", holdfast.Buffered(holdfast.GiB), "buffer=1GiB,sync=never")
	check("sync=1s,buffer=64KiB", holdfast.Periodic(time.Second), "buffer=64KiB,sync=1s")
	check("buffer=64KiB,flush=100ms,sync=1s",
		holdfast.Policy{Buffer: 64 * holdfast.KiB, FlushEvery: 100 * time.Millisecond, Sync: holdfast.Sync(time.Second)},
		"buffer=64KiB,flush=100ms,sync=1s")
	check(" buffer=64KiB, flush=1h , sync=close ",
		holdfast.Policy{Buffer: 64 * holdfast.KiB, FlushEvery: time.Hour, Sync: holdfast.SyncClose},
		"buffer=64KiB,flush=1h0m0s,sync=close")
	check("buffer=64KiB,sync=group", holdfast.Durable(), "buffer=64KiB,sync=group")
	check("sync=each", holdfast.EachDurable(), "buffer=0,sync=each")
	check("sync=1ns", holdfast.Policy{Sync: 1}, "buffer=0,sync=1ns")
	check("buffer=1,flush=1ns", holdfast.Policy{Buffer: 1, FlushEvery: 1}, "buffer=1B,flush=1ns,sync=never")
}

func TestPolicyTextThatIsWrongIsNamed(t *testing.T) {
	check := func(text string, names ...string) {
		t.Helper()
		p, err := holdfast.ParsePolicy(text)
		if err == nil || p != (holdfast.Policy{}) {
			t.Errorf("ParsePolicy(%q) = %+v, %v; want an error and no policy", text, p, err)
			return
		}
		for _, name := range names {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("ParsePolicy(%q): %q does not name %s", text, err, name)
			}
		}
	}
	check("", "empty", "buffer=64KiB")
	check("  ", "empty")
	check("64KiB", `"64KiB"`, "no value")
	check("buffer", `"buffer"`, "no value")
	check("buffer=", "buffer", `""`)
	check("buffer=1,", `""`, "no value")
	check("bufer=1", `"bufer"`, "buffer, flush and sync")
	check("Buffer=1", `"Buffer"`)
	check("buffer=1,buffer=1", `"buffer"`, "twice")
	check("buffer=64KB", `"64KB"`, `"KB"`)
	check("buffer=-1", "buffer", `"-1"`)
	check("buffer=1.5k", `"1.5k"`)
	check("buffer=9223372036854775808", "buffer", "9223372036854775808")
	check("buffer=1073741825", "buffer=1073741825B", "1GiB")
	check("buffer=2GiB", "buffer=2GiB", "1GiB")
	check("flush=1s", "flush=1s", "buffer=0")
	check("buffer=1,flush=1", "flush", `"1"`)
	check("buffer=1,flush=-1s", "flush", `"-1s"`)
	check("sync=sometimes", "sync", `"sometimes"`, "never", "close", "group", "each")
	check("sync=0s", "sync", `"0s"`)
	check("sync=-1ns", "sync", `"-1ns"`)
	check("sync=-3ns", "sync", `"-3ns"`)
	check("sync=Group", "sync", `"Group"`)
}

func TestPolicyIsValidUpToItsThresholds(t *testing.T) {
	check := func(p holdfast.Policy, names ...string) {
		t.Helper()
		before := p
		err := p.Validate()
		if (err == nil) != (len(names) == 0) {
			t.Errorf("Validate of %+v = %v", p, err)
			return
		}
		for _, name := range names {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("Validate of %+v: %q does not name %s", p, err, name)
			}
		}
		if p != before {
			t.Errorf("Validate changed %+v to %+v", before, p)
		}
		if text, mErr := p.MarshalText(); (mErr == nil) != (err == nil) || (mErr == nil && string(text) != p.String()) {
			t.Errorf("MarshalText of %+v = %q, %v", p, text, mErr)
		}
	}
	check(holdfast.Policy{})
	check(holdfast.Policy{Buffer: -1}, "buffer=-1")
	check(holdfast.Policy{Buffer: 1})
	check(holdfast.Policy{Buffer: holdfast.GiB})
	check(holdfast.Policy{Buffer: holdfast.GiB + 1}, "buffer=1073741825B", "1GiB")
	check(holdfast.Policy{Buffer: 1, FlushEvery: 1})
	check(holdfast.Policy{Buffer: 1, FlushEvery: -1}, "flush=-1ns")
	check(holdfast.Policy{Buffer: 0, FlushEvery: 1}, "flush=1ns", "buffer=0")
	check(holdfast.Policy{Buffer: 1, FlushEvery: 1<<63 - 1})
	check(holdfast.Policy{Sync: 1})
	check(holdfast.Policy{Sync: 1<<63 - 1})
	check(holdfast.Policy{Sync: holdfast.SyncNever})
	check(holdfast.Policy{Sync: holdfast.SyncClose})
	check(holdfast.Policy{Sync: holdfast.SyncGroup})
	check(holdfast.Policy{Sync: holdfast.SyncEach})
	check(holdfast.Policy{Sync: holdfast.SyncEach - 1}, "sync=-4ns")
}

// TestLossOfEveryPolicy writes out what each policy promises, so that a change
// of a promise is seen as one.
func TestLossOfEveryPolicy(t *testing.T) {
	const all, s = holdfast.Unlimited, time.Second
	check := func(p holdfast.Policy, process, power holdfast.Bound, processText, powerText string) {
		t.Helper()
		want := holdfast.Loss{Process: process, Power: power}
		if got := p.Loss(); got != want {
			t.Errorf("Loss of %v = %+v, want %+v", p, got, want)
		}
		if got := process.String(); got != processText {
			t.Errorf("process loss of %v reads %q, want %q", p, got, processText)
		}
		if got := power.String(); got != powerText {
			t.Errorf("power loss of %v reads %q, want %q", p, got, powerText)
		}
	}
	none, anything := holdfast.Bound{}, holdfast.Bound{Bytes: all, Time: all}
	within := func(n holdfast.Size, d time.Duration) holdfast.Bound { return holdfast.Bound{Bytes: n, Time: d} }

	check(holdfast.Unbuffered(), none, anything, "nothing", "anything not synced")
	check(holdfast.Buffered(1), within(2, all), anything, "up to 2B", "anything not synced")
	check(holdfast.Buffered(4*holdfast.KiB), within(8*holdfast.KiB, all), anything, "up to 8KiB", "anything not synced")
	check(holdfast.Periodic(s), within(128*holdfast.KiB, s), within(all, s),
		"the last 1s + one flush, up to 128KiB", "the last 1s + one sync")
	check(holdfast.Durable(), none, none, "nothing", "nothing")
	check(holdfast.EachDurable(), none, none, "nothing", "nothing")

	check(holdfast.Policy{Buffer: 8, FlushEvery: s}, within(16, s), anything,
		"the last 1s + one flush, up to 16B", "anything not synced")
	check(holdfast.Policy{Buffer: 8, FlushEvery: s, Sync: holdfast.Sync(2 * s)}, within(16, s), within(all, 2*s),
		"the last 1s + one flush, up to 16B", "the last 2s + one sync")
	check(holdfast.Policy{Buffer: 8, FlushEvery: 2 * s, Sync: holdfast.Sync(s)}, within(16, s), within(all, s),
		"the last 1s + one flush, up to 16B", "the last 1s + one sync")
	check(holdfast.Policy{Sync: holdfast.Sync(s)}, none, within(all, s), "nothing", "the last 1s + one sync")
	check(holdfast.Policy{Sync: holdfast.SyncClose}, none, anything, "nothing", "anything not synced")
	check(holdfast.Policy{Buffer: 8, Sync: holdfast.SyncClose}, within(16, all), anything, "up to 16B", "anything not synced")
	check(holdfast.Policy{Buffer: 8, FlushEvery: s, Sync: holdfast.SyncGroup}, none, none, "nothing", "nothing")
	check(holdfast.Policy{Buffer: 8, Sync: holdfast.SyncEach}, none, none, "nothing", "nothing")
}

func TestBoundSaysWhetherItLimits(t *testing.T) {
	check := func(b holdfast.Bound, none, limited bool) {
		t.Helper()
		if b.None() != none || b.Limited() != limited {
			t.Errorf("%+v: None %v, Limited %v; want %v, %v", b, b.None(), b.Limited(), none, limited)
		}
	}
	check(holdfast.Bound{}, true, true)
	check(holdfast.Bound{Bytes: 1, Time: holdfast.Unlimited}, false, true)
	check(holdfast.Bound{Bytes: holdfast.Unlimited, Time: 1}, false, true)
	check(holdfast.Bound{Bytes: holdfast.Unlimited, Time: holdfast.Unlimited}, false, false)
}

func TestSizeTextIsReadAndPrinted(t *testing.T) {
	check := func(text string, want holdfast.Size, printed string) {
		t.Helper()
		got, err := holdfast.ParseSize(text)
		if err != nil || got != want || got.String() != printed {
			t.Errorf("ParseSize(%q) = %v (%d), %v; want %s (%d)", text, got, int64(got), err, printed, int64(want))
		}
	}
	check("0", 0, "0")
	check("0TiB", 0, "0")
	check("1", 1, "1B")
	check("1B", 1, "1B")
	check("007", 7, "7B")
	check("1k", 1024, "1KiB")
	check("1K", 1024, "1KiB")
	check("1KiB", 1024, "1KiB")
	check("1kB", 1000, "1000B")
	check("1023", 1023, "1023B")
	check("1536", 1536, "1536B")
	check("1M", 1<<20, "1MiB")
	check("1MiB", 1<<20, "1MiB")
	check("1MB", 1e6, "1000000B")
	check("1024MB", 1024e6, "1000000KiB")
	check("1G", 1<<30, "1GiB")
	check("1GB", 1e9, "1000000000B")
	check("1T", 1<<40, "1TiB")
	check("1TB", 1e12, "976562500KiB")
	check("1024KiB", 1<<20, "1MiB")
	check("9223372036854775807", 1<<63-1, "9223372036854775807B")
	check("8388607TiB", 8388607<<40, "8388607TiB")
}

func TestSizeTextThatIsWrongIsNamed(t *testing.T) {
	check := func(text string, names ...string) {
		t.Helper()
		got, err := holdfast.ParseSize(text)
		if err == nil || got != 0 {
			t.Errorf("ParseSize(%q) = %v, %v; want an error", text, got, err)
			return
		}
		for _, name := range names {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("ParseSize(%q): %q does not name %s", text, err, name)
			}
		}
	}
	check("", `""`)
	check("k", `"k"`)
	check("-1", `"-1"`)
	check("+1", `"+1"`)
	check(" 1", `" 1"`)
	check("1 ", `"1 "`, `" "`)
	check("1 KiB", `" KiB"`)
	check("1.5k", `".5k"`)
	check("64KB", `"64KB"`, `"KB"`)
	check("1kib", `"kib"`)
	check("1P", `"P"`)
	check("1e3", `"e3"`, "T, TiB (powers of 1024)", "TB (powers of 1000)")
	check("9223372036854775808", "9223372036854775808")
	check("99999999999999999999", "99999999999999999999")
	check("8388608TiB", "8388608TiB")
}

func TestUnmarshalThatFailsLeavesTheValueAsItWas(t *testing.T) {
	p := holdfast.Durable()
	if err := p.UnmarshalText([]byte("buffer=x")); err == nil || p != holdfast.Durable() {
		t.Errorf("policy is %v after %v", p, err)
	}
	s := 3 * holdfast.KiB
	if err := s.UnmarshalText([]byte("x")); err == nil || s != 3*holdfast.KiB {
		t.Errorf("size is %v after %v", s, err)
	}
}

func TestPolicyIsAMapKeyOfJSON(t *testing.T) {
	type cost map[holdfast.Policy]holdfast.Size
	want := cost{holdfast.Durable(): 1, holdfast.Unbuffered(): 64 * holdfast.KiB}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"buffer=0,sync=never":"64KiB","buffer=64KiB,sync=group":"1B"}`; string(text) != want {
		t.Errorf("JSON is %s, want %s", text, want)
	}
	var got cost
	if err := json.Unmarshal(text, &got); err != nil || len(got) != 2 || got[holdfast.Durable()] != 1 {
		t.Errorf("read back %v, %v", got, err)
	}
	if _, err := json.Marshal(holdfast.Policy{Buffer: -1}); err == nil || !strings.Contains(err.Error(), "buffer=-1") {
		t.Errorf("JSON of an invalid policy: %v", err)
	}
}

func TestNamedPoliciesAreValid(t *testing.T) {
	for _, p := range []holdfast.Policy{
		holdfast.Unbuffered(), holdfast.Buffered(1), holdfast.Periodic(1), holdfast.Durable(), holdfast.EachDurable(),
	} {
		if err := p.Validate(); err != nil {
			t.Errorf("%v: %v", p, err)
		}
	}
}

// TestPeriodicOfNoPeriodIsRefused guards against a computed period of zero or
// less that would silently become another kind of sync.
func TestPeriodicOfNoPeriodIsRefused(t *testing.T) {
	for _, d := range []time.Duration{0, -1, -2, -3, -time.Second} {
		if p := holdfast.Periodic(d); p.Validate() == nil {
			t.Errorf("Periodic(%v) is %v, which is valid", d, p)
		}
	}
}
