package files

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/errjoin"
	"github.com/holdfast-go/holdfast/internal/handles"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// A goal is how far a stream is to be durable.
type goal struct {
	stream *stream
	end    int64
}

// A duty is a sync of a stream's file that one goroutine has taken on.
type duty struct {
	durable.OpenFile
	stream   *stream
	file     *streamFile // in use
	covers   int64       // the stream's bytes that are durable if it works
	nameless bool        // the stream's, when it was taken on
}

// newDutyLocked takes on the sync of a stream's file, which is in use.
func newDutyLocked(s *stream, x *streamFile) duty {
	s.syncs = true
	s.age.Turn(s.accepted)
	return duty{durable.OpenFile{Errseq: x.errseq, Dir: s.named.dir, Since: s.named.losses}, s, x, s.flushed, s.nameless}
}

// goalsLocked returns that all streams are durable as far as they are accepted now.
// The streams are in use until restGoalsLocked.
func (t *streams) goalsLocked() []goal {
	goals := make([]goal, 0, len(t.paths))
	for _, s := range t.paths {
		s.users++
		goals = append(goals, goal{s, s.accepted})
	}
	return goals
}

func (t *streams) restGoalsLocked(goals []goal) {
	for _, g := range goals {
		t.restLocked(g.stream)
	}
}

// flushAllLocked flushes the streams up to their goals, some at a time, and returns
// what failed.
func (t *streams) flushAllLocked(ctx context.Context, goals []goal) error {
	errs := make([]error, len(goals))
	t.mu.Unlock()
	durable.Abreast(t.files.options.Workers, len(goals), func(i int) {
		g := goals[i]
		t.mu.Lock()
		defer t.mu.Unlock()
		errs[i] = t.flushLocked(ctx, g.stream, g.end)
	})
	t.mu.Lock()
	return errjoin.Join(errs...)
}

// makeDurableLocked is a durable step: it flushes the streams up to their goals, and
// makes what is flushed, and the files' names, durable. It returns every failure.
// The streams are in use.
func (t *streams) makeDurableLocked(ctx context.Context, goals []goal) error {
	flushErr := t.flushAllLocked(ctx, goals)
	for i, g := range goals {
		goals[i].end = min(g.end, g.stream.flushed)
	}
	err := t.syncAllLocked(ctx, goals)
	if err == nil {
		err = errjoin.Join(t.syncNamesLocked(ctx, goals), t.syncLeftLocked(ctx))
	}
	var finals []error
	for _, g := range goals {
		if g.stream.final != nil {
			finals = append(finals, g.stream.final)
		}
	}
	return errjoin.Join(flushErr, err, errjoin.Join(finals...))
}

// syncAllLocked syncs what is flushed of the streams. It returns an error only if ctx
// ended; other failures are the streams'.
func (t *streams) syncAllLocked(ctx context.Context, goals []goal) error {
	for {
		var duties []duty
		var other *stream
		for _, g := range goals {
			s := g.stream
			if s.final != nil || s.durable >= g.end {
				continue
			}
			if d, ok := t.claimLocked(s); ok {
				duties = append(duties, d)
			} else {
				other = s
			}
		}
		switch {
		case len(duties) > 0:
			t.mu.Unlock()
			t.syncFiles(duties)
			t.mu.Lock()
			t.settleLocked(duties)
			t.restDutiesLocked(duties)
		case other == nil:
			return nil
		default:
			if err := t.awaitStreamLocked(ctx, other); err != nil {
				return err
			}
		}
	}
}

// claimLocked takes on the sync of a stream, unless another goroutine has it, or is closing
// the file and syncs it first.
func (t *streams) claimLocked(s *stream) (duty, bool) {
	h := &t.files.handles
	h.Mu.Lock()
	defer h.Mu.Unlock()
	x := s.file
	if s.syncs || x == nil || x.Gone {
		return duty{}, false
	}
	h.UseLocked(&x.Handle)
	return newDutyLocked(s, x), true
}

// settleLocked ends duties: what they cover is durable, or the stream has failed for
// good.
func (t *streams) settleLocked(duties []duty) {
	t.counts.Syncs += int64(len(duties))
	for _, d := range duties {
		s := d.stream
		s.syncs = false
		switch {
		case d.Err == nil || d.Err == holdfast.ErrUnlinked && (d.file.replaced || t.renames[d.file.key] > 0):
			s.durable = max(s.durable, d.covers)
			s.age.Durable(s.durable)
			s.nameless = s.nameless && !d.Named
			s.settledLocked()
		case d.Err == holdfast.ErrUnlinked && s.final == nil:
			t.loseLocked(s, d.covers)
			d.file.removed = true
			t.files.handles.Retire(&d.file.Handle)
		case s.final == nil:
			t.endLocked(s, d.Err)
		}
		t.countLocked(s)
		s.changed.wakeLocked()
	}
}

