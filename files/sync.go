package files

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/commit"
	"github.com/holdfast-go/holdfast/internal/deadline"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/errjoin"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// syncer makes durable what streams have flushed: at a call's wish, in a step that calls share, by time and by
// bytes, and before a file is closed. streams.mu guards it.
//
// One step is: flush, sync the files, sync the directories with new names, sync the file systems with
// files that were left. Steps may overlap. A file is synced by one goroutine at a time, which has
// set stream.syncing; another that needs it waits for the stream to change.
type syncer struct {
	*streams
	open    *openFiles
	flusher *flusher

	commit commit.Group[[]target] // of each stream one; in use
	step   durable.Step           // syncs many open files; used without the lock

	timer   deadline.Timer // of a sync by time
	timeDue bool           // timer has fired
	running bool           // the goroutine of the syncs by time and by bytes
}

func (y *syncer) init(f *flusher) {
	y.streams, y.open, y.flusher = f.streams, f.open, f
	y.commit.Init(&y.mu, y.stepLocked, func(error) {})
	y.step = durable.Step{Disk: y.disk, Names: y.names, Most: durable.Waiters,
		SyncAll: y.syncAll}
	y.timer.Init(y.policy.Sync.Every, nil, deadline.ForSync, func() {
		y.mu.Lock()
		defer y.mu.Unlock()
		y.timeDue = true
		y.startLocked()
	})
	y.open.drop = y.dropFile
	y.open.wrote = y.wroteLocked
}

// A syncTask is a sync of a stream's file that one goroutine has taken on.
type syncTask struct {
	durable.OpenFile
	stream      *stream
	file        *streamFile // in use
	covers      int64       // the stream's bytes that are durable if it works
	dirUnsynced bool        // the stream's, when it was taken on
}

// newTaskLocked takes on the sync of a stream's file, which is in use.
func newTaskLocked(s *stream, x *streamFile) syncTask {
	s.syncing = true
	s.age.Turn(s.accepted)
	return syncTask{durable.OpenFile{Errseq: x.errseq, Dir: s.site.dir, Since: s.site.losses}, s, x, s.flushed, s.dirUnsynced}
}

// joinLocked waits, without the lock, for the step that covers the stream, or makes it. All streams share
// the steps.
func (y *syncer) joinLocked(ctx context.Context, s *stream) error {
	b := y.commit.Join()
	if i := s.target; i < len(b.Work) && b.Work[i].stream == s {
		b.Work[i].end = s.accepted
	} else {
		s.users++
		s.target = len(b.Work)
		b.Work = append(b.Work, target{s, s.accepted})
	}
	defer y.mu.Lock()
	return y.commit.Do(ctx, b)
}

// stepLocked makes the streams of a batch durable. Failures are the streams'. The end of a context does
// not end it: it is for others too.
func (y *syncer) stepLocked(targets *[]target) error {
	start := time.Now()
	y.makeDurableLocked(context.Background(), *targets)
	y.commit.Took(time.Since(start))
	y.restTargetsLocked(*targets)
	return nil
}

// makeDurableLocked is a durable step: it flushes the streams up to their targets, and
// makes what is flushed, and the files' names, durable. It returns every failure.
// The streams are in use.
func (y *syncer) makeDurableLocked(ctx context.Context, targets []target) error {
	flushErr := y.flusher.flushAllLocked(ctx, targets)
	for i, g := range targets {
		targets[i].end = min(g.end, g.stream.flushed)
	}
	err := y.syncAllLocked(ctx, targets)
	if err == nil {
		again, namesErr := y.syncNamesLocked(ctx, targets)
		if again && !y.closing {
			y.timer.Set(true) // the next call tries again, or the next sync by time
		}
		err = errjoin.Join(namesErr, y.syncLeftLocked(ctx))
	}
	var finals []error
	for _, g := range targets {
		if g.stream.final != nil {
			finals = append(finals, g.stream.final)
		}
	}
	return errjoin.Join(flushErr, err, errjoin.Join(finals...))
}

