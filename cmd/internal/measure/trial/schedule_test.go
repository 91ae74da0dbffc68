package trial

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/probe"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/stats"
)

// InFakeTime is synctest.Test, and skips the test where trials are timed by a clock that is not package time's.
func InFakeTime(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("trials are timed by the counter of Windows, which goes on in fake time")
	}
	synctest.Test(t, f)
}

// A slowly is a Target. Its n-th Write, counted from 1, takes the time takes(n).
type slowly struct {
	takes func(n int64) time.Duration
	n     int64
	size  atomic.Int64
}

func (s *slowly) Write(record []byte) (int, error) {
	s.n++
	s.size.Add(int64(len(record)))
	<-time.After(s.takes(s.n)) // by the clock of synctest
	return len(record), nil
}
func (s *slowly) Flush() error        { return nil }
func (s *slowly) Sync() error         { return nil }
func (s *slowly) Close() error        { return nil }
func (s *slowly) Written() int64      { return s.size.Load() }
func (s *slowly) Stats() stats.Counts { return stats.Counts{} }

// drive runs the workers of a in fake time, writing to w, and returns their measurement.
func drive(t *testing.T, a Append, w Target) (result.Measurement, *workers) {
	t.Helper()
	var m result.Measurement
	c := a.newWorkers(t.Context(), &WorkDir{})
	defer c.dismiss()
	if err := c.write(w); err != nil {
		t.Fatal(err)
	}
	if err := c.record(&m); err != nil {
		t.Fatal(err)
	}
	return m, c
}

// TestStallIsNotOmitted: a Write that stalls for a second delays all records that are due meanwhile. A
// closed loop would see one late Write.
func TestStallIsNotOmitted(t *testing.T) {
	stall := func(n int64) time.Duration {
		if n == 100 {
			return time.Second
		}
		return 0
	}
	InFakeTime(t, func(t *testing.T) {
		m, c := drive(t, Append{RecordBytes: 16, Writers: 1, Records: 1000, Stride: 1, Rate: 100}, &slowly{takes: stall})
		late := c.all[0].response.TotalCount() - within(c.all[0], 50*time.Millisecond)
		// Records are due 10 ms apart; the ones of the first 950 ms are more than 50 ms late.
		if late != 95 && late != 96 {
			t.Errorf("%d records came more than 50 ms after they were due, want 95", late)
		}
		if m.Latency.Max < time.Second || m.Service.Max < time.Second || m.Latency.P99 < 800*time.Millisecond {
			t.Errorf("response max %v p99 %v, service max %v", m.Latency.Max, m.Latency.P99, m.Service.Max)
		}
		if m.Service.P99 > time.Millisecond || m.Service.Count != 1000 || m.Latency.Count != 1000 || m.Unserved != 0 {
			t.Errorf("service p99 %v of %d, response of %d, %d unserved", m.Service.P99, m.Service.Count, m.Latency.Count, m.Unserved)
		}
	})
	InFakeTime(t, func(t *testing.T) {
		m, _ := drive(t, Append{RecordBytes: 16, Writers: 1, Records: 1000, Stride: 1}, &slowly{takes: stall})
		if m.Latency.P99 > time.Millisecond || m.Latency.Max < time.Second || m.Service != nil {
			t.Errorf("closed loop: p99 %v, max %v, service %v", m.Latency.P99, m.Latency.Max, m.Service)
		}
	})
}

// TestAWriterThatWakesLateWritesOne starts after the patience is over: a trial without records would be
// no result.
func TestAWriterThatWakesLateWritesOne(t *testing.T) {
	InFakeTime(t, func(t *testing.T) {
		c := Append{RecordBytes: 16, Writers: 1, Records: 20, Stride: 1, Rate: 1000}.newWorkers(t.Context(), &WorkDir{})
		defer c.dismiss()
		h := c.all[0]
		at := probe.Now()
		<-time.After(time.Second)
		if err := h.keepSchedule(begin{&slowly{takes: func(int64) time.Duration { return 0 }}, at}, c); err != nil || h.written != 1 || h.unserved != 19 {
			t.Errorf("%d records written, %d unserved, %v", h.written, h.unserved, err)
		}
	})
}

// TestReplayLeavesOutTheTimerAlone: the lateness of the system's timer is not the policy's, but a stall
// of the policy counts for every record that was due in it.
func TestReplayLeavesOutTheTimerAlone(t *testing.T) {
	late := func(t *testing.T, takes time.Duration) *worker {
		c := Append{RecordBytes: 16, Writers: 1, Records: 1000, Stride: 1, Rate: 1000}.newWorkers(t.Context(), &WorkDir{})
		defer c.dismiss()
		at := probe.Now()
		<-time.After(100 * time.Millisecond)
		if err := c.all[0].keepSchedule(begin{&slowly{takes: func(int64) time.Duration { return takes }}, at}, c); err != nil {
			t.Fatal(err)
		}
		return c.all[0]
	}
	InFakeTime(t, func(t *testing.T) {
		if h := late(t, 0); h.response.Max() < int64(99*time.Millisecond) || h.replayed.Max() > 100 || h.replayed.TotalCount() != 1000 {
			t.Errorf("response up to %v, replayed up to %v, %d records", time.Duration(h.response.Max()), time.Duration(h.replayed.Max()), h.replayed.TotalCount())
		}
	})
	InFakeTime(t, func(t *testing.T) {
		if h := late(t, 500*time.Microsecond); h.replayed.Max() > int64(510*time.Microsecond) || h.replayed.Min() < int64(495*time.Microsecond) {
			t.Errorf("replayed from %v to %v", time.Duration(h.replayed.Min()), time.Duration(h.replayed.Max()))
		}
	})
	InFakeTime(t, func(t *testing.T) {
		m, _ := drive(t, Append{RecordBytes: 16, Writers: 1, Records: 1000, Stride: 1, Rate: 100}, &slowly{takes: func(n int64) time.Duration {
			if n == 100 {
				return time.Second
			}
			return 0
		}})
		if m.Replayed.Max < time.Second || m.Replayed.P99 < 800*time.Millisecond || m.Behind != 0 {
			t.Errorf("max %v, p99 %v, %v behind", m.Replayed.Max, m.Replayed.P99, m.Behind)
		}
	})
}

