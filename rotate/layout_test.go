//go:build go1.25

package rotate

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// TestBackupsHaveTheNamesOfALayout: rotations within one step get names one step apart, the limits count those names alone, and
// the order is the time's.
func TestBackupsHaveTheNamesOfALayout(t *testing.T) {
	check := func(layout string, want ...string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			d := on(t, map[string][]byte{"app-2000-01-01T00-00-00.000.log": nil})
			f := opened(t, d, Options{TimeFormat: layout, MaxBackups: 3, OnError: func(e *Error) { t.Error(e) }})
			time.Sleep(1234 * time.Millisecond)
			for i := range 4 {
				if _, err := f.Write(fmt.Appendln(nil, i)); err != nil {
					t.Fatal(err)
				}
				if err := f.Rotate(); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			files := backupsOf(d)
			if _, ok := files["app-2000-01-01T00-00-00.000.log"]; ok != (layout != "") {
				t.Errorf("%q: the backup of another layout is there: %v", layout, ok)
			}
			delete(files, "app-2000-01-01T00-00-00.000.log")
			for i, name := range want {
				if got := string(files["app-"+name+".log"]); got != fmt.Sprintln(i+1) {
					t.Errorf("%q: %s has %q, in %q", layout, name, got, names(files))
				}
			}
			if len(files) != len(want) {
				t.Errorf("%q: there are %q", layout, names(files))
			}
		})
	}
	check("", "2000-01-01T00-00-01.235", "2000-01-01T00-00-01.236", "2000-01-01T00-00-01.237")
	check("20060102-150405", "20000101-000002", "20000101-000003", "20000101-000004")
	check("Jan02_2006_03h04m05.0PM", "Jan01_2000_12h00m01.3AM", "Jan01_2000_12h00m01.4AM", "Jan01_2000_12h00m01.5AM")
}

func TestALayoutThatIsNoneIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	for layout, want := range map[string]string{
		"2006-01-02":             "does not give the time to the second",
		"2006-01-02T03-04-05":    "does not give the time to the second", // noon is midnight
		"January-02-2006-150405": "different lengths",
		"2006/01/02T15-04-05":    "no part of a file's name",
		"02-150405":              "does not give the time",
		"backup":                 "does not give the time",
	} {
		if _, err := Open(path, Options{TimeFormat: layout}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), layout) {
			t.Errorf("%q: %v, want %q", layout, err, want)
		}
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the log is there: %v", err)
	}
}

// TestMinutesOfEachHour, in a zone that is half an hour off, and where the clock is set.
func TestMinutesOfEachHour(t *testing.T) {
	check := func(zone string, from string, want ...string) {
		t.Helper()
		here := time.Local
		defer func() { time.Local = here }()
		location, err := time.LoadLocation(zone)
		if err != nil {
			t.Skip(err)
		}
		time.Local = location
		const layout = "2006-01-02 15:04:05 -0700"
		at, err := time.Parse(layout, from)
		if err != nil {
			t.Fatal(err)
		}
		o := Options{RotateAt: []string{"*:15", "*:45"}}
		var got []string
		for range want {
			at = o.due(at)
			got = append(got, at.Local().Format(layout))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: due at %q, want %q", zone, got, want)
		}
	}
	check("Asia/Kolkata", "2026-11-28 10:15:00 +0530", "2026-11-28 10:45:00 +0530", "2026-11-28 11:15:00 +0530")
	check("Europe/Berlin", "2026-12-31 23:20:00 +0100", "2026-12-31 23:45:00 +0100", "2027-01-01 00:15:00 +0100")
	check("Europe/Berlin", "2026-03-29 01:30:00 +0100", "2026-03-29 01:45:00 +0100", "2026-03-29 03:15:00 +0200")                                                           // 2:00 is 3:00
	check("Europe/Berlin", "2026-10-25 02:20:00 +0200", "2026-10-25 02:45:00 +0200", "2026-10-25 02:15:00 +0100", "2026-10-25 02:45:00 +0100", "2026-10-25 03:15:00 +0100") // the hour comes twice
	check("Australia/Lord_Howe", "2026-10-04 01:50:00 +1030", "2026-10-04 02:45:00 +1100", "2026-10-04 03:15:00 +1100")                                                     // 2:00 is 2:30
}

// TestDirectoriesAreMadeIfAsked, with their permissions. Their names are durable with the first record, also of those that
// are there: a process that was killed may have made them.
func TestDirectoriesAreMadeIfAsked(t *testing.T) {
	for _, there := range [][]string{nil, {"/log/a"}, {"/log/a", "/log/a/b"}} {
		synctest.Test(t, func(t *testing.T) {
			d := newMemory(t)
			d.dir = "/log/a/b"
			for _, dir := range there {
				name, _ := sys.NewName(dir)
				if err := d.Mkdir(name, 0o750); err != nil {
					t.Fatal(err)
				}
			}
			f, err := open(d, "/log/a/b/app.log", Options{DirPerm: 0o750, Policy: holdfast.Durable()}, false)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write([]byte("record\n")); err != nil {
				t.Fatal(err)
			}
			for seed := range uint64(20) {
				if got := string(d.PowerCut(rand.New(rand.NewPCG(seed, 0))).Files["/log/a/b/app.log"]); got != "record\n" {
					t.Errorf("with %q there, the log has %q after a power cut", there, got)
				}
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "b", "app.log")
	if _, err := Open(path, Options{}); !os.IsNotExist(err) {
		t.Error(err)
	}
	f, err := Open(path, Options{DirPerm: 0o710})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "a")); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o710 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// TestTheModeOfAFileThatExistsIsSetIfAsked, and its successor gets it too.
func TestTheModeOfAFileThatExistsIsSetIfAsked(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no permissions")
	}
	path := filepath.Join(t.TempDir(), "app.log")
	if err := os.WriteFile(path, []byte("record\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(o Options, want fs.FileMode) {
		t.Helper()
		f, err := Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("the log's mode is %v, want %v; %v", info.Mode(), want, err)
			}
			if err := f.Rotate(); err != nil {
				t.Error(err)
			}
		}
		if _, err := f.Write([]byte("record\n")); err != nil {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	check(Options{Perm: 0o640}, 0o600)
	check(Options{Perm: 0o622, SetPerm: true}, 0o622)
	if _, err := Open(path, Options{SetPerm: true}); err == nil || !strings.Contains(err.Error(), "Perm") {
		t.Error(err)
	}
	if _, err := Open(path, Options{DirPerm: fs.ModeDir | 0o755}); err == nil || !strings.Contains(err.Error(), "DirPerm") {
		t.Error(err)
	}
}
