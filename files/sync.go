package files

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/distinct"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/handles"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// mostSyncs is how many files are synced at once: they wait for the disk, and share
// the commits of the file system's journal.
const mostSyncs = 64

// A goal is how far a stream is to be durable.
type goal struct {
	stream *stream
	end    int64
}

// A duty is a sync of a stream's file that one goroutine has taken on.
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
	durable.Abreast(t.files.options.Workers, len(goals), func(i int) {
		g := goals[i]
		t.mu.Lock()
		defer t.mu.Unlock()
		errs[i] = t.flushLocked(ctx, g.stream, g.end)
	})
	t.mu.Lock()
	return distinct.Join(errs...)
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
		err = distinct.Join(t.syncNamesLocked(ctx, goals), t.syncLeftLocked(ctx))
	}
	var finals []error
	for _, g := range goals {
		if g.stream.final != nil {
			finals = append(finals, g.stream.final)
		}
	}
	return distinct.Join(flushErr, err, distinct.Join(finals...))
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
		switch {
		case d.err == nil || d.file.replaced && d.err == holdfast.ErrUnlinked:
			s.durable = max(s.durable, d.covers)
			s.nameless = s.nameless && !(d.together && t.files.names.Losses(s.named.dir) == s.named.losses)
			s.settledLocked()
		case d.err == holdfast.ErrUnlinked && s.final == nil:
			t.loseLocked(s, d.covers)
			d.file.removed = true
			t.files.handles.Retire(&d.file.Handle)
		case s.final == nil:
			s.final = syncFailed(s, d.err)
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

func syncFailed(s *stream, err error) error {
	return &Error{Path: s.name.path, Op: string(retry.OpSync), Attempts: 1, Outcome: holdfast.OutcomeUncertain,
		Err: fmt.Errorf("unknown from byte %d of those appended: %w", s.durable, err)}
}

// syncFiles syncs the files of duties, many at once.
func (t *streams) syncFiles(duties []duty) {
	most := mostSyncs
	if t.syncTogether(duties) {
		most = 1
	}
	durable.Abreast(most, len(duties), func(i int) {
		d := &duties[i]
		if !d.together {
			if d.err = t.files.disk.Datasync(d.file.Fd); d.err != nil {
				t.mu.Lock()
				nameless, dir := d.stream.nameless, d.stream.named.dir
				t.mu.Unlock()
				if nameless {
					t.files.failFile(d.file.Fd, dir)
				}
			}
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
	err := tries.Insist(context.Background(), retry.OpStat, func() (err error) {
		is, err = t.files.disk.StatFD(x.Fd)
		return err
	})
	if err == nil && is.Links == 0 {
		return holdfast.ErrUnlinked
	}
	return err
}

// syncDropped syncs a file before it is closed, if the policy syncs and it has to be,
// and the other open files with it: it will be their turn soon.
func (t *streams) syncDropped(x *streamFile) {
	s := x.stream
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.policy.Sync.Mode == holdfast.SyncNever || s.final != nil || s.durable == s.flushed || x.removed {
		return
	}
	s.syncs = true
	duties := []duty{{stream: s, file: x, covers: s.flushed}}
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

// leastTogether is from how many files on one sync of their whole file system is
// the cheaper step: below, the syncs of the files share one commit just as well.
const leastTogether = 8

// A streamErrseq is a descriptor of one file system, opened before anything was
// written there: SyncAll on it reports every failure since. There is one, of the file
// system that was first written to; files elsewhere are synced one by one.
//
// It reports a failure once, and does not name the file. So one goroutine at a time uses
// it, and none after a failure. Then its files are synced one by one, on their own
// descriptors, which have reported nothing yet.
type streamErrseq struct {
	wanted bool // a goroutine has opened it, or tries to
	number int  // counts those that were opened; 0 is none
	open   bool
	fd     int
	device uint64
	use    chan struct{} // holds a value while a goroutine syncs with it, which waits for no turn
}

// watch opens an errseq descriptor if that may be of use and none is open. It returns the
// number of the one that is open before the caller writes to a new descriptor in the
// directory, or 0.
func (t *streams) watch(d *handles.Dir, is sys.Stat) int {
	if t.policy.Sync.Mode == holdfast.SyncNever || t.policy.Sync.Mode == holdfast.SyncEach || !d.SyncsAll || d.LacksJournal || is.Device != d.Is.Device {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &t.errseq
	if !w.wanted {
		w.wanted = true
		t.mu.Unlock()
		fd := t.files.openErrseq(d.Path, is.Device)
		t.mu.Lock()
		w.wanted, w.open, w.fd, w.device = fd >= 0, fd >= 0, fd, is.Device
		w.number++
	}
	if !w.open || w.device != is.Device {
		return 0
	}
	return w.number
}

// closeErrseq is called when nothing is left to be synced, or when it has failed.
func (t *streams) closeErrseq() {
	w := &t.errseq
	t.mu.Lock()
	open, fd := w.open, w.fd
	w.wanted, w.open = false, false
	t.mu.Unlock()
	if open {
		t.files.closeErrseq(fd)
	}
}

// syncTogether syncs the files of duties that the errseq descriptor answers for in one step, if
// that is cheaper, and reports whether it did.
func (t *streams) syncTogether(duties []duty) bool {
	w := &t.errseq
	w.use <- struct{}{}
	defer func() { <-w.use }()
	t.mu.Lock()
	open, fd, number, device := w.open, w.fd, w.number, w.device
	t.mu.Unlock()
	n := 0
	for _, d := range duties {
		if d.file.errseq == number {
			n++
		}
	}
	if !open || n < leastTogether {
		return false
	}
	if dirty, ok := vfs.Dirty(t.files.disk); !ok || !durable.WorthSyncAll(n, dirty) {
		return false
	}
	// Its failure counts for no names. Most often a file lost bytes, and the sync of that file
	// reports it. If names were lost, the file system has stopped, and every sync reports it.
	if t.files.names.InTurn(keyed.Key{Device: device}, func() error { return vfs.SyncAll(t.files.disk, fd) }) != nil {
		t.closeErrseq()
		return false
	}
	for i := range duties {
		duties[i].together = duties[i].file.errseq == number
	}
	t.awaitDirSyncs(duties)
	return true
}

// awaitDirSyncs returns when no sync of the duties' directories is under way that began
// before: one that fails may have lost names before all was synced, and is counted then.
func (t *streams) awaitDirSyncs(duties []duty) {
	awaited := map[keyed.Key]bool{}
	for _, d := range duties {
		t.mu.Lock()
		dir := d.stream.named.dir
		t.mu.Unlock()
		if !awaited[dir] {
			awaited[dir] = true
			t.files.names.Await(dir)
		}
	}
}
