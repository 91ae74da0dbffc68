package cli

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// TestQuietProgressReportsFailuresAlone has no line of its own, and the first failures.
func TestQuietProgressReportsFailuresAlone(t *testing.T) {
	var stderr bytes.Buffer
	p := NewProgress(&stderr, true)
	p.Every(func() string { return "shown" })
	p.OfBytes(100).SetBytes(50)
	p.Steps("round 1", 1, 2)
	p.Say("said")
	for range MostFailures + 2 {
		p.Failure(errors.New("failed"), "failed")
	}
	for range 2 {
		p.Failure(fmt.Errorf("sync: %w", syscall.EROFS), "read-only") // the error that lost the others
	}
	p.End()
	if got, want := stderr.String(), strings.Repeat("holdfast: failed\n", MostFailures)+"holdfast: further failures are counted\nholdfast: read-only\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestProgressElsewhereHasNoBar: what is no terminal has a line for each text.
func TestProgressElsewhereHasNoBar(t *testing.T) {
	var stderr bytes.Buffer
	p := NewProgress(&stderr, false)
	p.Steps("round 1", 1, 2)
	p.OfBytes(100).SetBytes(50)
	p.Show("one")
	p.Say("two")
	p.End()
	if got := stderr.String(); got != "holdfast: one\nholdfast: two\n" {
		t.Errorf("%q", got)
	}
}