// settledLocked is called when more of the stream is durable, or its file's name is.
func (s *stream) settledLocked() {
	if !s.nameless {
		s.safe = s.durable
	}
}

// restDutiesLocked gives the files of duties back.
func (t *streams) restDutiesLocked(duties []duty) {
	t.mu.Unlock()
	for _, d := range duties {
		t.files.handles.Rest(&d.file.Handle)
	}
	t.mu.Lock()
	for _, d := range duties {
		t.tidyLocked(d.stream)
	}
}

func syncFailed(s *stream, err error) *Error {
	return &Error{Path: s.given, Op: string(retry.OpSync), Attempts: 1, Outcome: holdfast.OutcomeUncertain,
		Err: fmt.Errorf("unknown from byte %d of those appended: %w", s.durable, err)}
}

// syncFiles syncs the files of duties, many at once.
func (t *streams) syncFiles(duties []duty) {
	t.mu.Lock()
	e := t.errseq
	t.mu.Unlock()
	start := time.Now()
	t.durable.SyncOpen(e, len(duties), func(i int) *durable.OpenFile { return &duties[i].OpenFile }, func(i int) error {
		d := &duties[i]
		err := t.files.disk.Datasync(d.file.Fd)
		if err != nil && d.nameless {
			t.files.failFile(d.file.Fd, d.Dir)
		}
		return err
	})
	took := time.Since(start)
	t.mu.Lock()
	t.counts.Sync.Add(took)
	t.counts.LongestSync = max(t.counts.LongestSync, took)
	t.mu.Unlock()
	if e != nil && !e.Works() {
		t.closeErrseq(e)
	}
	for i := range duties {
		if d := &duties[i]; d.Err == nil {
			d.Err = t.lookForName(d.file)
		}
	}
}

// lookForName says if a file that was synced has lost its last name: nothing will
// find it after a crash.
func (t *streams) lookForName(x *streamFile) error {
	var is sys.Stat
	tries := t.files.tries(x.Path)
	err := tries.Insist(context.Background(), retry.OpStat, func() (err error) {
		is, err = t.files.disk.StatFD(x.Fd)
		return err
	})
	if err == nil && is.Links == 0 {
		return holdfast.ErrUnlinked
	}
	return err
}

// syncDropped syncs a file before it is closed, if the policy syncs and it has to be.
// It syncs the other open files too, because their turn will come soon.
func (t *streams) syncDropped(x *streamFile) {
	s := x.stream
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.policy.Sync.Mode == holdfast.SyncNever || s.final != nil || s.durable == s.flushed || x.removed {
		return
	}
	duties := []duty{newDutyLocked(s, x)}
	var open []*stream
	h := &t.files.handles
	h.Mu.Lock()
	for _, same := range t.byFile {
		for _, x := range same {
			open = append(open, x.stream)
		}
	}
	h.Mu.Unlock()
	for _, other := range open {
		if other.final == nil && other.durable < other.flushed {
			if d, ok := t.claimLocked(other); ok {
				duties = append(duties, d)
			}
		}
	}
	t.mu.Unlock()
	t.syncFiles(duties)
	t.mu.Lock()
	t.settleLocked(duties)
	t.restDutiesLocked(duties[1:])
}

// watch returns the errseq descriptor that is open before the caller writes to a new descriptor
// in the directory, or nil. There is one, of the file system that was first written to; files
// elsewhere are synced one by one.
func (t *streams) watch(d *handles.Dir, is sys.Stat) *durable.Errseq {
	if t.policy.Sync.Mode == holdfast.SyncNever || t.policy.Sync.Mode == holdfast.SyncEach || !d.SyncsAll || d.LacksJournal || is.Device != d.Is.Device {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.errseq == nil && !t.watching {
		t.watching = true
		t.mu.Unlock()
		fd := t.files.openErrseq(d.Path, is.Device)
		t.mu.Lock()
		t.watching = false
		if fd >= 0 {
			t.errseq = &durable.Errseq{ID: is.Device, Fd: fd}
		}
	}
	if t.errseq == nil || t.errseq.ID != is.Device {
		return nil
	}
	return t.errseq
}

// closeErrseq is called when nothing is left to be synced by the descriptor, or when it has failed.
func (t *streams) closeErrseq(e *durable.Errseq) {
	t.mu.Lock()
	open := t.errseq == e
	if open {
		t.errseq = nil
	}
	t.mu.Unlock()
	if open && e != nil {
		t.files.closeErrseq(e.Fd)
	}
}
