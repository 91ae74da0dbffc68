package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

func TestTellMapsErrorsToExitCodes(t *testing.T) {
	check := func(err error, code int, text string) {
		t.Helper()
		var stderr bytes.Buffer
		if got := Report(&stderr, err); got != code || stderr.String() != text {
			t.Errorf("%v: code %d, %q; want %d, %q", err, got, stderr.String(), code, text)
		}
	}
	check(nil, ExitOK, "")
	check(errors.New("no"), ExitCannot, "holdfast: no\n")
	check(Misuse("do so", "not %d", 1), ExitUsage, "holdfast: not 1\nhint: do so\n")
	check(fmt.Errorf("write: %w", syscall.EPIPE), ExitUnread, "")
	check(errors.Join(&Refusal{ExitNotMet, errors.New("lost"), ""}), ExitNotMet, "holdfast: lost\n")
}

// TestAReaderThatHasGoneIsNoFailure: each system has its own error for a pipe that nobody reads.
func TestAReaderThatHasGoneIsNoFailure(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	_, err = w.WriteString("a line\n")
	if code := Report(&stderr, err); code != ExitUnread || stderr.Len() > 0 {
		t.Errorf("%v: code %d, %q", err, code, stderr.String())
	}
}

func TestCauseIsAnErrorWithoutTheNameOfItsFile(t *testing.T) {
	at := &fs.PathError{Op: "open", Path: "holdfast-1234", Err: syscall.ENOSPC}
	for _, err := range []error{at, fmt.Errorf("results: %w", at), syscall.ENOSPC} {
		if got := Cause(err); got != syscall.ENOSPC {
			t.Errorf("%v: %v", err, got)
		}
	}
}

func TestWhatAChrootLacksHasAHint(t *testing.T) {
	check := func(path string, err error, want string) {
		t.Helper()
		if got := DiskHint(fmt.Errorf("level kill: %w", &fs.PathError{Op: "open", Path: path, Err: err})); got != want {
			t.Errorf("%s, %v: %q, want %q", path, err, got, want)
		}
	}
	check("/dev/null", syscall.ENOENT, "mount /dev: this chroot or container has none, or not all of it")
	check("/proc/self/mountinfo", syscall.ENOENT, "mount /proc: this chroot or container has none, or not all of it")
	check("/dev/null", syscall.EACCES, "")
	check("/dev/sdz", syscall.ENOENT, "")
	check("proc/x", syscall.ENOENT, "")
}

func TestNotDirSaysWhy(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	check := func(path, want string) {
		t.Helper()
		if got := fmt.Sprint(NotDir(path)); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	check(dir, "<nil>")
	check(file, "it is a file, not a directory")
	check(filepath.Join(dir, "none"), "there is no such directory")
	if runtime.GOOS != "windows" {
		check(filepath.Join(file, "below"), "not a directory")
	}
}

// TestEachCauseOfARefusalHasALine: a line feed in it would be escaped.
func TestEachCauseOfARefusalHasALine(t *testing.T) {
	var stderr bytes.Buffer
	Report(&stderr, &Refusal{ExitCannot, errors.Join(errors.New("one"), errors.New("two")), "do so"})
	if got, want := stderr.String(), "holdfast: one\ntwo\nhint: do so\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
