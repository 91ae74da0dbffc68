package holdfast

import (
	"context"
	"math"
	"time"
)

// dueFlushes is the clock of all bytes that wait in memory, and the goroutines that
// flush what is due: at most as many as there are workers, and none while nothing is
// due. As the period is the same for all, the queues are in the order of what is due
// next, and one timer serves them. All is guarded by streams.mu.
type dueFlushes struct {
	streams *streams
	period  time.Duration // 0: no bound by time
	timer   *time.Timer
	armed   bool
	workers int
}

func (d *dueFlushes) init(t *streams) {
	d.streams = t
	// A byte that is due for a sync must not wait in memory for the sync before.
	d.period = max(0, shortest(t.policy.FlushEvery, t.policy.syncPeriod()))
	if d.period > 0 {
		d.timer = time.AfterFunc(math.MaxInt64, d.fire)
		d.timer.Stop()
	}
}

// now returns the time if it is wanted.
func (d *dueFlushes) now() time.Time {
	if d.period == 0 {
		return time.Time{}
	}
	return time.Now()
}

// armLocked sets the timer for what is due next.
func (d *dueFlushes) armLocked() {
	if d.period == 0 || d.armed || d.streams.closing || d.workers == d.streams.files.options.Workers {
		return
	}
	s := d.streams.waiting.idleLocked()
	if x := d.streams.stuck.idleLocked(); s == nil || x != nil && x.since.Before(s.since) {
		s = x
	}
	if s != nil {
		d.armed = true
		d.timer.Reset(time.Until(s.since.Add(d.period)))
	}
}

func (d *dueFlushes) stopLocked() {
	if d.timer != nil {
		d.timer.Stop()
	}
}

func (d *dueFlushes) fire() {
	t := d.streams
	t.mu.Lock()
	defer t.mu.Unlock()
	d.armed = false
	d.startLocked()
}

// startLocked starts one more goroutine if there is work for it.
func (d *dueFlushes) startLocked() {
	t := d.streams
	if t.closing || d.workers >= t.files.options.Workers || d.nextLocked() == nil {
		d.armLocked()
		return
	}
	d.workers++
	t.background.Go(d.run)
}

// run flushes what is due until nothing is.
func (d *dueFlushes) run() {
	t := d.streams
	t.mu.Lock()
	defer t.mu.Unlock()
	for s := d.nextLocked(); s != nil && !t.closing; s = d.nextLocked() {
		t.flushBehindLocked(context.Background(), s)
		d.startLocked()
	}
	d.workers--
	d.armLocked()
}

// nextLocked returns a stream whose bytes, or whose next try, are due.
func (d *dueFlushes) nextLocked() *stream {
	now := time.Now()
	for _, q := range []*streamQueue{&d.streams.waiting, &d.streams.stuck} {
		if s := q.idleLocked(); s != nil && !now.Before(s.since.Add(d.period)) {
			return s
		}
	}
	return nil
}

// syncDue is called when the period of a policy that syncs by time is over.
func (t *streams) syncDue() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.syncLate = t.syncing; t.syncing || t.closing {
		return
	}
	t.syncing = true
	t.background.Go(t.runSyncs)
}

// runSyncs makes durable what is accepted, and again if that came due meanwhile.
func (t *streams) runSyncs() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for again := true; again && !t.closing; again = t.syncLate {
		t.syncLate = false
		t.syncTimer.disarm()
		t.syncBehindLocked()
	}
	t.syncing = false
}

// syncBehindLocked is a durable step of which nobody asked for the outcome.
func (t *streams) syncBehindLocked() {
	goals := t.goalsLocked()
	failed := map[*stream]bool{}
	for _, g := range goals {
		failed[g.stream] = g.stream.failed != nil
	}
	t.makeDurableLocked(context.Background(), goals)
	for _, g := range goals {
		s := g.stream
		s.noteLocked(s.failed, failed[s])
		if s.failed != nil {
			t.syncTimer.arm() // try again in a while
		}
	}
	t.restGoalsLocked(goals)
}
