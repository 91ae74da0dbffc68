package holdfast

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/commit"
	"github.com/holdfast-go/holdfast/internal/deadline"
	"github.com/holdfast-go/holdfast/internal/oldest"
)

// A syncer holds the durable offset and the group of calls that wait for a later one. Only the leader of a
// batch syncs, so there is one sync at a time. The Writer's lock guards it.
type syncer struct {
	durable     int64
	dirUnsynced bool                 // the directory entry of a file that OpenFile opened is not durable yet
	group       *commit.Group[int64] // made for the first sync; the work of a batch is the offset that it must cover
	leading     bool                 // a batch is at work
	byBytes     bool                 // a goroutine makes the sync that is due by bytes
	timer       deadline.Timer
	age         oldest.Clock
}

// covers reports whether the bytes up to end, and the file's directory entry, are durable.
func (s *syncer) covers(end int64) bool { return s.durable >= end && !s.dirUnsynced }

// hurry ends a leader's wait for more calls to join its batch.
func (s *syncer) hurry() {
	if s.group != nil {
		s.group.Hurry()
	}
}

// await waits for the goroutines that lead for a WaitDurable. It is called without the lock.
func (s *syncer) await() {
	if s.group != nil {
		s.group.Wait()
	}
}

// Sync makes all bytes accepted before the call durable. On nil, Durable is at least the value of
// Written at the call. It works under every policy, and calls made at the same time share one sync.
func (w *Writer) Sync() error {
	w.mu.Lock()
	if err := w.refusalLocked(); err != nil {
		w.mu.Unlock()
		return err
	}
	return w.returned(w.syncTo(context.Background(), w.writtenLocked()))
}

// WaitDurable waits until Durable ≥ end, under every policy; calls made at the same
// time share one sync. If ctx ends first, it returns the context's cause at once, and
// the bytes may become durable or not. An end beyond Written is an error. A call made
// after Close has begun waits for Close's sync; if end is durable, it returns nil.
func (w *Writer) WaitDurable(ctx context.Context, end int64) error {
	w.mu.Lock()
	if w.sync.durable >= end && w.target.file != nil {
		w.mu.Unlock()
		return nil
	}
	if err := w.waitRefusalLocked(end); err != nil {
		w.mu.Unlock()
		return err
	}
	return w.returned(w.syncTo(ctx, end))
}

// waitRefusalLocked returns the error of a WaitDurable that cannot wait for end, or nil.
func (w *Writer) waitRefusalLocked(end int64) error {
	switch {
	case end > w.writtenLocked() && w.isClosing:
		return ErrClosed
	case end > w.writtenLocked():
		return fmt.Errorf("holdfast: wait for byte %d, but only %d are written; use an end that Enqueue returned", end, w.writtenLocked())
	case w.isClosing:
		return nil
	}
	return w.refusalLocked()
}

// syncTo returns when the bytes up to end are durable. Its caller leads a batch or joins one. It is called with
// the lock and returns without it. The caller may hold the turn of large Writes, and nothing else that another
// goroutine waits for.
func (w *Writer) syncTo(ctx context.Context, end int64) error {
	var err error
	switch {
	case w.sync.covers(end):
	case w.reports.final != nil || w.sealed:
		err = w.endedLocked()
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	default:
		return w.join(ctx, end)
	}
	w.mu.Unlock()
	return err
}

func (w *Writer) join(ctx context.Context, end int64) error {
	g := w.sync.group
	if g == nil {
		g = new(commit.Group[int64])
		g.Init(&w.mu, w.lead, w.noteLocked)
		w.sync.group = g
	}
	b := g.Join()
	b.Work = max(b.Work, end)
	if w.policy.Sync.Mode == SyncPeriodic || w.isClosing { // the policy has promised when it syncs
		g.Hurry()
	}
	err := g.Do(ctx, b)
	if err == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.sync.covers(end):
		w.noteLocked(err)
		return nil
	case w.reports.final != nil:
		return w.reports.final
	}
	return err
}

// syncToLocked is syncTo that returns with the lock.
func (w *Writer) syncToLocked(end int64) error {
	defer w.mu.Lock()
	return w.syncTo(context.Background(), end)
}

// writeDurable is Write under sync=group and sync=each.
func (w *Writer) writeDurable(p []byte) (n int, err error) {
	if w.policy.Sync.Mode == SyncEach {
		return w.writeEach(p)
	}
	w.mu.Lock()
	if at := w.fill.pos; len(p) < w.fill.limit-at {
		n = copy(w.fill.buf[at:], p)
		w.fill.pos = at + n
		w.fill.writes++
		return n, w.returned(w.syncTo(context.Background(), w.writtenLocked()))
	}
	n, end, err := w.accept(p)
	if err != nil || n == 0 {
		return n, err
	}
	w.mu.Lock()
	return n, w.returned(w.syncTo(context.Background(), end))
}

