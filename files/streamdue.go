package files

import (
	"context"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/internal/deadline"
)

// dueFlushes is the clock of all bytes that wait in memory, and the goroutines that
// flush what is due. There are at most as many as workers, and none while nothing is
// due. As the period is the same for all, the queues are in the order of what is due
// next, and one timer serves them. All is guarded by streams.mu.
type dueFlushes struct {
	streams *streams
	period  time.Duration // 0: no bound by time
	timer   *time.Timer
	armed   bool
	at      time.Time // when it fires, if it is armed
	workers int
}

func (d *dueFlushes) init(t *streams) {
	d.streams = t
	// A byte that is due for a sync must not wait in memory for the sync before.
	d.period = deadline.Shortest(t.policy.FlushEvery, t.policy.Sync.Every)
	if d.period > 0 {
		d.timer = time.AfterFunc(math.MaxInt64, func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			d.armed = false
			d.startLocked()
		})
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

// armLocked sets the timer for what is due next. That may come before what it is set for: a stream with
// a call busy is left out, and takes its place again after that.
func (d *dueFlushes) armLocked() {
	if d.period == 0 || d.streams.closing || d.workers == d.streams.files.options.Workers {
		return
	}
	s := d.streams.waiting.idleLocked()
	if x := d.streams.stuck.idleLocked(); s == nil || x != nil && x.since.Before(s.since) {
		s = x
	}
	if s == nil {
		return
	}
	if at := s.since.Add(d.period); !d.armed || at.Before(d.at) {
		d.armed, d.at = true, at
		d.timer.Reset(time.Until(at))
	}
}

// startLocked starts one more goroutine if there is work for it.
func (d *dueFlushes) startLocked() {
	t := d.streams
	if t.closing || d.workers >= t.files.options.Workers || d.nextLocked() == nil {
		d.armLocked()
		return
	}
	d.workers++
	t.background.Add(1)
	go func() {
		defer t.background.Done()
		d.run()
	}()
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

// nextLocked returns a stream with bytes, or a retry, that are due.
func (d *dueFlushes) nextLocked() *stream {
	now := time.Now()
	for _, q := range []*streamQueue{&d.streams.waiting, &d.streams.stuck} {
		if s := q.idleLocked(); s != nil && !now.Before(s.since.Add(d.period)) {
			return s
		}
	}
	return nil
}

func (t *streams) startSyncsLocked() {
	if t.syncing || t.closing {
		return
	}
	t.syncing = true
	t.background.Add(1)
	go func() {
		defer t.background.Done()
		t.runSyncs()
	}()
}

// runSyncs syncs until nothing is due. When time is due it makes durable what is accepted,
// and when bytes are due, what is flushed.
func (t *streams) runSyncs() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for !t.closing && (t.syncDue || t.bytesDueLocked()) {
		goals := t.unsyncedGoalsLocked
		if t.syncDue {
			goals = t.goalsLocked
			t.syncDue = false
			t.syncTimer.Set(false)
		} else if t.flights == 0 && t.waiting.oldest == nil && t.stuck.oldest == nil {
			t.syncTimer.Set(false) // it covers all that is accepted
		}
		if left := t.syncBehindLocked(goals()); left && !t.syncDue {
			break // the next flush that is counted tries again, or the clock
		}
	}
	t.syncing = false
}

// bytesDueLocked reports whether a sync by bytes is due.
func (t *streams) bytesDueLocked() bool {
	limit := int64(t.policy.Sync.Bytes)
	return limit > 0 && t.unsynced >= limit
}

// countLocked counts anew what of the stream is flushed and not durable with its name, and starts the
// sync that this makes due. A stream with a failed sync counts for nothing: no later sync helps it.
func (t *streams) countLocked(s *stream) {
	if t.policy.Sync.Bytes == 0 {
		return
	}
	n := s.flushed - max(s.safe, s.lostTo)
	if s.final != nil {
		n = 0
	}
	t.unsynced += n - s.counted
	s.counted = n
	if t.bytesDueLocked() {
		t.startSyncsLocked()
	}
}

// overLocked reports whether a flush by bytes is due.
func (t *streams) overLocked(s *stream) bool {
	return s.wait != nil && len(s.wait.bytes) >= t.flushAt && !s.busy && s.failed == nil && !t.closing
}

// unsyncedGoalsLocked returns that what is flushed is durable with its name, of the streams
// where it is not. They are in use, as with goalsLocked.
func (t *streams) unsyncedGoalsLocked() (goals []goal) {
	for _, s := range t.paths {
		if s.final == nil && s.safe < s.flushed {
			s.users++
			goals = append(goals, goal{s, s.flushed})
		}
	}
	return goals
}

// syncBehindLocked is a durable step in the background: later calls return its failures. It reports
// whether it has left names that are to be tried again.
func (t *streams) syncBehindLocked(goals []goal) (left bool) {
	failed, unnamed := map[*stream]bool{}, map[*stream]bool{}
	for _, g := range goals {
		failed[g.stream], unnamed[g.stream] = g.stream.failed != nil, g.stream.unnamed != nil
	}
	t.makeDurableLocked(context.Background(), goals)
	for _, g := range goals {
		s := g.stream
		s.noteLocked(s.failed, failed[s])
		if s.unnamed != nil && !unnamed[s] && s.unreported == nil {
			s.unreported = s.unnamed
		}
		left = left || s.unnamed != nil
		if s.failed != nil {
			t.syncTimer.Set(true) // try again in a while
		}
	}
	t.restGoalsLocked(goals)
	for _, names := range t.names {
		left = left || names.unopened
	}
	return left
}
