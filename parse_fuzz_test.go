package holdfast_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// checkSentence checks an error that a user can cause: it is one lower-case
// sentence and quotes what was wrong.
func checkSentence(t *testing.T, err error, named ...string) {
	t.Helper()
	text := err.Error()
	if text == "" || strings.ToLower(text[:1]) != text[:1] || strings.HasSuffix(text, ".") || strings.Contains(text, "\n") {
		t.Errorf("%q is not a lower-case sentence without a full stop", text)
	}
	for _, name := range named {
		if strings.Contains(text, name) {
			return
		}
	}
	t.Errorf("%q names none of %q", text, named)
}

func FuzzParsePolicy(f *testing.F) {
	for _, text := range []string{
		"", "buffer=0", "buffer=64KiB,flush=100ms,sync=1s", "sync=group", "sync=each,buffer=1", "buffer=1,flush=1ns",
		"sync=close,sync=close", "buffer=1,", ",", "=", "buffer==1", "flush=1s", "buffer=99999999999999999999", "sync=0s",
		"buffer=2GiB", "buffer=1,sync=1h2m3.000000004s", "flush=1.5ms, buffer=10MB", "sync=-1ns", "buffer=64KB", "sync=NEVER\x00",
		"buffer=0,sync=2562047h47m16.854775807s", "sync=1s", "buffer=1,flush=.5us", "buffer=0,sync=1\u00b5s", "buffer=0,sync=1\u03bcs",
		"buffer=1,sync=1s/4MiB", "buffer=1,sync=4MiB/1s", "buffer=0,sync=4MiB", "buffer=2,flush=1B", "buffer=2,flush=1ns/1B,sync=1",
		"durable", "periodic=1s/4MiB", "buffered=1", "unbuffered=", "eachdurable", "periodic=1s,buffer=1", "buffer=1,sync=1s/1s/1k", "buffer=1\n =2",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := holdfast.ParsePolicy(text)
		if err != nil {
			if p != (holdfast.Policy{}) {
				t.Errorf("ParsePolicy(%q) = %v beside %v", text, p, err)
			}
			checkSentence(t, err, "empty", "policy \"", "policy: buffer=", "policy: flush=", "policy: sync=")
			return
		}
		checkPolicyText(t, p)
	})
}

// checkPolicyText checks that the text of a valid policy is read as that policy.
func checkPolicyText(t *testing.T, p holdfast.Policy) {
	t.Helper()
	if err := p.Validate(); err != nil {
		t.Fatalf("%+v is not valid: %v", p, err)
	}
	if again, err := holdfast.ParsePolicy(p.String()); err != nil || again != p {
		t.Errorf("ParsePolicy(%q) = %+v, %v; want %+v", p.String(), again, err, p)
	}
	var again holdfast.Policy
	if text, err := p.MarshalText(); err != nil || again.UnmarshalText(text) != nil || again != p {
		t.Errorf("%+v marshals to %q, %v, which is read as %+v", p, text, err, again)
	}
}

// FuzzPolicyText starts from values, so that it also meets those that no one
// would write as text.
func FuzzPolicyText(f *testing.F) {
	f.Add(int64(0), int64(0), int64(0), uint8(0), int64(0), int64(0))
	f.Add(int64(65536), int64(100*time.Millisecond), int64(4096), uint8(holdfast.SyncPeriodic), int64(time.Second), int64(4<<20))
	f.Add(int64(1), int64(1), int64(0), uint8(holdfast.SyncEach), int64(0), int64(0))
	f.Add(int64(1), int64(0), int64(0), uint8(holdfast.SyncPeriodic), int64(1), int64(0))
	f.Add(int64(2), int64(0), int64(1), uint8(holdfast.SyncPeriodic), int64(0), int64(1))
	f.Add(int64(-1), int64(-1), int64(-1), uint8(255), int64(-4), int64(-1))
	f.Add(int64(1)<<30, int64(1)<<62, int64(1)<<30-1, uint8(holdfast.SyncPeriodic), int64(1)<<62, int64(1)<<40)
	f.Fuzz(func(t *testing.T, buffer, flush, flushBytes int64, mode uint8, every, bytes int64) {
		p := holdfast.Policy{Buffer: holdfast.Size(buffer), FlushEvery: time.Duration(flush), FlushBytes: holdfast.Size(flushBytes),
			Sync: holdfast.Sync{Mode: holdfast.SyncMode(mode), Every: time.Duration(every), Bytes: holdfast.Size(bytes)}}
		if err := p.Validate(); err != nil {
			checkSentence(t, err, "policy: buffer=", "policy: flush=", "policy: sync=")
			return
		}
		checkPolicyText(t, p)
		checkLoss(t, p)
	})
}

// checkLoss checks what holds for the loss of every policy. A power cut takes
// no less than the death of the process, and a bound is a bound.
func checkLoss(t *testing.T, p holdfast.Policy) {
	t.Helper()
	atLeast := func(a, b int64) bool { return a == holdfast.Unlimited || (b != holdfast.Unlimited && a >= b) }
	loss := p.Loss()
	if !atLeast(int64(loss.Power.Bytes), int64(loss.Process.Bytes)) || !atLeast(int64(loss.Power.Time), int64(loss.Process.Time)) {
		t.Errorf("%v: power cut %+v takes less than process crash %+v", p, loss.Power, loss.Process)
	}
	for _, b := range []holdfast.Bound{loss.Process, loss.Power} {
		if b.Bytes < holdfast.Unlimited || b.Time < holdfast.Unlimited || (b.None() != (b.Bytes == 0)) {
			t.Errorf("%v: bound %+v", p, b)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	for _, text := range []string{
		"", "0", "1", "64KiB", "64k", "10MB", "64KB", "1.5k", "-1", "+1", "1 k", "9223372036854775807",
		"9223372036854775808", "8388607TiB", "8388608TiB", "k", "0x10", "1e3", "007", "1\x00", "٣",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := holdfast.ParseSize(text)
		if err != nil {
			if s != 0 {
				t.Errorf("ParseSize(%q) = %v beside %v", text, s, err)
			}
			checkSentence(t, err, "size \"")
			return
		}
		if again, err := holdfast.ParseSize(s.String()); s < 0 || err != nil || again != s {
			t.Errorf("ParseSize(%q) = %d; its text %q is read as %d, %v", text, int64(s), s, int64(again), err)
		}
	})
}
