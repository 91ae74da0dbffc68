package trial

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

// steadily lets one writer write to a target. takes is the time of each Write, and fill sets the dirty
// memory of a sample. It returns the samples and whether they became steady.
func steadily(t *testing.T, longest time.Duration, takes func(n int64) time.Duration, fill func(*result.Sample)) (result.Measurement, int64) {
	t.Helper()
	a := Append{RecordBytes: 1000, Writers: 1, Records: 100_000, Stride: 31, Steady: true, Longest: longest}
	c := a.newWorkers(t.Context(), &WorkDir{})
	defer c.dismiss()
	c.steady.memory = fill
	if err := c.write(&slowly{takes: takes}); err != nil {
		t.Fatal(err)
	}
	var m result.Measurement
	if err := c.record(&m); err != nil {
		t.Fatal(err)
	}
	return m, c.counts()[0]
}

func millisecond(int64) time.Duration { return time.Millisecond }

func TestSteadyEndsWhenTheThroughputIs(t *testing.T) {
	InFakeTime(t, func(t *testing.T) {
		m, written := steadily(t, 0, millisecond, func(*result.Sample) {})
		if !m.Steady || len(m.Samples) != 5 || written < 4990 || written > 5010 {
			t.Errorf("steady %v after %d samples, %d records", m.Steady, len(m.Samples), written)
		}
	})
	// The writes become slower and slower for ten seconds.
	InFakeTime(t, func(t *testing.T) {
		slower := func(n int64) time.Duration { return time.Millisecond + time.Duration(min(n, 2000))*5*time.Microsecond }
		m, _ := steadily(t, 0, slower, func(*result.Sample) {})
		if !m.Steady || len(m.Samples) < 12 {
			t.Errorf("steady %v after %d samples", m.Steady, len(m.Samples))
		}
	})
}

// TestMemoryThatFillsUpIsNotSteady: a page cache accepts bytes at a steady rate until it is full.
func TestMemoryThatFillsUpIsNotSteady(t *testing.T) {
	InFakeTime(t, func(t *testing.T) {
		dirty := int64(0)
		m, _ := steadily(t, 0, millisecond, func(s *result.Sample) {
			if dirty < 20_000_000 {
				dirty += s.Size
			}
			s.Dirty = dirty
		})
		if n := len(m.Samples); !m.Steady || n < 23 || n > 26 {
			t.Errorf("steady %v after %d samples, want some five after the 20 that fill the memory", m.Steady, n)
		}
	})
}

func TestSteadyEndsAtTheLongest(t *testing.T) {
	InFakeTime(t, func(t *testing.T) {
		m, written := steadily(t, 9*time.Second, millisecond, func(s *result.Sample) { s.Dirty = int64(s.At) })
		if m.Steady || len(m.Samples) != 9 || written < 8990 || written > 9010 {
			t.Errorf("steady %v after %d samples, %d records", m.Steady, len(m.Samples), written)
		}
	})
}

func TestSteadyEndsWithTheLastRecord(t *testing.T) {
	InFakeTime(t, func(t *testing.T) {
		m, written := steadily(t, 0, millisecond, func(s *result.Sample) { s.Dirty = int64(s.At) })
		if m.Steady || written != 100_000 || len(m.Samples) != 99 && len(m.Samples) != 100 {
			t.Errorf("steady %v after %d samples, %d records", m.Steady, len(m.Samples), written)
		}
	})
}
