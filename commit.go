package holdfast

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/joinwindow"
)

// commit is the state of group commit. One goroutine at a time leads. It lets
// others join, flushes what has been accepted by then, syncs, and wakes the
// goroutines that its sync covered. A goroutine that comes meanwhile waits for the
// next batch. It is made for the first sync. The Writer's lock guards all fields.
type commit struct {
	// batch numbers the sync that will cover a byte accepted now. It grows when
	// a leader has fixed what its sync covers. done counts finished batches.
	batch, done int64
	// joined counts the goroutines that wait for batch, besides its leader. needed is
	// the offset that the batch must cover: see needLocked.
	joined int
	needed int64
	// covered[b&1] wakes the waiters of batch b when it is done. outcome[b&1] is its error.
	// Two of each are enough: batch b+2 starts after b is done.
	covered [2]sync.Cond
	outcome [2]error

	join joinwindow.Window
}

func (w *Writer) commitsLocked() *commit {
	if w.commit == nil {
		w.commit = new(commit)
		w.commit.covered[0].L, w.commit.covered[1].L = &w.mu, &w.mu
	}
	return w.commit
}

// wakeAll wakes the waiters of every batch.
func (c *commit) wakeAll() {
	if c == nil {
		return
	}
	c.covered[0].Broadcast()
	c.covered[1].Broadcast()
}

// Sync makes all bytes durable that were accepted before the call, those of Lanes
// included. On nil, Durable is at least what Written was then. It works under every
// policy, and calls made at the same time share one sync.
func (w *Writer) Sync() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.refusalLocked(); err != nil {
		return err
	}
	return w.withLanesLocked(w.syncToLocked)
}

func (w *Writer) syncToLocked(end int64) error { return w.commitLocked(context.Background(), end) }

// WaitDurable waits until Durable ≥ end, under every policy; calls made at the same
// time share one sync. If ctx ends first, it returns the cause of that at once, and
// the bytes may become durable or not. An end beyond Written is an error. A call made
// after Close has begun waits for the sync of that; of what is durable it returns nil.
func (w *Writer) WaitDurable(ctx context.Context, end int64) error {
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.commit.wakeAll()
		})
		defer stop()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.durable >= end {
		return nil
	}
	if end > w.writtenLocked() {
		if w.isClosing {
			return ErrClosed
		}
		return fmt.Errorf("holdfast: wait for byte %d, but only %d are written; use an end that Enqueue returned", end, w.writtenLocked())
	}
	if !w.isClosing {
		if err := w.refusalLocked(); err != nil {
			return err
		}
	}
	return w.commitLocked(ctx, end)
}

