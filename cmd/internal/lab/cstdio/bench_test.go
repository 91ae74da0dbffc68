package cstdio

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// benchBytes is how many bytes a trial reads or writes: as many as in the exercise
// that asked the question.
const benchBytes = 1 << 20

// BenchmarkBytes reports what a byte costs, one a call, opening and closing included:
// the median of b.N rounds. A round has a trial of each method, and begins with
// another one each time.
func BenchmarkBytes(b *testing.B) {
	needsC(b)
	path := filepath.Join(b.TempDir(), "file")
	b.Run("write", func(b *testing.B) {
		benchRounds(b, Method.Writes, func(s Setup) error { return writeFile(path, s, benchBytes) })
	})
	b.Run("read", func(b *testing.B) {
		if err := os.WriteFile(path, pattern(benchBytes), 0o666); err != nil {
			b.Fatal(err)
		}
		sum := PatternSum(benchBytes)
		benchRounds(b, Method.Reads, func(s Setup) error { return readFile(path, s, benchBytes, sum) })
	})
}

func benchRounds(b *testing.B, name func(Method) string, trial func(Setup) error) {
	took := map[Method][]time.Duration{}
	for round := 0; b.Loop(); round++ {
		for i := range methods {
			m := methods[(i+round)%len(methods)]
			started := time.Now()
			if err := trial(usual(m)); err != nil {
				b.Fatal(err)
			}
			took[m] = append(took[m], time.Since(started))
		}
	}
	for m, all := range took {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Nanoseconds())/benchBytes, name(m)+"-ns/byte")
	}
}

// readFile reads n bytes, which must have a sum.
func readFile(path string, s Setup, n int64, want Sum) error {
	f, err := Open(path, s)
	if err != nil {
		return err
	}
	got, err := f.Read(n)
	if err != nil {
		return err
	}
	if got != n || f.Sum() != want {
		return fmt.Errorf("read %d of %d bytes, sum %v", got, n, f.Sum())
	}
	return f.Close()
}