// syncAllLocked syncs what is flushed of the streams. It returns an error only if ctx
// ended; other failures are the streams'.
func (y *syncer) syncAllLocked(ctx context.Context, targets []target) error {
	for {
		var tasks []syncTask
		var other *stream
		for _, g := range targets {
			s := g.stream
			if s.final != nil || s.durable >= g.end {
				continue
			}
			if d, ok := y.claimLocked(s); ok {
				tasks = append(tasks, d)
			} else {
				other = s
			}
		}
		switch {
		case len(tasks) > 0:
			y.syncTasksLocked(tasks)
			y.restTasksLocked(tasks)
		case other == nil:
			return nil
		default:
			if err := y.awaitStreamLocked(ctx, other); err != nil {
				return err
			}
		}
	}
}

// claimLocked takes on the sync of a stream, unless another goroutine has it, or is closing
// the file and syncs it first.
func (y *syncer) claimLocked(s *stream) (syncTask, bool) {
	h := &y.handles
	h.Mu.Lock()
	defer h.Mu.Unlock()
	x := s.file
	if s.syncing || x == nil || x.Gone {
		return syncTask{}, false
	}
	h.UseLocked(&x.Handle)
	return newTaskLocked(s, x), true
}

// syncTasksLocked syncs the files of tasks, many at once and without the lock. The bytes they cover
// are durable then, or the stream has failed for good.
func (y *syncer) syncTasksLocked(tasks []syncTask) {
	e := y.open.errseq
	y.mu.Unlock()
	start := time.Now()
	y.step.SyncOpen(e, len(tasks), func(i int) *durable.OpenFile { return &tasks[i].OpenFile }, func(i int) error {
		d := &tasks[i]
		defer y.watchSync(d.file.Path)()
		err := y.disk.Datasync(d.file.Fd)
		if err != nil && d.dirUnsynced {
			y.failFile(d.file.Fd, d.Dir)
		}
		return err
	})
	took := time.Since(start)
	if e != nil && !e.Works() {
		y.open.dropErrseq(e)
	}
	for i := range tasks {
		if d := &tasks[i]; d.Err == nil {
			d.Err = y.lookForName(d.file)
		}
	}
	y.mu.Lock()
	y.counts.Syncs += int64(len(tasks))
	y.counts.Sync.Add(took)
	y.counts.LongestSync = max(y.counts.LongestSync, took)
	for _, d := range tasks {
		y.settleLocked(d)
	}
}

// lookForName says if a file that was synced has lost its last name: nothing will
// find it after a crash.
func (y *syncer) lookForName(x *streamFile) error {
	var is sys.Stat
	tries := y.tries(x.Path)
	err := tries.Insist(context.Background(), retry.OpStat, func() (err error) {
		is, err = y.disk.StatFD(x.Fd)
		return err
	})
	if err == nil && is.Links == 0 {
		return holdfast.ErrUnlinked
	}
	return err
}

// settleLocked gives the outcome of a task to its stream.
func (y *syncer) settleLocked(d syncTask) {
	s := d.stream
	s.syncing = false
	switch {
	case d.Err == nil || d.Err == holdfast.ErrUnlinked && (d.file.replaced || y.open.renames[d.file.key] > 0):
		s.durable = max(s.durable, d.covers)
		s.age.Durable(s.durable)
		s.dirUnsynced = s.dirUnsynced && !d.Named
		s.settledLocked()
	case d.Err == holdfast.ErrUnlinked && s.final == nil:
		y.loseLocked(s, d.covers)
		d.file.removed = true
		y.handles.Retire(&d.file.Handle)
	case s.final == nil:
		y.endLocked(s, d.Err)
	}
	y.countLocked(s)
	s.changed.wakeLocked()
}

// restTasksLocked gives the files of tasks back.
func (y *syncer) restTasksLocked(tasks []syncTask) {
	y.mu.Unlock()
	for _, d := range tasks {
		y.handles.Rest(&d.file.Handle)
	}
	y.mu.Lock()
	for _, d := range tasks {
		y.tidyLocked(d.stream)
	}
}

