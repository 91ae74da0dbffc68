//go:build go1.25

package rotate

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// jumpingClock is a clock that is ahead of the time that passes by a number which a test sets.
func jumpingClock(t *testing.T) *atomic.Int64 {
	t.Helper()
	var ahead atomic.Int64
	clock = func() time.Time { return time.Now().Round(0).Add(time.Duration(ahead.Load())) }
	t.Cleanup(func() { clock = time.Now })
	return &ahead
}

// TestBackupsStayInOrderWhateverTheClockDoes rotates again and again while the clock stands still, or jumps, also while the log
// is closed. No backup is written over, and they sort as they came.
func TestBackupsStayInOrderWhateverTheClockDoes(t *testing.T) {
	const day = 24 * time.Hour
	for _, o := range []Options{{}, {MaxBackups: 100}, {Compress: true}, {MaxSize: 1}} {
		for _, reopen := range []bool{false, true} {
			t.Run(fmt.Sprintf("%+v reopen=%v", o, reopen), func(t *testing.T) {
				ahead := jumpingClock(t)
				synctest.Test(t, func(t *testing.T) {
					d, l := newMemory(t), ledger{}
					o.OnError = func(e *Error) { t.Error(e) }
					f := opened(t, d, o)
					jumps := []time.Duration{0, 0, time.Millisecond, -day, -day, 0, time.Microsecond, -time.Microsecond, 365 * day, -1000 * day, 0}
					for _, jump := range jumps {
						ahead.Add(int64(jump))
						if reopen {
							if err := f.Close(); err != nil {
								t.Fatal(err)
							}
							f = opened(t, d, o)
						}
						l.put(t, f, 1)
						if o.MaxSize == 0 {
							if err := f.Rotate(); err != nil {
								t.Fatal(err)
							}
						}
					}
					time.Sleep(time.Hour)
					if files := l.closed(t, d, f); len(files) != len(jumps)+1 {
						t.Errorf("%d files of %d rotations: %v", len(files), len(jumps), names(files))
					}
				})
			})
		}
	}
}

