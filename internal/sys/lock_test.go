package sys

import (
	"errors"
	"os"
	"testing"
)

// TestTryLockIsForOne locks a directory through two descriptors, which are to flock(2)
// what two processes are.
func TestTryLockIsForOne(t *testing.T) {
	dir := t.TempDir()
	open := func() *os.File {
		t.Helper()
		f, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	check := func(f *os.File, want bool) {
		t.Helper()
		got, err := TryLock(f)
		if errors.Is(err, errors.ErrUnsupported) {
			t.Skip(err)
		}
		if got != want || err != nil {
			t.Errorf("locked: %v, %v; want %v", got, err, want)
		}
	}
	first, second := open(), open()
	check(first, true)
	check(second, false)
	first.Close()
	check(second, true)
}

func TestTryLockOfAClosedFileIsAnError(t *testing.T) {
	f, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if ok, err := TryLock(f); ok || err == nil {
		t.Errorf("locked: %v, %v", ok, err)
	}
}