// writeDurable is Write under a policy that waits for the sync.
func (w *Writer) writeDurable(p []byte) (n int, err error) {
	if w.policy.Sync.Mode == SyncEach {
		return w.writeEach(p)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(p) > w.large {
		n, err = w.bypassLocked(p)
	} else if err = w.takeLocked(p); err == nil {
		n = len(p)
	}
	if err != nil || n == 0 {
		return n, err
	}
	return n, w.syncToLocked(w.writtenLocked())
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
	if n, err = w.writeAloneLocked(p); err != nil {
		return n, err
	}
	return n, w.syncToLocked(w.writtenLocked())
}

// commitLocked returns when Durable ≥ end, as a leader or as one of a batch.
func (w *Writer) commitLocked(ctx context.Context, end int64) (err error) {
	type ledBatch struct {
		number int64
		err    error
		left   bool // this call has returned: the next one reports err
	}
	c := w.commitsLocked()
	joined := int64(-1) // the batch that counts us
	var led *ledBatch   // the last one made in the background for us
	defer func() {
		if led != nil {
			led.left = true
			if led.err != err {
				w.noteLocked(led.err)
			}
		}
		if joined == c.batch {
			c.joined--
		}
		// A goroutine that was woken to lead, and need not, wakes the next one.
		if !w.leading {
			c.covered[c.batch&1].Signal()
		}
	}()
	for w.durable < end || w.nameless {
		switch {
		case w.final != nil || w.sealed:
			return w.sealedErrLocked()
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !w.leading:
			if joined == c.batch {
				c.joined--
				joined = -1
			}
			if ctx.Done() == nil {
				if err := w.leadLocked(end); err != nil {
					return err
				}
				continue
			}
			// The end of ctx ends this wait, but not the sync: others wait for it too.
			if led != nil {
				w.noteLocked(led.err) // the next batch covers what that one did not
			}
			made := &ledBatch{number: c.batch}
			led = made
			w.leading = true
			w.background.Go(func() {
				w.mu.Lock()
				defer w.mu.Unlock()
				made.err = w.leadLocked(end)
				if made.left {
					w.noteLocked(made.err)
				}
				c.covered[c.batch&1].Signal() // to lead the next, as above
			})
		}
		mine := c.batch
		if joined != mine && (led == nil || led.number != mine) {
			joined = mine
			w.needLocked(end)
			c.joined++
			c.join.Arrived(c.joined + 1)
		}
		c.covered[mine&1].Wait()
		if c.done > mine && w.durable < end && c.outcome[mine&1] != nil {
			failed := c.outcome[mine&1]
			if w.unreported == failed { // kept for the next call, because its own has left
				w.unreported = nil
				w.openLocked()
			}
			return failed
		}
	}
	return nil
}

// needLocked adds end to what the next sync must cover. Under a policy that syncs by
// time or bytes, the sync covers the least end. Due bytes must not wait for the flush
// of newer ones. It mostly covers the others too, since a flush takes along all that
// is written. A call that it does not cover joins or leads again.
func (w *Writer) needLocked(end int64) {
	c := w.commit
	switch {
	case c.joined == 0:
		c.needed = end
	case w.policy.Sync.Mode == SyncPeriodic:
		c.needed = min(c.needed, end)
	default:
		c.needed = max(c.needed, end)
	}
}

// leadLocked makes one batch durable.
func (w *Writer) leadLocked(end int64) (err error) {
	c := w.commit
	w.leading = true
	w.awaitJoinersLocked()
	mine := c.batch
	c.batch++
	w.needLocked(end)
	size, end := c.joined+1, c.needed
	c.joined = 0
	if end == w.writtenLocked() && len(w.lanes) == 0 {
		w.syncTimer.Disarm()
	}
	w.age.Turn(w.writtenLocked())
	w.openLocked()
	defer func() { // also if the file has panicked: then w.final says so
		w.leading = false
		c.done++
		c.outcome[mine&1] = err
		c.join.Finished(size, c.joined)
		// Without the lock: the first to wake need it while others are woken.
		w.mu.Unlock()
		c.covered[mine&1].Broadcast()
		w.mu.Lock()
		if w.final != nil {
			c.wakeAll()
			w.space.Broadcast()
		}
		w.syncBytesLocked()
		w.idle.Broadcast()
	}()
	for last := false; err == nil && !last; {
		if last = w.flushed >= end; last || w.bytesDueLocked() { // these don't wait for the flush of newer ones
			err = w.syncLocked()
		} else {
			err = w.flushStepLocked(w.writtenLocked())
		}
	}
	return err
}

// syncLocked syncs the file, and releases the lock meanwhile. After it, all that was
// flushed before it is durable.
func (w *Writer) syncLocked() error {
	covers := w.flushed
	start := time.Now()
	calls, err := 0, error(nil)
	w.callFileLocked("Sync", func() { calls, err = w.target.sync() })
	took := time.Since(start)
	w.commitsLocked().join.Took(took)
	w.countsLocked().Sync.Add(took)
	w.systemCalls += int64(calls)
	if err != nil {
		w.final = &SyncError{Path: w.target.path, Durable: w.durable, AtRisk: w.writtenLocked() - w.durable, Err: err}
		w.reportLocked(w.final)
		w.openLocked()
		return w.final
	}
	w.durable, w.nameless = covers, false
	w.idle.Broadcast() // see awaitSyncLocked
	w.age.Durable(covers)
	return nil
}

// bytesDueLocked reports whether a sync must start by bytes: the kernel has so many.
func (w *Writer) bytesDueLocked() bool {
	limit := int64(w.policy.Sync.Bytes)
	return limit > 0 && w.flushed-w.durable >= limit
}

// syncBytesLocked starts the syncer if a sync by bytes is due. It is called when more
// bytes are flushed and when a sync has ended, so that none is missed. A leader looks itself.
func (w *Writer) syncBytesLocked() {
	if w.bytesDueLocked() && !w.leading && w.final == nil {
		w.startLocked(&w.syncer)
	}
}

// runSyncer syncs when the deadline has passed, or when enough bytes wait for a sync.
func (w *Writer) runSyncer() {
	defer w.background.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.isClosing && w.final == nil {
		if !w.syncer.due {
			if !w.bytesDueLocked() || w.leading {
				break
			}
			w.noteLocked(w.syncToLocked(w.flushed)) // what is flushed is enough
			continue
		}
		late := w.syncer.late
		w.syncer.due, w.syncer.late = false, false
		w.syncTimer.Disarm()
		w.openLocked()
		err := w.syncDueLocked(late)
		if err != nil && w.final == nil {
			w.syncTimer.Arm() // try again in a while
		}
		w.noteLocked(err)
	}
	w.syncer.running = false
}

// syncDueLocked flushes and syncs. If it is late because a sync was in flight, it
// first syncs what the kernel has: the flusher has put the due bytes there. To flush
// newer bytes first would make it later still, so they are next.
func (w *Writer) syncDueLocked(late bool) error {
	return w.withLanesLocked(func(end int64) error {
		if late {
			if err := w.syncToLocked(w.flushed); err != nil {
				return err
			}
		}
		return w.syncToLocked(end)
	})
}

// awaitJoinersLocked lets the calls that the last sync released join this one. A policy
// that syncs by time does not wait for them: it has promised when it syncs.
func (w *Writer) awaitJoinersLocked() {
	c := w.commit
	if w.policy.Sync.Mode == SyncPeriodic {
		return
	}
	if w.isClosing {
		c.join.Enough()
	}
	c.join.Await(&w.mu, func() int { return c.joined + 1 }, nil)
}
