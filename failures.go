package holdfast

import (
	"cmp"
	"time"

	"github.com/holdfast-go/holdfast/internal/notify"
	"github.com/holdfast-go/holdfast/stats"
)

// OnError has report called once for each failure, also for those that no call returns because
// none is made any more. The error is what the call would return: a [WriteError], a [SyncError],
// that of a panic, or of the file's Close. Failed writes are one failure until a write works.
//
// The calls are made in a goroutine of their own, one at a time, without a lock. So report may
// call the Writer, Close too. Close does not wait for it. Call OnError before the first Write.
func (w *Writer) OnError(report func(error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failures == nil {
		w.failures = new(notify.Queue[error])
	}
	w.failures.To(report)
}

// Err returns why the Writer accepts nothing at present, or nil. That is a failed write, which
// each call tries again, or a failed sync or a panic, which are final. After Close it is what
// Close returned. It waits for nothing, and the next call reports the failure all the same.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return w.closeErr
	}
	return cmp.Or(w.final, w.failing)
}

// reportLocked counts a failure, and has it reported.
func (w *Writer) reportLocked(err error) {
	if err != nil {
		w.countsLocked().Errors++
		if w.failures != nil {
			w.failures.Add(err)
		}
	}
}

// counts are those that a file of one flush has no use of.
type counts struct {
	Waits, Errors int64
	Flush, Sync   stats.Sparse
}

func (w *Writer) countsLocked() *counts {
	if w.counts == nil {
		w.counts = new(counts)
		if w.flushes > 0 {
			w.counts.Flush.Add(w.firstFlush)
		}
	}
	return w.counts
}

// Stats returns the counts so far, and the bytes at risk just now. Bytes in Lanes are among
// these. It may be called at any time and waits for nothing.
func (w *Writer) Stats() stats.Counts {
	w.mu.Lock()
	lanes := w.lanes
	w.mu.Unlock()
	var held int64 // bytes that wait to be merged
	for _, l := range lanes {
		l.mu.Lock()
		held += int64(l.n.Load() - l.taken)
		l.mu.Unlock()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.countsLocked()
	s := stats.Counts{Writes: w.writes, Flushes: w.flushes, SystemCalls: w.systemCalls, Waits: c.Waits, Errors: c.Errors}
	s.Flush, s.Sync = c.Flush.Histogram(), c.Sync.Histogram()
	s.Syncs, s.LongestSync = s.Sync.Count(), s.Sync.Max()
	s.NotFlushed = held + w.writtenLocked() - w.flushed
	s.NotDurable = held + w.writtenLocked() - w.durable
	if s.NotDurable > 0 && !w.closed {
		s.Oldest = time.Since(w.age.Oldest())
	}
	return s
}
