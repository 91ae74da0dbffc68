package holdfast

import (
	"cmp"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/errorqueue"
	"github.com/holdfast-go/holdfast/stats"
)

// reports are what a Writer tells: failures, and counts. The Writer's lock guards them.
type reports struct {
	unreported error                // what failed in the background and no call has returned
	failing    error                // the last write's, until one works
	final      error                // a failed sync, or a panic
	failures   *errorqueue.Queue[error] // see OnError

	flushes, systemCalls, waits, errors int64
	flushTimes, syncTimes               stats.Sparse
}

// OnError has report called once for each failure, also for those that no call returns because
// none is made any more. The error is what the call would return: a [WriteError], a [SyncError],
// that of a panic, or of the file's Close. Failed writes are one failure until a write works.
//
// The calls are made in a goroutine of their own, one at a time, without a lock. So report may
// call the Writer, Close too. Close does not wait for it. Call OnError before the first Write.
func (w *Writer) OnError(report func(error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reports.failures == nil {
		w.reports.failures = new(errorqueue.Queue[error])
	}
	w.reports.failures.To(report)
}

// Err returns the last failure that is not over, or nil: a failed write, until one works (each call tries what memory
// holds again; a large Write is its caller's to try again), or a failed sync or a panic, which are final. After Close it is what
// Close returned. It waits for nothing, and the next call reports the failure all the same.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return w.closeErr
	}
	return cmp.Or(w.reports.final, w.reports.failing)
}

// refusal is refusalLocked for who has not the lock.
func (w *Writer) refusal() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refusalLocked()
}

// refusalLocked returns why no call may go on, and reports a failure of the
// background for the first and only time.
func (w *Writer) refusalLocked() error {
	r := &w.reports
	switch err := r.unreported; {
	case w.target.file == nil:
		return errNotMade
	case w.isClosing:
		return ErrClosed
	case err != nil:
		r.unreported = nil
		w.openLocked()
		if r.final != nil {
			err = errors.Join(err, r.final)
		}
		return err
	}
	return r.final
}

// endedLocked returns why nothing may touch the file any more.
func (w *Writer) endedLocked() error {
	return cmp.Or(w.reports.final, ErrClosed)
}

// noteLocked keeps what failed in the background for the next call. If a failure repeats
// the one before, a call has returned it, or it is kept already. Every call returns a
// failed sync.
func (w *Writer) noteLocked(err error) {
	if failed, ok := err.(*WriteError); ok && !failed.told && w.reports.unreported == nil {
		w.reports.unreported = err
		w.openLocked()
	}
}

// returned is called with what a call returns of a batch that it shares with others: the next call need not return it too.
func (w *Writer) returned(err error) error {
	if failed, ok := err.(*WriteError); ok {
		w.mu.Lock()
		defer w.mu.Unlock()
		failed.told = true
		if w.reports.unreported == err {
			w.reports.unreported = nil
			w.openLocked()
		}
	}
	return err
}

func (w *Writer) writeErrorLocked(err error, again bool) error {
	e := &WriteError{Path: w.target.path, Flushed: w.flush.flushed, Durable: w.sync.durable, AtRisk: w.writtenLocked() - w.flush.flushed,
		Err: err, told: again, lost: w.isClosing}
	if w.reports.failing == nil {
		w.reportLocked(e)
	}
	w.reports.failing = e
	return e
}

// reportLocked counts a failure, and has it reported.
func (w *Writer) reportLocked(err error) {
	if err != nil {
		w.reports.errors++
		if w.reports.failures != nil {
			w.reports.failures.Add(err)
		}
	}
}

// Stats returns the counts so far, and the bytes at risk just now. It may be called at any time and waits for nothing.
func (w *Writer) Stats() stats.Counts {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := &w.reports
	s := stats.Counts{Writes: w.fill.writes, Flushes: r.flushes, SystemCalls: r.systemCalls, Waits: r.waits, Errors: r.errors}
	s.Flush, s.Sync = r.flushTimes.Histogram(), r.syncTimes.Histogram()
	s.Syncs, s.LongestSync = s.Sync.Count(), s.Sync.Max()
	s.NotFlushed = w.writtenLocked() - w.flush.flushed
	s.NotDurable = w.writtenLocked() - w.sync.durable
	if s.NotDurable > 0 && !w.closed {
		s.Oldest = time.Since(w.sync.age.Oldest())
	}
	return s
}
