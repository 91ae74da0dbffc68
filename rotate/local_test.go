//go:build go1.25

package rotate

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata" // for Windows
)

// TestLocalTime: names, and the multiples of an interval, have the local time, also where the clock is set.
func TestLocalTime(t *testing.T) {
	here := time.Local
	defer func() { time.Local = here }()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	time.Local = berlin
	check := func(every time.Duration, after, want string) {
		t.Helper()
		at, err := time.Parse(time.RFC3339, after)
		if err != nil {
			t.Fatal(err)
		}
		if got := (Options{RotationInterval: every, LocalTime: true}).due(at).Format(time.RFC3339); got != want {
			t.Errorf("every %v after %s: %s, want %s", every, after, got, want)
		}
	}
	const day = 24 * time.Hour
	check(day, "2026-03-28T00:00:00+01:00", "2026-03-29T00:00:00+01:00")
	check(day, "2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00") // this day has 23 hours
	check(day, "2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00") // and this one 25
	check(12*time.Hour, "2026-10-25T01:00:00+02:00", "2026-10-25T12:00:00+01:00")
	check(time.Hour, "2026-03-29T01:30:00+01:00", "2026-03-29T03:00:00+02:00")
	check(30*time.Minute, "2026-10-25T02:45:00+01:00", "2026-10-25T03:00:00+01:00")

	synctest.Test(t, func(t *testing.T) { // it begins at 2000-01-01, 00:00 UTC
		d, l := newMemory(t), ledger{}
		f := opened(t, d, Options{LocalTime: true, MaxAge: 90 * time.Minute, OnError: func(e *Error) { t.Error(e) }})
		for range 3 {
			l.put(t, f, 1)
			if err := f.Rotate(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		want := []string{"app-2000-01-01T03-00-00.000.log", "app.log"} // and the older ones are too old
		if got := names(logs(d.ProcessCrash())); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}
