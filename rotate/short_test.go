//go:build go1.25

package rotate

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
)

// TestLimitsHoldForShortLives: a job that runs every hour opens the log, writes, and closes it at once.
func TestLimitsHoldForShortLives(t *testing.T) {
	check := func(name string, o Options, want int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			d := newMemory(t)
			o.MaxSize = 50
			o.OnError = func(e *Error) { t.Error(e) }
			for run := range 30 {
				f := opened(t, d, o)
				for range 4 {
					if _, err := f.Write(bytes.Repeat([]byte("a record\n"), 3)); err != nil {
						t.Fatal(err)
					}
				}
				if err := f.Close(); err != nil {
					t.Fatal(err)
				}
				if got := len(backupsOf(d)); got > want {
					t.Fatalf("%s: %d backups after run %d, want %d", name, got, run, want)
				}
				time.Sleep(time.Hour)
			}
			if got := len(backupsOf(d)); got != want {
				t.Errorf("%s: %d backups at last, want %d", name, got, want)
			}
		})
	}
	check("MaxBackups", Options{MaxBackups: 3}, 3)
	check("MaxBackups and Compress", Options{MaxBackups: 3, Compress: true}, 3)
	check("MaxTotal", Options{MaxTotal: 54 * 3}, 3)
	check("MaxAge", Options{MaxAge: 90 * time.Minute, Policy: holdfast.Durable()}, 4) // of two runs
}
