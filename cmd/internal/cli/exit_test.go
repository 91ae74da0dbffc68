package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
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