// TestBehindIsWhatIsNeverCaughtUp: if each Write takes a tenth longer than the rate allows, the queue
// grows. If it takes half of that time, with one stall in the middle, the writer catches up.
func TestBehindIsWhatIsNeverCaughtUp(t *testing.T) {
	takes := func(each time.Duration, writers int) (m result.Measurement) {
		InFakeTime(t, func(t *testing.T) {
			m, _ = drive(t, Append{RecordBytes: 16, Writers: writers, Records: 1000, Stride: 1, Rate: 1000}, &slowly{takes: func(n int64) time.Duration {
				if n == 300 {
					return 50 * time.Millisecond
				}
				return each
			}})
		})
		return m
	}
	if m := takes(1100*time.Microsecond, 1); m.Behind < 75*time.Millisecond || m.Behind > 150*time.Millisecond || m.Unserved != 0 {
		t.Errorf("too slow: %v behind, %d unserved", m.Behind, m.Unserved)
	}
	if m := takes(500*time.Microsecond, 1); m.Behind != 0 {
		t.Errorf("fast enough: %v behind", m.Behind)
	}
	if m := takes(10*time.Millisecond, 1); m.Behind < time.Second || m.Unserved == 0 {
		t.Errorf("far too slow: %v behind, %d unserved", m.Behind, m.Unserved)
	}
}

func within(h *worker, d time.Duration) (n int64) {
	for _, bar := range h.response.Distribution() {
		if bar.To <= int64(d) {
			n += bar.Count
		}
	}
	return n
}

// TestRateIsKept: the records of all writers together come at the rate, in equal steps.
func TestRateIsKept(t *testing.T) {
	for _, writers := range []int{1, 7} {
		InFakeTime(t, func(t *testing.T) {
			begun := time.Now()
			m, c := drive(t, Append{RecordBytes: 16, Writers: writers, Records: 7000, Stride: 1, Rate: 1000}, &pulse{t: t, begun: begun, step: time.Millisecond})
			took := time.Since(begun)
			if took < 6999*time.Millisecond || took > 7*time.Second {
				t.Errorf("%d writers: 7000 records at 1000 a second took %v", writers, took)
			}
			if m.Latency.Max > 100 || c.counts()[0] != int64(7000/writers) {
				t.Errorf("%d writers: response up to %v, %v records", writers, m.Latency.Max, c.counts())
			}
		})
	}
}

// A pulse checks that each step has one Write.
type pulse struct {
	slowly
	t     *testing.T
	begun time.Time
	step  time.Duration
}

func (p *pulse) Write(record []byte) (int, error) {
	if at := time.Since(p.begun); at%p.step != 0 {
		p.t.Errorf("a record came at %v", at)
	}
	return len(record), nil
}

// TestWhatIsNotServedCountsAsLate: a target that takes ten times as long as the
// rate allows is given up, and the records that were due then count with their wait.
func TestWhatIsNotServedCountsAsLate(t *testing.T) {
	InFakeTime(t, func(t *testing.T) {
		w := &slowly{takes: func(int64) time.Duration { return 100 * time.Millisecond }}
		begun := time.Now()
		m, c := drive(t, Append{RecordBytes: 16, Writers: 1, Records: 1000, Stride: 1, Rate: 100}, w)
		took := time.Since(begun)
		if want := Patience * 10 * time.Second; took < want || took > want+time.Second {
			t.Errorf("given up after %v, want %v", took, want)
		}
		if served := c.counts()[0]; served+m.Unserved != 1000 || m.Unserved < 690 || m.Unserved > 701 {
			t.Errorf("%d served, %d not", served, m.Unserved)
		}
		if m.Latency.Count != 1000 || m.Latency.P50 < 20*time.Second {
			t.Errorf("response of %d records, p50 %v", m.Latency.Count, m.Latency.P50)
		}
	})
}

// TestCancelDoesNotWaitForWhatIsDue: the next record is due only in days.
func TestCancelDoesNotWaitForWhatIsDue(t *testing.T) {
	InFakeTime(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		a := Append{RecordBytes: 16, Writers: 4, Records: 4000, Stride: 1, Rate: 0.001}
		c := a.newWorkers(ctx, &WorkDir{})
		defer c.dismiss()
		time.AfterFunc(time.Second, cancel)
		begun := time.Now()
		if err := c.write(&slowly{takes: func(int64) time.Duration { return 0 }}); !errors.Is(err, context.Canceled) {
			t.Errorf("write: %v", err)
		}
		if took := time.Since(begun); took != time.Second {
			t.Errorf("ended %v after its start, and was cancelled after 1s", took)
		}
	})
}
