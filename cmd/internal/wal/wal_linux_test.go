package wal

import (
	"os"
	"path/filepath"
	"testing"
)

// TestACopyOfAnotherGroupPermitsWhatBothHad: a copy's group is not the log's.
func TestACopyOfAnotherGroupPermitsWhatBothHad(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("to give a file to another group takes root")
	}
	dir := logOf(t)
	names, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	if err != nil || len(names) < 2 {
		t.Fatal(names, err)
	}
	copied := func(want os.FileMode) {
		t.Helper()
		to := filepath.Join(t.TempDir(), "copy")
		wants(t, 0, `copy has 28 of 28`, `^$`, "repair", dir, to)
		info, err := os.Stat(filepath.Join(to, "lock"))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("the copy has %v, want %v", info.Mode(), want)
		}
	}
	check := func(gid int, perm, want os.FileMode) {
		t.Helper()
		for _, name := range append(names, dir) {
			if err := os.Chown(name, -1, gid); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range names {
			if err := os.Chmod(name, perm); err != nil {
				t.Fatal(err)
			}
		}
		copied(want)
	}
	check(os.Getegid(), 0o640, 0o640)
	check(2000, 0o640, 0o600)
	check(2000, 0o604, 0o600)
	check(2000, 0o664, 0o644)
	if err := os.Chown(names[0], -1, os.Getegid()); err != nil { // segments of two groups
		t.Fatal(err)
	}
	copied(0o644)
}
