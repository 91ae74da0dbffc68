package holdfast

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// commit is the state of group commit. One goroutine at a time leads: it lets
// others join, flushes what has been accepted by then, syncs in its own
// goroutine, and wakes all whom that sync covered. Those who come while it is at
// work wait for the next batch. All fields are guarded by the Writer's lock.
type commit struct {
	leading bool
	// batch numbers the sync that will cover a byte accepted now; it grows when
	// a leader has fixed what its sync covers. done counts the finished ones.
	batch, done int64
	// joined is how many wait for batch, besides its leader, and needed is what it
	// must cover for the first of them, or for all: see leadLocked.
	joined int
	needed int64
	// covered[b&1] is told when batch b is done, and outcome[b&1] is its error.
	// Two of each are enough: batch b+2 starts after b is done.
	covered [2]sync.Cond
	outcome [2]error

	join joinWindow
}

// background is the context of those who wait to the end.
var background = context.Background()

func (c *commit) init(mu sync.Locker) {
	c.covered[0].L, c.covered[1].L = mu, mu
}

// wakeAll wakes all who wait for any batch.
func (c *commit) wakeAll() {
	c.covered[0].Broadcast()
	c.covered[1].Broadcast()
}

// Sync makes all that was accepted before the call, by Lanes too, durable. On
// nil, Durable is at least what Written was then. It works under every policy,
// and calls made at the same time share one sync.
func (w *Writer) Sync() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.refusalLocked(); err != nil {
		return err
	}
	return w.withLanesLocked(w.syncToLocked)
}

func (w *Writer) syncToLocked(end int64) error { return w.commitLocked(background, end) }

// WaitDurable waits until Durable ≥ end, with the other Writers of its group
// commit, under every policy. If ctx ends first it returns the cause of that,
// and the bytes may become durable or not. An end that is not Written yet is an
// error.
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
	if w.policy.Sync == SyncEach {
		return w.writeEach(p)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(p) > w.block {
		n, err = w.writeStraightLocked(p)
	} else if err = w.takeLocked(p); err == nil {
		n = len(p)
	}
	if err != nil || n == 0 {
		return n, err
	}
	return n, w.commitLocked(background, w.writtenLocked())
}

// writeEach keeps other Writes out from its write to the end of its sync.
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
	return n, w.commitLocked(background, w.writtenLocked())
}

// commitLocked returns when Durable ≥ end, as a leader or as one of a batch.
func (w *Writer) commitLocked(ctx context.Context, end int64) error {
	c := &w.commit
	joined := int64(-1) // the batch that counts us
	defer func() {
		if joined == c.batch {
			c.joined--
		}
		// Whoever was woken to lead and has no need to wakes the next.
		if !c.leading {
			c.covered[c.batch&1].Signal()
		}
	}()
	for w.durable < end || w.nameless {
		switch {
		case w.final != nil:
			return w.final
		case w.sealed:
			return ErrClosed
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !c.leading:
			if joined == c.batch {
				c.joined--
				joined = -1
			}
			if err := w.leadLocked(end); err != nil {
				return err
			}
			continue
		}
		mine := c.batch
		if joined != mine {
			joined = mine
			w.needLocked(end)
			c.joined++
			c.join.arrived(c.joined)
		}
		c.covered[mine&1].Wait()
		if c.done > mine && w.durable < end && c.outcome[mine&1] != nil {
			return c.outcome[mine&1]
		}
	}
	return nil
}

// needLocked counts end among what the next sync must cover. Under a policy that
// syncs by time that is the least that anybody needs, lest bytes that are due
// wait for the flush of newer ones; mostly it covers all the same, since a flush
// takes along all that is written. Whom it does not cover joins or leads again.
func (w *Writer) needLocked(end int64) {
	c := &w.commit
	switch {
	case c.joined == 0:
		c.needed = end
	case w.policy.syncPeriod() > 0:
		c.needed = min(c.needed, end)
	default:
		c.needed = max(c.needed, end)
	}
}

// leadLocked makes one batch durable.
func (w *Writer) leadLocked(end int64) error {
	c := &w.commit
	c.leading = true
	w.awaitJoinersLocked()
	mine := c.batch
	c.batch++
	w.needLocked(end)
	size, end := c.joined+1, c.needed
	c.joined = 0
	if end == w.writtenLocked() && len(w.lanes) == 0 {
		w.syncTimer.disarm()
		w.openLocked()
	}
	err := w.flushToLocked(end)
	if err == nil {
		err = w.syncLocked()
	}
	c.leading = false
	c.done++
	c.outcome[mine&1] = err
	c.join.finished(size, c.joined)
	c.covered[mine&1].Broadcast()
	if w.final != nil {
		c.wakeAll()
	}
	w.idle.Broadcast()
	return err
}

