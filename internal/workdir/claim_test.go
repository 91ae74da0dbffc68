//go:build unix

package workdir

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestStaleDirectoriesAreRemovedAndNoOthers has directories of runs that have ended, of one that goes
// on, and some that no run has made.
func TestStaleDirectoriesAreRemovedAndNoOthers(t *testing.T) {
	parent := t.TempDir()
	made := func() *Dir {
		d, err := Claim(parent, "run-")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Mkdir(filepath.Join(d.Path(), "d"), 0o700), os.WriteFile(filepath.Join(d.Path(), "d", "f"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		return d
	}
	alive, ended, gone := made(), made(), made()
	if err := errors.Join(ended.Close(), gone.Discard()); err != nil {
		t.Fatal(err)
	}
	outside := t.TempDir()
	for _, dir := range []string{"run-1/d", "run-2", "run-x", "other-3"} {
		if err := os.MkdirAll(filepath.Join(parent, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	foreign, link := filepath.Join(parent, "run-4"), filepath.Join(parent, "run-5")
	if err := errors.Join(os.Mkdir(foreign, 0o700), os.WriteFile(filepath.Join(foreign, mark), nil, 0o600), os.Chmod(foreign, 0o777),
		os.WriteFile(filepath.Join(outside, mark), nil, 0o600), os.Symlink(outside, link)); err != nil {
		t.Fatal(err)
	}
	if err := RemoveStale(parent, "run-"); err != nil {
		t.Fatal(err)
	}
	want := []string{"other-3", "run-1", "run-4", "run-5", "run-x", filepath.Base(alive.Name())}
	slices.Sort(want)
	var left []string
	entries, err := os.ReadDir(parent)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if err != nil || !slices.Equal(left, want) {
		t.Errorf("%v is left, want %v: %v", left, want, err)
	}
	if _, err := os.Stat(filepath.Join(alive.Path(), "d", "f")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(outside, mark)); err != nil {
		t.Error(err)
	}
	if err := alive.Discard(); err != nil {
		t.Error(err)
	}
}
