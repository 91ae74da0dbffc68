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

	check(30*time.Minute, "2026-10-25T02:15:00+02:00", "2026-10-25T02:30:00+02:00")
	check(30*time.Minute, "2026-10-25T02:15:00+01:00", "2026-10-25T02:30:00+01:00") // for the second time

	havana, err := time.LoadLocation("America/Havana")
	if err != nil {
		t.Fatal(err)
	}
	time.Local = havana // where the clock is set from midnight to 01:00
	check(day, "2026-03-07T23:30:00-05:00", "2026-03-08T01:00:00-04:00")
	time.Local = berlin

	synctest.Test(t, func(t *testing.T) { // 01:00 here
		d := newMemory(t)
		if err := d.WriteFile("/log/app-2000-01-01T00-30-00.000.log", nil, 0o644); err != nil {
			t.Fatal(err)
		}
		f := opened(t, d, Options{LocalTime: true, MaxAge: 20 * time.Minute, OnError: func(e *Error) { t.Error(e) }})
		if err := f.Close(); err != nil || len(backupsOf(d)) > 0 {
			t.Errorf("%v, %q is 30 min old and stays", err, names(backupsOf(d)))
		}
	})
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
