package write

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// TestLineCutByAFailureIsEndedWhenThereIsRoomAgain lets a file take the half of a line,
// and then more.
func TestLineCutByAFailureIsEndedWhenThereIsRoomAgain(t *testing.T) {
	isolate.Process(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "f")
		limit := func(n uint64) {
			if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: n, Max: unix.RLIM_INFINITY}); err != nil {
				t.Fatal(err)
			}
		}
		var stderr strings.Builder
		s := spreadTo(t, file, holdfast.Unbuffered(), &stderr)
		s.splitter.each = s.take
		limit(10)
		s.splitter.take([]byte("line 1\nline 2\nline 3\n"))
		s.flush()
		limit(unix.RLIM_INFINITY)
		for range 2 {
			s.splitter.take([]byte("line 4\n"))
			s.flush()
		}
		s.close()
		s.show.End()
		if got, err := os.ReadFile(file); err != nil || string(got) != "line 1\nlin\nline 4\nline 4\n" || s.totals.Healed != 1 {
			t.Errorf("the file holds %q; totals %+v\n%s", got, s.totals, stderr.String())
		}
	})
}

// TestLineFeedThatWaitsInMemoryIsNotGivenAgain: it could not be written when the torn line was to be
// ended first.
func TestLineFeedThatWaitsInMemoryIsNotGivenAgain(t *testing.T) {
	isolate.Process(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(file, []byte("tor"), 0o600); err != nil {
			t.Fatal(err)
		}
		var stderr strings.Builder
		s := spreadTo(t, file, holdfast.Buffered(holdfast.KiB), &stderr)
		s.splitter.each = s.take
		for i, limit := range []uint64{3, unix.RLIM_INFINITY} {
			if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: limit, Max: unix.RLIM_INFINITY}); err != nil {
				t.Fatal(err)
			}
			s.splitter.take(fmt.Appendf(nil, "line %d\n", i))
			s.flush()
		}
		s.close()
		s.show.End()
		if got, err := os.ReadFile(file); err != nil || string(got) != "tor\nline 1\n" || s.totals.Healed != 1 {
			t.Errorf("the file holds %q; totals %+v\n%s", got, s.totals, stderr.String())
		}
	})
}

// TestNothingIsAcknowledgedOnceTheRunStops, because what came last may be lost without a word of its own.
func TestNothingIsAcknowledgedOnceTheRunStops(t *testing.T) {
	var acks, stderr strings.Builder
	s := spreadTo(t, filepath.Join(t.TempDir(), "f"), holdfast.Durable(), &stderr)
	s.splitter.each, s.ack = s.take, &acks
	s.splitter.take([]byte("line 1\n"))
	s.flush()
	s.files.Close() // the next line fails, as would all that follow
	s.splitter.take([]byte("line 2\n"))
	s.flush()
	s.show.End()
	if acks.String() != "1\n" || s.stop == nil {
		t.Errorf("%q is acknowledged, and the run stops with %v", acks.String(), s.stop)
	}
}
