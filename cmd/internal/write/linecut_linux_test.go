package write

import (
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

// TestNothingIsAcknowledgedOnceTheRunStops, because what came last may be lost without a word of its own.
func TestNothingIsAcknowledgedOnceTheRunStops(t *testing.T) {
	var acks, stderr strings.Builder
	s := spreadTo(t, filepath.Join(t.TempDir(), "f"), holdfast.Durable(), &stderr)
	s.ack = &acks
	s.splitter.take([]byte("line 1\n"))
	s.flush()
	s.set.Close() // the next line fails, as would all that follow
	s.splitter.take([]byte("line 2\n"))
	s.flush()
	s.show.End()
	if acks.String() != "1\n" || s.stop == nil {
		t.Errorf("%q is acknowledged, and the run stops with %v", acks.String(), s.stop)
	}
}