// TestAJumpOfTheClockMakesNoBackupOld, and none young: ages go by the time that passes while the log is open.
func TestAJumpOfTheClockMakesNoBackupOld(t *testing.T) {
	const day, year = 24 * time.Hour, 365 * 24 * time.Hour
	for _, c := range []struct {
		name   string
		at, to time.Duration // the clock is so far ahead when the log is opened, and then
		// A backup of an earlier process, twelve hours old, is there when the clock has jumped, and a day later.
		stays, late bool
	}{
		{name: "a day late", to: day, stays: true},
		{name: "ten years late", to: 10 * year, stays: true},
		{name: "ten years early", to: -10 * year, stays: true},
		{name: "the clock began in 1971, and is set", at: -29 * year, stays: true, late: true}, // it was of the future then
		{name: "the clock began ten years late, and is set", at: 10 * year},
		{name: "it stands as it is", stays: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			ahead := jumpingClock(t)
			ahead.Store(int64(c.at))
			synctest.Test(t, func(t *testing.T) {
				d, l := newMemory(t), ledger{}
				const earlier = "app-1999-12-31T12-00-00.000.log"
				if err := d.WriteFile("/log/"+earlier, nil, 0o640); err != nil {
					t.Fatal(err)
				}
				f := opened(t, d, Options{MaxAge: day, OnError: func(e *Error) { t.Error(e) }})
				rotate := func() {
					t.Helper()
					l.put(t, f, 1)
					if err := f.Rotate(); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
				}
				rotate()
				time.Sleep(time.Hour)
				rotate()
				ahead.Store(int64(c.to))
				rotate()
				// own looks for the earlier backup and returns how many others there are.
				own := func(stays bool) int {
					t.Helper()
					files := backupsOf(d)
					if _, got := files[earlier]; got != stays {
						t.Errorf("the backup of twelve hours ago is there: %v, want %v", got, stays)
					}
					delete(files, earlier)
					return len(files)
				}
				if n := own(c.stays); n != 3 {
					t.Errorf("of three backups, the oldest an hour old, there are %d", n)
				}
				time.Sleep(day - time.Hour) // the first is as old as may be
				rotate()
				if n := own(c.late); n != 4 {
					t.Errorf("a day later there are %d backups of 4", n)
				}
				time.Sleep(time.Millisecond)
				rotate()
				if n := own(false); n != 4 {
					t.Errorf("a day and a millisecond later there are %d backups, want 4 of 5", n)
				}
				time.Sleep(2 * day)
				rotate()
				if n := own(false); n != 1 {
					t.Errorf("three days later there are %d backups, want the newest", n)
				}
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestAClockThatIsSetRotatesByItsNewTime within a minute, also an idle log. One that is set back leaves the next time far
// ahead.
func TestAClockThatIsSetRotatesByItsNewTime(t *testing.T) {
	here := time.Local
	time.Local = time.UTC
	defer func() { time.Local = here }()
	const day, year = 24 * time.Hour, 365 * 24 * time.Hour
	noon, hourly := Options{RotateAt: []string{"12:00"}}, Options{RotationInterval: time.Hour}
	for _, c := range []struct {
		name      string
		o         Options
		at, to    time.Duration // how far the clock is ahead of midnight, before and after it is set
		sleep     time.Duration
		rotations int64
	}{
		{"stands", noon, 0, 0, 12*time.Hour - 1, 0},
		{"stands until noon", noon, 0, 0, 12 * time.Hour, 1},
		{"set forward to 11:50", noon, 0, 11*time.Hour + 50*time.Minute, 10*time.Minute - 1, 0},
		{"set forward to 11:50, until noon", noon, 0, 11*time.Hour + 50*time.Minute, 11 * time.Minute, 1},
		{"set forward over noon", noon, 0, 13 * time.Hour, time.Minute, 1},
		{"set back by a year", noon, year, 0, 12*time.Hour - 1, 0},
		{"set back by a year, until noon", noon, year, 0, 12*time.Hour + time.Minute, 1},
		{"set back by a year, for two days", noon, year, 0, 2 * day, 1},
		{"set forward over an hour", hourly, 0, 3 * time.Hour, time.Minute, 1},
		{"set back by a day", hourly, day, 0, time.Hour + time.Minute, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			ahead := jumpingClock(t)
			ahead.Store(int64(c.at))
			synctest.Test(t, func(t *testing.T) {
				d, l := newMemory(t), ledger{}
				f := opened(t, d, c.o)
				l.put(t, f, 1)
				ahead.Store(int64(c.to))
				time.Sleep(c.sleep)
				synctest.Wait()
				if n := f.Stats().Rotations; n != c.rotations {
					t.Errorf("%d rotations, want %d", n, c.rotations)
				}
				l.closed(t, d, f)
			})
		})
	}
}

// TestATimeThatTheDayLeavesOutIsLater that day, never earlier, and one that comes twice counts once.
func TestATimeThatTheDayLeavesOutIsLater(t *testing.T) {
	here := time.Local
	defer func() { time.Local = here }()
	check := func(zone, at, after string, want ...string) {
		t.Helper()
		location, err := time.LoadLocation(zone)
		if err != nil {
			t.Skip(err)
		}
		time.Local = location
		now, err := time.ParseInLocation(time.DateTime, after, location)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range want {
			now = Options{RotateAt: []string{at}}.due(now)
			if got := now.Format(time.DateTime + " -07"); got != want {
				t.Errorf("%s, %s: rotates at %s, want %s", zone, at, got, want)
			}
		}
	}
	check("America/New_York", "23:30", "2026-01-10 20:00:00", "2026-01-10 23:30:00 -05") // it is the 11th in UTC
	check("America/Sao_Paulo", "00:00", "2018-11-03 00:00:00", "2018-11-04 01:00:00 -02", "2018-11-05 00:00:00 -02")
	check("America/Sao_Paulo", "23:30", "2018-02-17 12:00:00", "2018-02-17 23:30:00 -02", "2018-02-18 23:30:00 -03")
	check("America/New_York", "02:30", "2026-03-07 02:30:00", "2026-03-08 03:30:00 -04", "2026-03-09 02:30:00 -04")
	check("America/New_York", "01:30", "2026-10-31 12:00:00", "2026-11-01 01:30:00 -04", "2026-11-02 01:30:00 -05")
	check("Europe/Berlin", "02:30", "2026-03-28 12:00:00", "2026-03-29 03:30:00 +02", "2026-03-30 02:30:00 +02")
	check("Europe/Berlin", "02:30", "2026-10-24 12:00:00", "2026-10-25 02:30:00 +01", "2026-10-26 02:30:00 +01")
	check("Africa/Cairo", "00:00", "2026-04-23 12:00:00", "2026-04-24 01:00:00 +03", "2026-04-25 00:00:00 +03")
	check("Pacific/Apia", "12:00", "2011-12-29 12:00:00", "2011-12-31 12:00:00 +14", "2012-01-01 12:00:00 +14")
}

// TestAnOldListOfBackupsTakesNoNameBack: the background has made it before the last rotation.
func TestAnOldListOfBackupsTakesNoNameBack(t *testing.T) {
	last := time.Now()
	f := &File{last: last}
	if f.passLocked([]*backup{{at: last.Add(-time.Hour)}}); !f.last.Equal(last) {
		t.Errorf("the next backup may be of %v, behind one of %v", f.last, last)
	}
}