// writeEach lets no other Write in from its write to the end of its sync.
func (w *Writer) writeEach(p []byte) (n int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(p) == 0 {
		return 0, w.refusalLocked()
	}
	if err := w.enterLocked(); err != nil {
		return 0, err
	}
	defer w.leaveLocked()
	n, end, err := w.writeAloneLocked(p)
	if err != nil {
		return n, err
	}
	return n, w.syncToLocked(end)
}

// lead makes the bytes up to end durable, for a batch. It waits for no goroutine except one that writes to the file. A
// sync that is due by bytes comes before the flush of newer bytes. If a flush fails, the bytes flushed before it are
// synced all the same: other calls of the batch may need no more.
func (w *Writer) lead(end *int64) (err error) {
	w.sync.leading = true
	w.sync.age.Turn(w.writtenLocked())
	if *end == w.writtenLocked() {
		w.sync.timer.Set(false) // the next byte starts it
	}
	w.openLocked()
	defer func() { // also if the file panics
		w.sync.leading = false
		if w.reports.final != nil {
			w.wakeLocked()
		}
		w.flush.idle.Broadcast()
		w.settleLocked()
	}()
	for err == nil && !w.sync.covers(*end) {
		switch {
		case w.reports.final != nil || w.sealed:
			err = w.endedLocked()
		case w.flush.flushed >= *end || w.due.SyncNow(w.flush.flushed-w.sync.durable):
			err = w.syncFileLocked()
		default:
			err = w.syncBehindLocked(w.flushStepLocked(), *end)
		}
	}
	return err
}

// syncBehindLocked syncs the flushed bytes after a flush failed. If they reach end, the batch succeeds and the next
// call returns the failure.
func (w *Writer) syncBehindLocked(failed error, end int64) error {
	if failed == nil || w.sealed || w.sync.covers(w.flush.flushed) {
		return failed
	}
	if err := w.syncFileLocked(); err != nil {
		return err
	}
	if w.sync.covers(end) {
		w.noteLocked(failed)
		return nil
	}
	return failed
}

// syncFileLocked syncs the file, and releases the lock meanwhile. On nil, all bytes flushed
// before the call are durable. Only a leader calls it.
func (w *Writer) syncFileLocked() error {
	covers := w.flush.flushed
	start := time.Now()
	calls, err := 0, error(nil)
	w.callFileLocked("Sync", func() {
		defer w.reports.slow.Begin(SlowSync{w.target.path, start})()
		calls, err = w.target.sync()
	})
	took := time.Since(start)
	w.sync.group.Took(took)
	w.reports.syncTimes.Add(took)
	w.reports.systemCalls += int64(calls)
	if err != nil {
		w.reports.final = &SyncError{Path: w.target.path, Durable: w.sync.durable, AtRisk: w.writtenLocked() - w.sync.durable, Err: err}
		w.reportLocked(w.reports.final)
		return w.reports.final
	}
	w.sync.durable, w.sync.dirUnsynced = covers, false
	w.sync.age.Durable(covers)
	return nil
}

// dirtyLocked reports whether a flush must wait for a sync, because Due.Dirty bytes in the kernel are not durable. The
// goroutine that needs the flush makes that sync, or waits for it, before it begins the flush. It may hold the turn of
// large Writes, and nothing else that the sync could wait for.
func (w *Writer) dirtyLocked() bool {
	return w.due.Dirty > 0 && w.flush.flushed-w.sync.durable >= int64(w.due.Dirty) && !w.isClosing && w.reports.final == nil
}

// syncDue is called by the clock of syncs. Bytes accepted while it waits for a sync in flight are due later: its own
// sync need not wait for their flush.
func (w *Writer) syncDue() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sync.timer.Set(false)
	if w.isClosing {
		return
	}
	w.background.Add(1)
	defer w.background.Done()
	end := w.writtenLocked()
	w.settleLocked()
	w.noteLocked(w.syncToLocked(end))
	w.settleLocked() // bytes that are left are due again later
}

// syncBytes makes the sync that is due by bytes. It flushes nothing.
func (w *Writer) syncBytes() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noteLocked(w.syncToLocked(w.flush.flushed))
	w.sync.byBytes = false
	w.settleLocked()
}