// dropFile closes a file that no call uses. If the policy syncs, it first syncs what was
// written: the kernel may report a failure to this descriptor only.
func (y *syncer) dropFile(x *streamFile) {
	y.syncDropped(x)
	err := y.disk.Close(x.Fd)
	s := x.stream
	y.mu.Lock()
	y.open.removeLocked(x)
	if x.removed {
		y.loseLocked(s, s.flushed)
	}
	switch {
	case y.policy.Sync.Mode == holdfast.SyncNever:
		y.leaveLocked(x)
	case s.durable < s.flushed && s.final == nil: // no other descriptor is sure to report a failure
		y.endLocked(s, errClosedUnsynced)
	}
	if err != nil {
		failed := &Error{Path: s.given, Op: string(retry.OpClose), Attempts: 1, Outcome: holdfast.OutcomeUncertain,
			Err: fmt.Errorf("its bytes may be lost: %w", err)}
		y.reportLocked(failed, 0)
		if s.unreported == nil {
			s.unreported = failed
		}
	}
	close(x.dropped)
	s.changed.wakeLocked()
	y.tidyLocked(s)
	y.mu.Unlock()
	y.handles.Release()
}

var errClosedUnsynced = errors.New("the file was closed before it was synced")

// syncDropped syncs a file before it is closed, if the policy syncs and it has to be.
// It syncs the other open files too, because their turn will come soon.
func (y *syncer) syncDropped(x *streamFile) {
	s := x.stream
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.policy.Sync.Mode == holdfast.SyncNever || s.final != nil || s.durable == s.flushed || x.removed {
		return
	}
	tasks := []syncTask{newTaskLocked(s, x)}
	for _, other := range y.open.streamsLocked() {
		if other.final == nil && other.durable < other.flushed {
			if d, ok := y.claimLocked(other); ok {
				tasks = append(tasks, d)
			}
		}
	}
	y.syncTasksLocked(tasks)
	y.restTasksLocked(tasks[1:])
}

// wroteLocked starts the syncs by bytes if one is due.
func (y *syncer) wroteLocked() {
	if y.bytesDueLocked() {
		y.startLocked()
	}
}

// startLocked starts the goroutine of the syncs by time and by bytes.
func (y *syncer) startLocked() {
	if y.running || y.closing {
		return
	}
	y.running = true
	y.background.Add(1)
	go func() {
		defer y.background.Done()
		y.syncDue()
	}()
}

// syncDue syncs until nothing is due. When time is due it makes durable what is accepted,
// and when bytes are due, what is flushed.
func (y *syncer) syncDue() {
	y.mu.Lock()
	defer y.mu.Unlock()
	for !y.closing && (y.timeDue || y.bytesDueLocked()) {
		targets := y.unsyncedTargetsLocked
		if y.timeDue {
			targets = y.targetsLocked
			y.timeDue = false
			y.timer.Set(false)
		} else if y.flusher.emptyLocked() {
			y.timer.Set(false) // it covers all that is accepted
		}
		if left := y.syncBehindLocked(targets()); left && !y.timeDue {
			break // the next flush tries again, or the clock
		}
	}
	y.running = false
}

// bytesDueLocked reports whether a sync by bytes is due.
func (y *syncer) bytesDueLocked() bool {
	limit := int64(y.policy.Sync.Bytes)
	return limit > 0 && y.unsynced >= limit
}

// syncBehindLocked is a durable step in the background: later calls return its failures. It reports
// whether it has left names that are to be tried again.
func (y *syncer) syncBehindLocked(targets []target) (left bool) {
	failed, unnamed := map[*stream]bool{}, map[*stream]bool{}
	for _, g := range targets {
		failed[g.stream], unnamed[g.stream] = g.stream.failed != nil, g.stream.dirErr != nil
	}
	y.makeDurableLocked(context.Background(), targets)
	for _, g := range targets {
		s := g.stream
		s.noteLocked(s.failed, failed[s])
		if s.dirErr != nil && !unnamed[s] && s.unreported == nil {
			s.unreported = s.dirErr
		}
		left = left || s.dirErr != nil
		if s.failed != nil {
			y.timer.Set(true) // try again in a while
		}
	}
	y.restTargetsLocked(targets)
	for _, names := range y.forgotten.names {
		left = left || names.unopened
	}
	return left
}
