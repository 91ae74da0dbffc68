//go:build go1.25

package rotate

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
)

// TestARecordOfTwoWritesIsNotSplit: loggers that hold a lock and write a record and then its line feed, while the log
// rotates by size, by time, and on demand.
func TestARecordOfTwoWritesIsNotSplit(t *testing.T) {
	for _, p := range []holdfast.Policy{holdfast.Unbuffered(), holdfast.Buffered(4 * holdfast.KiB), holdfast.Periodic(time.Second), holdfast.Durable()} {
		synctest.Test(t, func(t *testing.T) {
			d := newMemory(t)
			f := opened(t, d, Options{Policy: p, MaxSize: 2000, RotationInterval: time.Second, OnError: func(e *Error) { t.Error(e) }})
			logger := make(chan struct{}, 1) // a lock that fake time can wait for
			var group sync.WaitGroup
			for g := range 4 {
				group.Go(func() {
					for i := range 100 {
						logger <- struct{}{}
						for _, part := range []string{fmt.Sprintf("%d %d ", g, i), strings.Repeat("x", 40), "\n"} {
							if n, err := f.Write([]byte(part)); n != len(part) || err != nil {
								t.Error(n, err)
							}
							time.Sleep(time.Millisecond)
						}
						<-logger
					}
				})
			}
			for range 20 {
				time.Sleep(50*time.Millisecond + 333*time.Microsecond)
				if err := f.Rotate(); err != nil {
					t.Error(err)
				}
			}
			group.Wait()
			if err := f.Close(); err != nil || f.Stats().Rotations < 15 {
				t.Errorf("%v, %d rotations", err, f.Stats().Rotations)
			}
			lines := 0
			for name, data := range logs(d.ProcessCrash()) {
				for line := range bytes.Lines(data) {
					lines++
					if !bytes.HasSuffix(line, []byte(strings.Repeat("x", 40)+"\n")) || line[0] == 'x' {
						t.Errorf("%v: %s has the piece %q", p, name, line)
					}
				}
			}
			if lines != 400 {
				t.Errorf("%v: %d lines, want 400", p, lines)
			}
		})
	}
}

// TestALineThatNeverEndsIsDivided by its size and by time; with Records each Write is a record.
func TestALineThatNeverEndsIsDivided(t *testing.T) {
	sizes := func(o Options, records int, do func(*File)) (got []int) {
		synctest.Test(t, func(t *testing.T) {
			d := newMemory(t)
			o.OnError = func(e *Error) { t.Error(e) }
			f := opened(t, d, o)
			for range records {
				if _, err := f.Write(bytes.Repeat([]byte("x"), 1000)); err != nil {
					t.Fatal(err)
				}
			}
			if do != nil {
				do(f)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			files := logs(d.ProcessCrash())
			for _, name := range names(files) {
				got = append(got, len(files[name]))
			}
		})
		return got
	}
	check := func(got []int, want ...int) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("files of %v bytes, want %v", got, want)
		}
	}
	full := (longestLine + 10_000 + 999) / 1000 * 1000
	check(sizes(Options{MaxSize: 10_000}, 2000, nil), full, 2_000_000-full)
	check(sizes(Options{MaxSize: 10_000, Records: true}, 25, nil), 10_000, 10_000, 5000)
	rotate := func(wait time.Duration) func(*File) {
		return func(f *File) {
			if err := f.Rotate(); err != nil {
				t.Error(err)
			}
			time.Sleep(wait)
			synctest.Wait()
		}
	}
	check(sizes(Options{}, 5, rotate(lineWait-1)), 5000)
	check(sizes(Options{}, 5, rotate(lineWait)), 5000, 0)
	check(sizes(Options{Records: true}, 5, rotate(0)), 5000, 0)
}

// TestRecordsThatAreNoLinesAreNotHealed at Open.
func TestRecordsThatAreNoLinesAreNotHealed(t *testing.T) {
	for records, want := range map[bool]string{false: "half\nmore\n", true: "halfmore\n"} {
		synctest.Test(t, func(t *testing.T) {
			d := newMemory(t)
			if err := d.WriteFile("/log/app.log", []byte("half"), 0o644); err != nil {
				t.Fatal(err)
			}
			f := opened(t, d, Options{Records: records})
			if _, err := f.Write([]byte("more\n")); err != nil {
				t.Error(err)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			if got := logs(d.ProcessCrash())["app.log"]; string(got) != want {
				t.Errorf("Records %v: the log has %q, want %q", records, got, want)
			}
		})
	}
}