// syncLocked syncs the file, without the lock; what was flushed before is
// durable then.
func (w *Writer) syncLocked() error {
	covers := w.flushed
	start := time.Now()
	w.mu.Unlock()
	calls, err := w.target.sync()
	w.mu.Lock()
	took := time.Since(start)
	w.commit.join.took(took)
	w.stats.LongestSync = max(w.stats.LongestSync, took)
	w.stats.Syncs++
	w.stats.SystemCalls += int64(calls)
	if err != nil {
		w.final = &SyncError{Path: w.target.path, Durable: w.durable, Err: err}
		w.openLocked()
		return w.final
	}
	w.durable, w.nameless = covers, false
	return nil
}

// runSyncer syncs when the deadline has passed.
func (w *Writer) runSyncer() {
	defer w.background.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.syncer.due && !w.isClosing && w.final == nil {
		late := w.syncer.late
		w.syncer.due, w.syncer.late = false, false
		w.syncTimer.disarm()
		w.openLocked()
		err := w.syncDueLocked(late)
		if err != nil && w.final == nil {
			w.syncTimer.arm() // try again in a while
		}
		w.noteLocked(err)
	}
	w.syncer.running = false
}

// syncDueLocked flushes and syncs. If it is late because a sync was in flight, it
// first syncs what is in the kernel, where the flusher has put what was due; to
// flush what came since would make it later still. That is next.
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

// A joinWindow decides how long a leader lets others join. Without it group
// commit falls into half batches: the first of those who were woken starts a
// tiny sync, and the rest waits for it. So a leader waits for as many as are
// known to be about, but at most for a fraction of what a sync takes.
type joinWindow struct {
	sync     time.Duration // how long the last sync took
	expected int           // how many may come: the last batch and who waited meanwhile
	patience int           // the window is sync >> (joinShift + patience)
	waiting  bool          // a leader sleeps until expected have come
	arrivals chan struct{}
}

const (
	// joinShift makes the window a quarter of a sync: half batches cost a half.
	joinShift = 2
	// maxPatience ends the waiting for those who do not come back.
	maxPatience = 8
	// parkAbove is the window from which a timer is fine enough to wait with.
	parkAbove = 200 * time.Microsecond
	// maxYields bounds the waiting by yielding, whatever the clock does.
	maxYields = 1000
)

func (j *joinWindow) took(d time.Duration) { j.sync = d }

func (j *joinWindow) finished(size, waiting int) { j.expected = size + waiting }

// arrived is told how many have joined the leader who waits.
func (j *joinWindow) arrived(joined int) {
	if j.waiting && joined+1 >= j.expected {
		j.waiting = false
		close(j.arrivals)
	}
}

// awaitJoinersLocked lets those whom the last sync released join this one.
func (w *Writer) awaitJoinersLocked() {
	c := &w.commit
	j := &c.join
	window := j.sync >> (joinShift + j.patience)
	// A policy that syncs by time has promised when.
	if c.joined+1 >= j.expected || window == 0 || w.policy.syncPeriod() > 0 {
		return
	}
	if window < parkAbove {
		w.yieldLocked(window)
	} else {
		w.parkLocked(window)
	}
	if c.joined+1 >= j.expected {
		j.patience = 0
	} else if j.patience < maxPatience {
		j.patience++
	}
}

func (w *Writer) yieldLocked(window time.Duration) {
	c := &w.commit
	start := time.Now()
	for i := 0; i < maxYields && c.joined+1 < c.join.expected; i++ {
		w.mu.Unlock()
		runtime.Gosched()
		late := time.Since(start) > window
		w.mu.Lock()
		if late {
			return
		}
	}
}

func (w *Writer) parkLocked(window time.Duration) {
	j := &w.commit.join
	j.waiting, j.arrivals = true, make(chan struct{})
	timer := time.NewTimer(window)
	w.mu.Unlock()
	select {
	case <-j.arrivals:
	case <-timer.C:
	case <-w.closing:
	}
	timer.Stop()
	w.mu.Lock()
	j.waiting = false
}
