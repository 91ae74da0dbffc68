package holdfast

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// mostSyncs is how many files are synced at once: they wait for the disk, and share
// the commits of the file system's journal.
const mostSyncs = 64

// A goal is how far a stream is to be durable.
type goal struct {
	stream *stream
	end    int64
}

// A duty is a sync of a stream's file that somebody has taken on.
type duty struct {
	stream *stream
	file   *streamFile // in use
	covers int64       // the stream's bytes that are durable if it works
	// together says that it was synced with its whole file system.
	together bool
	err      error
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
	inParallel(len(goals), t.files.options.Workers, func(i int) {
		g := goals[i]
		t.mu.Lock()
		defer t.mu.Unlock()
		errs[i] = t.flushLocked(ctx, g.stream, g.end)
	})
	t.mu.Lock()
	return joinAll(errs...)
}

// inParallel calls do for each number below n, from at most most goroutines.
func inParallel(n, most int, do func(i int)) {
	var next atomic.Int64
	work := func() {
		for {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			do(i)
		}
	}
	var all sync.WaitGroup
	for range min(n, most) - 1 {
		all.Go(work)
	}
	work()
	all.Wait()
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
		err = joinAll(t.syncNamesLocked(ctx, goals), t.syncLeftLocked(ctx))
	}
	var finals []error
	for _, g := range goals {
		if g.stream.final != nil {
			finals = append(finals, g.stream.final)
		}
	}
	return joinAll(flushErr, err, joinAll(finals...))
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

// claimLocked takes on the sync of a stream, unless somebody else has, or closes the
// file and has it synced before.
func (t *streams) claimLocked(s *stream) (duty, bool) {
	h := &t.files.handles
	h.mu.Lock()
	defer h.mu.Unlock()
	x := s.file
	if s.syncs || x == nil || x.gone {
		return duty{}, false
	}
	h.useLocked(&x.handle)
	s.syncs = true
	return duty{stream: s, file: x, covers: s.flushed}, true
}

// settleLocked ends duties: what they cover is durable, or the stream has failed for
// good.
func (t *streams) settleLocked(duties []duty) {
	t.counts.syncs += int64(len(duties))
	for _, d := range duties {
		s := d.stream
		s.syncs = false
		if d.err == nil || d.file.replaced && d.err == ErrUnlinked {
			s.durable = max(s.durable, d.covers)
			s.nameless = s.nameless && !(d.together && t.files.handles.lossesOf(s.named.folder) == s.named.losses)
		} else if s.final == nil {
			s.final = syncFailed(s, d.err)
		}
		s.changed.tellLocked()
	}
}

// restDutiesLocked gives the files of duties back.
func (t *streams) restDutiesLocked(duties []duty) {
	t.mu.Unlock()
	for _, d := range duties {
		t.files.handles.rest(&d.file.handle)
	}
	t.mu.Lock()
	for _, d := range duties {
		t.tidyLocked(d.stream)
	}
}

func syncFailed(s *stream, err error) error {
	return &FileError{Path: s.name.path, Op: string(opSync), Attempts: 1, Outcome: OutcomeUncertain,
		Err: fmt.Errorf("unknown from byte %d of those appended: %w", s.durable, err)}
}

// syncFiles syncs the files of duties, many at once.
func (t *streams) syncFiles(duties []duty) {
	most := mostSyncs
	if t.syncTogether(duties) {
		most = 1
	}
	inParallel(len(duties), most, func(i int) {
		d := &duties[i]
		if !d.together {
			d.err = t.files.disk.Datasync(d.file.fd)
		}
		if d.err == nil {
			d.err = t.lookForName(d.file)
		}
	})
}

// lookForName says if a file that was synced has lost its last name: nothing will
// find it after a crash.
func (t *streams) lookForName(x *streamFile) error {
	var is sys.Stat
	tries := t.files.tries()
	err := tries.insist(background, opStat, func() (err error) {
		is, err = t.files.disk.StatFD(x.fd)
		return err
	})
	if err == nil && is.Links == 0 {
		return ErrUnlinked
	}
	return err
}

// syncDropped syncs a file before it is closed, if the policy syncs and it has to be,
// and the other open files with it: it will be their turn soon.
func (t *streams) syncDropped(x *streamFile) {
	s := x.stream
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.policy.syncs() || s.final != nil || s.durable == s.flushed {
		return
	}
	s.syncs = true
	duties := []duty{{stream: s, file: x, covers: s.flushed}}
	for _, other := range t.openFilesLocked() {
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

// openFilesLocked returns the streams that have an open file.
func (t *streams) openFilesLocked() []*stream {
	h := &t.files.handles
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []*stream
	for _, same := range t.byFile {
		for _, x := range same {
			all = append(all, x.stream)
		}
	}
	return all
}
