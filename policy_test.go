package holdfast_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// byBytes is a sync by bytes, and by time if every is not 0.
func byBytes(every time.Duration, bytes holdfast.Size) holdfast.Sync {
	return holdfast.Sync{Mode: holdfast.SyncPeriodic, Every: every, Bytes: bytes}
}

// largest is the largest buffer: 1GiB, or a byte less where int has 32 bits.
const largest = min(holdfast.GiB, holdfast.Size(math.MaxInt/2))

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
	check("buffer="+largest.String(), holdfast.Buffered(largest), "buffer="+largest.String()+",sync=never")
	check("sync=1s,buffer=64KiB", holdfast.Periodic(time.Second), "buffer=64KiB,sync=1s")
	check("buffer=64KiB,flush=100ms,sync=1s",
		holdfast.Policy{Buffer: 64 * holdfast.KiB, FlushEvery: 100 * time.Millisecond, Sync: holdfast.SyncEvery(time.Second)},
		"buffer=64KiB,flush=100ms,sync=1s")
	check(" buffer=64KiB, flush=1h , sync=close ",
		holdfast.Policy{Buffer: 64 * holdfast.KiB, FlushEvery: time.Hour, Sync: holdfast.Sync{Mode: holdfast.SyncClose}},
		"buffer=64KiB,flush=1h0m0s,sync=close")
	check("buffer=64KiB,sync=group", holdfast.Durable(), "buffer=64KiB,sync=group")
	check("sync=each", holdfast.EachDurable(), "buffer=0,sync=each")
	check("buffer=0,sync=1ns", holdfast.Policy{Sync: holdfast.SyncEvery(1)}, "buffer=0,sync=1ns")
	check("buffer=1,flush=1ns", holdfast.Policy{Buffer: 1, FlushEvery: 1}, "buffer=1B,flush=1ns,sync=never")

	check("buffer=0,sync=4MiB", holdfast.Policy{Sync: byBytes(0, 4*holdfast.MiB)}, "buffer=0,sync=4MiB")
	check("buffer=1k,sync=1s/4M", holdfast.Policy{Buffer: holdfast.KiB, Sync: byBytes(time.Second, 4*holdfast.MiB)}, "buffer=1KiB,sync=1s/4MiB")
	check("buffer=1k,sync=4M/1s", holdfast.Policy{Buffer: holdfast.KiB, Sync: byBytes(time.Second, 4*holdfast.MiB)}, "buffer=1KiB,sync=1s/4MiB")
	check("buffer=1k,sync=1B/1m", holdfast.Policy{Buffer: holdfast.KiB, Sync: byBytes(time.Minute, 1)}, "buffer=1KiB,sync=1m0s/1B")
	check("buffer=1MiB,flush=64KiB", holdfast.Policy{Buffer: holdfast.MiB, FlushBytes: 64 * holdfast.KiB}, "buffer=1MiB,flush=64KiB,sync=never")
	check("buffer=1MiB,flush=1s/64KiB,sync=close",
		holdfast.Policy{Buffer: holdfast.MiB, FlushEvery: time.Second, FlushBytes: 64 * holdfast.KiB, Sync: holdfast.Sync{Mode: holdfast.SyncClose}},
		"buffer=1MiB,flush=1s/64KiB,sync=close")

	check("unbuffered", holdfast.Unbuffered(), "buffer=0,sync=never")
	check("buffered=64KiB", holdfast.Buffered(64*holdfast.KiB), "buffer=64KiB,sync=never")
	check("periodic=1s", holdfast.Periodic(time.Second), "buffer=64KiB,sync=1s")
	check("periodic=4MiB", holdfast.Policy{Buffer: 64 * holdfast.KiB, Sync: byBytes(0, 4*holdfast.MiB)}, "buffer=64KiB,sync=4MiB")
	check("periodic=1s/4MiB", holdfast.Policy{Buffer: 64 * holdfast.KiB, Sync: byBytes(time.Second, 4*holdfast.MiB)}, "buffer=64KiB,sync=1s/4MiB")
	check(" durable ", holdfast.Durable(), "buffer=64KiB,sync=group")
	check("eachdurable", holdfast.EachDurable(), "buffer=0,sync=each")
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
	check("buffer=64KB", `"64KB"`, "64kB or 64KiB")
	check("buffer=-1", "buffer", `"-1"`)
	check("buffer=1.5k", `"1.5k"`)
	check("buffer=9223372036854775808", "buffer", "9223372036854775808")
	check("buffer=1073741825", "buffer=1073741825B", largest.String())
	check("buffer=2GiB", "buffer=2GiB", largest.String())
	check("flush=1s", "flush=1s", "buffer=0")
	check("buffer=1,flush=1", "flush", `"1"`)
	check("buffer=1,flush=-1s", "flush", `"-1s"`)
	check("sync=sometimes", "sync", `"sometimes"`, "never", "close", "group", "each")
	check("sync=0s", "sync", `"0s"`)
	check("sync=-1ns", "sync", `"-1ns"`)
	check("sync=-3ns", "sync", `"-3ns"`)
	check("sync=Group", "sync", `"Group"`)

	// Without a unit a limit could be of time or of bytes.
	check("buffer=1,sync=1", "sync", `"1"`, "duration such as 1s", "1s/4MiB")
	check("buffer=1,sync=1s/4", "sync", `"1s/4"`)
	check("buffer=2,flush=1s/1", "flush", `"1"`, "unit")
	check("buffer=1,sync=1s/", "sync", `"1s/"`)
	check("buffer=1,sync=/1s", "sync", `"/1s"`)
	check("buffer=1,sync=1s/1s", "sync", `"1s/1s"`)
	check("buffer=1,sync=1k/1k", "sync", `"1k/1k"`)
	check("buffer=1,sync=1s/1k/1k", "sync", `"1s/1k/1k"`)
	check("buffer=1,sync=1k/0s", "sync", `"1k/0s"`)
	check("buffer=1,sync=0s/1k", "sync", `"0s/1k"`)
	check("buffer=1,sync=0B", "sync", `"0B"`)
	check("buffer=1,sync=1s/never", "sync", `"1s/never"`)
	check("buffer=1,sync=2TiB", "sync=2TiB", "1TiB")
	check("buffer=64KiB,flush=64KiB", "flush=64KiB", "buffer=64KiB", "less")
	check("flush=64KiB", "flush=64KiB", "buffer=0")

	// Nothing in sync=1s says that each Write is to be a system call.
	check("sync=1s", "sync=1s", "system call", "buffer=64KiB", "buffer=0")
	check("sync=4MiB", "sync=4MiB", "system call", "buffer=64KiB", "buffer=0")

	check("durable=1", "durable", "alone")
	check("unbuffered=", "unbuffered", "alone")
	check("durable,buffer=1", `"durable"`, "alone")
	check("periodic=1s,buffer=1", "periodic", `"1s,buffer=1"`)
	check("buffer=1,periodic=1s", `"periodic"`, "alone")
	check("periodic", "periodic", "periodic=1s")
	check("periodic=0s", "periodic", `"0s"`)
	check("periodic=never", "periodic", `"never"`)
	check("buffered", "buffered", "buffered=64KiB")
	check("buffered=x", "buffered", `"x"`)
	check("buffered=2GiB", "buffer=2GiB", largest.String())
	check("Durable", `"Durable"`, "durable")
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
	check(holdfast.Policy{Buffer: largest})
	check(holdfast.Policy{Buffer: largest + 1}, "buffer="+(largest+1).String(), largest.String())
	check(holdfast.Policy{Buffer: 1, FlushEvery: 1})
	check(holdfast.Policy{Buffer: 1, FlushEvery: -1}, "flush=-1ns")
	check(holdfast.Policy{Buffer: 0, FlushEvery: 1}, "flush=1ns", "buffer=0")
	check(holdfast.Policy{Buffer: 1, FlushEvery: 1<<63 - 1})
	check(holdfast.Policy{Sync: holdfast.SyncEvery(1)})
	check(holdfast.Policy{Sync: holdfast.SyncEvery(1<<63 - 1)})
	check(holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncNever}})
	check(holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}})
	check(holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncGroup}})
	check(holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncEach}})
	check(holdfast.Policy{Sync: holdfast.SyncEvery(0)}, "sync=0s", "4MiB")
	check(holdfast.Policy{Sync: holdfast.SyncEvery(-4)}, "sync=-4ns")
	check(holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncEach + 1}}, "sync=SyncMode(5)", "SyncPeriodic")
	check(holdfast.Policy{Sync: holdfast.Sync{Every: time.Second}}, "sync=never", "1s", "SyncPeriodic")
	check(holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncEach, Bytes: 4 * holdfast.MiB}}, "sync=each", "4MiB")
	check(holdfast.Policy{Sync: byBytes(0, 1)})
	check(holdfast.Policy{Sync: byBytes(1, 1)})
	check(holdfast.Policy{Sync: byBytes(0, 1<<40)})
	check(holdfast.Policy{Sync: byBytes(0, 1<<40+1)}, "sync=1099511627777B", "1TiB")
	check(holdfast.Policy{Sync: byBytes(0, -1)}, "sync=-1B")
	check(holdfast.Policy{Sync: byBytes(-1, 1)}, "sync=-1ns/1B")
	check(holdfast.Policy{Buffer: 2, FlushBytes: 1})
	check(holdfast.Policy{Buffer: 2, FlushBytes: 2}, "flush=2B", "buffer=2B")
	check(holdfast.Policy{Buffer: 2, FlushBytes: -1}, "flush=-1B")
	check(holdfast.Policy{FlushEvery: time.Second, FlushBytes: 1}, "flush=1s/1B", "buffer=0")
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
	check(holdfast.Policy{Buffer: 8, FlushEvery: s, Sync: holdfast.SyncEvery(2 * s)}, within(16, s), within(all, 2*s),
		"the last 1s + one flush, up to 16B", "the last 2s + one sync")
	check(holdfast.Policy{Buffer: 8, FlushEvery: 2 * s, Sync: holdfast.SyncEvery(s)}, within(16, s), within(all, s),
		"the last 1s + one flush, up to 16B", "the last 1s + one sync")
	check(holdfast.Policy{Sync: holdfast.SyncEvery(s)}, none, within(all, s), "nothing", "the last 1s + one sync")
	check(holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}}, none, anything, "nothing", "anything not synced")
	check(holdfast.Policy{Buffer: 8, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}, within(16, all), anything, "up to 16B", "anything not synced")
	check(holdfast.Policy{Buffer: 8, FlushEvery: s, Sync: holdfast.Sync{Mode: holdfast.SyncGroup}}, none, none, "nothing", "nothing")
	check(holdfast.Policy{Buffer: 8, Sync: holdfast.Sync{Mode: holdfast.SyncEach}}, none, none, "nothing", "nothing")

	inFlight := func(n holdfast.Size, d time.Duration) holdfast.Bound {
		return holdfast.Bound{Bytes: n, Time: d, InFlight: true}
	}
	check(holdfast.Policy{Sync: byBytes(0, 4*holdfast.MiB)}, none, inFlight(4*holdfast.MiB, all), "nothing", "up to 4MiB + what is in flight")
	check(holdfast.Policy{Buffer: 8, Sync: byBytes(0, 4)}, within(16, all), inFlight(20, all), "up to 16B", "up to 20B + what is in flight")
	check(holdfast.Policy{Buffer: 8, Sync: byBytes(s, 4)}, within(16, s), inFlight(20, s),
		"the last 1s + one flush, up to 16B", "the last 1s, up to 20B, + what is in flight")
	check(holdfast.Policy{Buffer: 8, FlushEvery: s, FlushBytes: 4, Sync: byBytes(2*s, 4)}, within(16, s), inFlight(20, 2*s),
		"the last 1s + one flush, up to 16B", "the last 2s, up to 20B, + what is in flight")
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
	check("1.5k", `"1.5k" is not a whole number; use a smaller unit`)
	check("64KB", `"64KB"`, "64kB or 64KiB")
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

func TestOutcomeIsText(t *testing.T) {
	names := []string{"untouched", "partial", "written", "durable", "uncertain"}
	for i, name := range names {
		o := holdfast.Outcome(i)
		if text, err := o.MarshalText(); err != nil || string(text) != name || o.String() != name {
			t.Errorf("%d: %s, %v", i, text, err)
		}
	}
	for _, o := range []holdfast.Outcome{-1, holdfast.Outcome(len(names))} {
		if text, err := o.MarshalText(); err == nil || !strings.HasPrefix(o.String(), "Outcome(") {
			t.Errorf("%d: %s, %s", o, o, text)
		}
	}
}
