//go:build go1.25

package rotate

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// many is how many records of 8 goroutines are written in the full run.
func many(t *testing.T, syncs bool) int {
	n := 10_000
	if testing.Short() || isolate.RaceEnabled {
		n = 1000
	}
	if syncs {
		n /= 100
	}
	return n
}

// TestRecordsAreNotLostNorTwiceNorSplit also on real files, in the order of each goroutine, beside a compression.
func TestRecordsAreNotLostNorTwiceNorSplit(t *testing.T) {
	for _, p := range []holdfast.Policy{
		holdfast.Unbuffered(),
		holdfast.Buffered(4 * holdfast.KiB),
		holdfast.Periodic(20 * time.Millisecond),
		holdfast.Durable(),
		holdfast.EachDurable(),
	} {
		t.Run(p.String(), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "app.log")
			n := many(t, p.Sync.Waits())
			f, err := Open(path, Options{Policy: p, MaxSize: holdfast.Size(n * 20), Compress: true, OnError: func(e *Error) { t.Error(e) }})
			if err != nil {
				t.Fatal(err)
			}
			written := ledger{}
			var writers sync.WaitGroup
			for g := range 8 {
				written[g] = n
				writers.Go(func() {
					for i := range n {
						if k, err := f.Write(record(g, i)); err != nil || k != len(record(g, i)) {
							t.Errorf("record %d of %d: %d, %v", i, g, k, err)
							return
						}
					}
				})
			}
			for i := range 6 { // others' actions meanwhile
				switch i % 3 {
				case 0:
					err = f.Rotate()
				case 1: // logrotate, with a name that sorts among ours
					f.mu.Lock()
					name, at, failed := f.backupName(f.current.Load().file)
					f.last = at
					err = errors.Join(failed, os.Rename(path, filepath.Join(dir, name.String())))
					f.mu.Unlock()
					err = errors.Join(err, f.Reopen())
				case 2:
					err = f.Sync()
				}
				if err != nil {
					t.Error(err)
				}
			}
			writers.Wait()
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			s := f.Stats()
			if s.Rotations < 5 || s.Counts.Writes != int64(8*n) || s.Errors != 0 {
				t.Errorf("%+v", s)
			}
			if err := written.holds(logsIn(t, dir)); err != nil {
				t.Error(err)
			}
		})
	}
}
