package result_test

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// TestTrialThatDoesNotFitLeavesWholeLines writes a trial to a file whose size limit cuts its line, at
// every byte. The part that was written is removed again, and the next trial is read as usual.
func TestTrialThatDoesNotFitLeavesWholeLines(t *testing.T) {
	isolate.Process(t, func(t *testing.T) {
		signal.Ignore(unix.SIGXFSZ)
		run := planted(t)
		limit := func(bytes uint64) {
			t.Helper()
			if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}); err != nil {
				t.Fatal(err)
			}
		}
		for _, fits := range []uint64{1, 100, 500} {
			path := filepath.Join(t.TempDir(), "results.jsonl")
			f, err := result.Create(path, run.Header)
			if err != nil {
				t.Fatal(err)
			}
			before, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			limit(uint64(before.Size()) + fits)
			failed := f.Trial(*run.Trials[0])
			after, statErr := os.Stat(path)
			limit(unix.RLIM_INFINITY)
			if !errors.Is(failed, unix.EFBIG) || statErr != nil {
				t.Fatalf("a trial for which only %d bytes fit: %v, %v", fits, failed, statErr)
			}
			if after.Size() != before.Size() {
				t.Errorf("%d bytes of a line that failed are left", after.Size()-before.Size())
			}
			if err := errors.Join(f.Trial(*run.Trials[1]), f.Close(*run.End)); err != nil {
				t.Fatal(err)
			}
			r, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			got, err := result.Read(r)
			r.Close()
			if err != nil || got.Torn || len(got.Trials) != 1 || got.Trials[0].Cell != run.Trials[1].Cell || got.End == nil {
				t.Errorf("after a trial that failed: %d trials, torn %v, %v", len(got.Trials), got.Torn, err)
			}
		}
	})
}
