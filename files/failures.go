package files

import (
	"cmp"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/errjoin"
)

// OnError has report called once for each failure of what was appended, also for those that no
// call returns because none is made any more. Failed writes to a path are one failure until one
// works; what Close could not write is another. What a [Set.WriteFile] or [Set.WriteAll] fails
// at is in its results alone.
//
// The calls are made in a goroutine of their own, one at a time, without a lock. So report may
// call the Set, Close too. Close does not wait for it. Call OnError before the first Append.
func (f *Set) OnError(report func(*Error)) { f.failures.To(report) }

// Err returns why paths accept nothing at present, joined, or nil. These are failed writes,
// which each call tries again, and failed syncs, which are final for their path. It waits for
// no disk, and the next calls report the failures all the same.
func (f *Set) Err() error {
	t := &f.streams
	t.mu.Lock()
	defer t.mu.Unlock()
	var failed []*stream
	for _, s := range t.paths {
		if s.final != nil || s.failed != nil {
			failed = append(failed, s)
		}
	}
	slices.SortFunc(failed, func(a, b *stream) int { return cmp.Compare(a.name.path, b.name.path) })
	var errs []error
	for _, s := range failed {
		errs = append(errs, cmp.Or(s.final, s.failed))
	}
	return errjoin.Join(errs...)
}

// reportLocked counts a failure, and has it reported.
func (t *streams) reportLocked(e *Error, atRisk int64) {
	told := *e
	told.AtRisk = atRisk
	t.counts.Errors++
	t.files.failures.Add(&told)
}

// flushedLocked counts a write of a stream's bytes. The end of a call's context is no failure.
func (t *streams) flushedLocked(s *stream, took time.Duration, fail *Error) {
	t.counts.Flushes++
	t.counts.Flush.Add(took)
	switch {
	case fail == nil:
		s.failing = false
	case fail.Op != string(opWait) && !s.failing:
		s.failing = true
		t.reportLocked(fail, s.waitsLocked())
	}
}

// endLocked makes a failed sync final for a stream.
func (t *streams) endLocked(s *stream, err error) {
	e := syncFailed(s, err)
	s.final = e
	t.reportLocked(e, s.accepted-s.durable)
}
