package holdfast

import (
	"cmp"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/errorqueue"
	"github.com/holdfast-go/holdfast/internal/slow"
	"github.com/holdfast-go/holdfast/stats"
)

// reports holds the failures and the counts of a Writer. The Writer's lock guards it.
type reports struct {
	unreported error                    // a failure in the background that no call has returned
	failing    error                    // the last failed write, until a write succeeds
	final      error                    // a failed sync, or a panic
	failures   *errorqueue.Queue[error] // see OnError
	slow       *slow.Watch[SlowSync]    // see OnSlowSync

	flushes, systemCalls, waits, errors int64
	flushTimes, syncTimes               stats.Sparse
}

// OnError registers report. It is called once for each failure, even if no later call of the
// Writer could return it. The error is a [WriteError], a [SyncError], an [ErrPanicked], or the
// error of the file's Close. Failed writes in a row are one failure.
//
// A goroutine of its own calls report, one failure at a time, without a lock: report may call
// any method of the Writer, and Close does not wait for it. Call OnError before the first Write.
func (w *Writer) OnError(report func(error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reports.failures == nil {
		w.reports.failures = new(errorqueue.Queue[error])
	}
	w.reports.failures.To(report)
}

// A SlowSync is a sync that has not ended a threshold after its beginning.
type SlowSync struct {
	Path  string    // of the file, of a wal's directory, or "" for many files of a files.Set together
	Since time.Time // the beginning
}

// OnSlowSync registers report. It is called once for each sync that runs for longer than a threshold, while it
// runs: a disk that hangs is heard of before the sync ends. The call is made as OnError's are. Call
// OnSlowSync before the first Write.
func (w *Writer) OnSlowSync(after time.Duration, report func(SlowSync)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reports.slow == nil {
		w.reports.slow = new(slow.Watch[SlowSync])
	}
	w.reports.slow.To(after, report)
}

// Err returns the failure that still holds, or nil: a failed write until a write succeeds, or a failed
// sync or a panic, which are final. Each call writes again the bytes that memory holds; a large Write is
// for its caller to repeat. After Close, Err returns Close's error. It waits for nothing, and does not
// keep the next call from returning the failure.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return w.closeErr
	}
	return cmp.Or(w.reports.final, w.reports.failing)
}

func (w *Writer) refusal() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refusalLocked()
}

// refusalLocked returns the error of a call that may not begin, or nil. A background
// failure that no call has returned is returned here, once.
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

// endedLocked returns the error of a call that comes after the last use of the file.
func (w *Writer) endedLocked() error {
	return cmp.Or(w.reports.final, ErrClosed)
}

// noteLocked keeps a background failure for the next call, unless a call has returned it
// or its like, or one is kept already. A failed sync needs no note: every call returns it.
func (w *Writer) noteLocked(err error) {
	if failed, ok := err.(*WriteError); ok && !failed.reported && w.reports.unreported == nil {
		w.reports.unreported = err
		w.openLocked()
	}
}

// returned marks err as reported when a call returns it from a batch that other calls share:
// the next call need not return it too.
func (w *Writer) returned(err error) error {
	if failed, ok := err.(*WriteError); ok {
		w.mu.Lock()
		defer w.mu.Unlock()
		failed.reported = true
		if w.reports.unreported == err {
			w.reports.unreported = nil
			w.openLocked()
		}
	}
	return err
}

func (w *Writer) writeErrorLocked(err error, again bool) error {
	e := &WriteError{Path: w.target.path, Flushed: w.flush.flushed, Durable: w.sync.durable, AtRisk: w.writtenLocked() - w.flush.flushed,
		Err: err, reported: again, lost: w.isClosing}
	if w.reports.failing == nil {
		w.reportLocked(e)
	}
	w.reports.failing = e
	return e
}

// reportLocked counts a failure and queues it for OnError.
func (w *Writer) reportLocked(err error) {
	if err != nil {
		w.reports.errors++
		if w.reports.failures != nil {
			w.reports.failures.Add(err)
		}
	}
}

// Stats returns the counts since New, and the bytes at risk now. It may be called at any time and waits for nothing.
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
