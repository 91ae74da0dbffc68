package files

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/errjoin"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/stats"
)

// streams is the table of the files that are appended to. It has one [stream] for each path
// with bytes in memory, an open descriptor, or a failure to report. Any other
// path is forgotten, so that memory does not grow with all paths that ever were.
//
// Its lock guards the table, the streams in it, and all that openFiles, flusher and syncer have. It is
// held for a look-up and a copy; no system call is made under it. It may be held when
// handles.mu is taken, never the other way.
type streams struct {
	*ground
	policy holdfast.Policy

	mu         sync.Mutex
	paths      map[string]*stream
	calls      int    // under way that look at more than memory
	closing    bool   // no call may begin
	idle       signal // when the last call has ended and closing is set
	background sync.WaitGroup

	unsynced  int64 // flushed bytes that are not durable with their names; counted under a sync by bytes
	forgotten forgotten
	counts    stats.Counts
	healed    int64
}

func (t *streams) init(g *ground) {
	t.ground, t.policy = g, g.options.Policy
	t.paths = map[string]*stream{}
	t.forgotten.names = map[string]forgottenNames{}
	t.forgotten.left = map[uint64]leftover{}
	t.forgotten.lost = map[string]lostNames{}
}

// pathOf returns what a stream is known by: its bytes may be written when the working directory
// is another one.
func (g *ground) pathOf(path string) (string, error) {
	if g.options.Root != nil {
		return path, nil
	}
	absolute, err := sys.Absolute(path)
	if err != nil {
		return "", appendError(path, retry.OpOpen, fmt.Errorf("working directory: %w", err))
	}
	return absolute, nil
}

// useLocked returns the stream of an absolute path, which is not forgotten until rest.
func (t *streams) useLocked(path, given string) (*stream, error) {
	s := t.paths[path]
	if s == nil {
		name, err := newName(string([]byte(path))) // the caller's string may be part of a large one
		if err != nil {
			return nil, err
		}
		s = &stream{name: name, given: name.path, naming: naming{dir: name.dir, dirUnsynced: true}}
		if given != path {
			s.given = string([]byte(given))
		}
		t.paths[name.path] = s
	}
	s.users++
	return s, nil
}

// restLocked ends the use of a stream.
func (t *streams) restLocked(s *stream) {
	s.users--
	t.tidyLocked(s)
}

// tidyLocked forgets a stream with nothing left to do or to report.
func (t *streams) tidyLocked(s *stream) {
	if s.users > 0 {
		return
	}
	s.lost = nil
	if s.busy || s.syncing || s.waitsLocked() > 0 || s.failed != nil || s.unreported != nil || s.final != nil || s.gone > 0 {
		return
	}
	if t.policy.Sync.Mode != holdfast.SyncNever && s.durable < s.flushed {
		return
	}
	if t.fileOf(s) != nil || t.paths[s.name.path] != s {
		return
	}
	t.forgetLocked(s)
}

// forgetLocked lets the next call for the path begin a new stream.
func (t *streams) forgetLocked(s *stream) {
	if s.dirUnsynced && t.policy.Sync.Mode != holdfast.SyncNever && s.site != (nameSite{}) {
		t.forgetNameLocked(s.dir, s.site, s.counted)
	} else {
		t.unsynced -= s.counted
	}
	s.counted = 0
	delete(t.paths, s.name.path)
}

// fileOf returns the stream's descriptor, or nil.
func (t *streams) fileOf(s *stream) *streamFile {
	t.handles.Mu.Lock()
	defer t.handles.Mu.Unlock()
	return s.file
}

// awaitLocked waits, without the lock, until wakeLocked is called, or returns the
// cause why ctx ended.
func (t *streams) awaitLocked(ctx context.Context, g *signal) error {
	if g.c == nil {
		g.c = make(chan struct{})
	}
	c := g.c
	t.mu.Unlock()
	defer t.mu.Lock()
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// awaitStreamLocked waits until something has changed about the stream.
func (t *streams) awaitStreamLocked(ctx context.Context, s *stream) error {
	s.users++
	err := t.awaitLocked(ctx, &s.changed)
	s.users--
	if err != nil {
		return appendError(s.given, opWait, err)
	}
	return nil
}

// doneLocked ends a call.
func (t *streams) doneLocked() {
	t.calls--
	if t.calls == 0 && t.closing {
		t.idle.wakeLocked()
	}
}

// A target is an offset up to which a stream is to be flushed or durable.
type target struct {
	stream *stream
	end    int64
}

// targetsLocked returns all streams, each with the end of its accepted bytes.
// The streams are in use until restTargetsLocked.
func (t *streams) targetsLocked() []target {
	targets := make([]target, 0, len(t.paths))
	for _, s := range t.paths {
		s.users++
		targets = append(targets, target{s, s.accepted})
	}
	return targets
}

// unsyncedTargetsLocked returns the streams with flushed bytes that are not durable with their name,
// each with the end of these. They are in use, as with targetsLocked.
func (t *streams) unsyncedTargetsLocked() (targets []target) {
	for _, s := range t.paths {
		if s.final == nil && s.safe < s.flushed {
			s.users++
			targets = append(targets, target{s, s.flushed})
		}
	}
	return targets
}

func (t *streams) restTargetsLocked(targets []target) {
	for _, g := range targets {
		t.restLocked(g.stream)
	}
}

// reportLocked counts a failure, and has it reported.
func (t *streams) reportLocked(e *Error, atRisk int64) {
	told := *e
	told.AtRisk = atRisk
	t.counts.Errors++
	t.failures.Add(&told)
}

// endLocked makes a failed sync final for a stream.
func (t *streams) endLocked(s *stream, err error) {
	e := &Error{Path: s.given, Op: string(retry.OpSync), Attempts: 1, Outcome: holdfast.OutcomeUncertain,
		Err: fmt.Errorf("unknown from byte %d of those appended: %w", s.durable, err)}
	s.final = e
	t.reportLocked(e, s.accepted-s.durable)
	t.countLocked(s)
}

// countLocked counts anew what of the stream is flushed and not durable with its name. A stream with
// a failed sync counts for nothing: no later sync helps it.
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
}

// forgotten has the names and file systems of streams that are not in the table any more. Their paths
// are not kept: there may be any number of them.
type forgotten struct {
	names map[string]forgottenNames // by directory: names that are not durable yet
	count int                       // names and files that were forgotten
	lost  map[string]lostNames      // by directory: names that may be lost. Every call for a path in there returns why
	left  map[uint64]leftover       // by device: files that were closed unsynced, under sync=never
}

// forgottenNames is the names in one directory of files that were forgotten before these
// were durable.
type forgottenNames struct {
	nameSite
	upTo     int   // the number of the last of them
	bytes    int64 // of these files in streams.unsynced
	unopened bool  // the directory could not be opened when they were to be synced
}

// forgetNameLocked notes a name that may not be durable and belongs to no stream any more, of a file with
// this number of bytes in streams.unsynced.
func (t *streams) forgetNameLocked(dir string, site nameSite, bytes int64) {
	old, ok := t.forgotten.names[dir]
	if ok {
		if old.dir != site.dir { // only one of the two is at this path
			t.loseNamesLocked(dir, keyed.Key{}, errDirMoved)
		}
		site = old.nameSite // names lost since then may be any of them
	}
	t.forgotten.count++
	t.forgotten.names[dir] = forgottenNames{site, t.forgotten.count, old.bytes + bytes, old.unopened}
}

// lostNames is why names of forgotten files may be lost in a directory. The field is holds the
// zero key where only the directory's path is known.
type lostNames struct {
	is  keyed.Key
	why error
}

// loseNamesLocked notes why forgotten files may have lost their names in a directory.
func (t *streams) loseNamesLocked(dir string, is keyed.Key, why error) {
	_, known := t.forgotten.lost[dir]
	lost := &Error{Path: dir, Op: string(retry.OpSync), Attempts: 1, Outcome: holdfast.OutcomeUncertain, Err: why}
	t.forgotten.lost[dir] = lostNames{is, lost}
	if !known {
		t.reportLocked(lost, 0)
	}
}

// lostNamesOfLocked returns why names may be lost in a directory that has this key, or is or was
// found by one of the paths.
func (t *streams) lostNamesOfLocked(is keyed.Key, paths ...string) error {
	for path, lost := range t.forgotten.lost {
		if lost.is == is && is != (keyed.Key{}) || slices.Contains(paths, path) {
			return lost.why
		}
	}
	return nil
}

// lostNamesLocked returns the directories in which forgotten files lost their names.
func (t *streams) lostNamesLocked() error {
	var errs []error
	for _, lost := range t.forgotten.lost {
		errs = append(errs, lost.why)
	}
	return errjoin.Join(errs...)
}

// nameFailure returns why a name is not durable after a sync of its directory.
func nameFailure(synced, named nameSite, err error) error {
	switch {
	case err != nil:
		return err
	case synced.dir != named.dir:
		return errDirMoved
	case synced.losses != named.losses:
		return durable.ErrDirLost
	}
	return nil
}

// A leftover is a file system with files that were closed unsynced, under sync=never.
// Their paths are not kept: there may be any number of them.
type leftover struct {
	dir      string // of one of them
	syncsAll bool
	count    int   // of all files left so far, at the last one
	failed   error // of the sync: final
	// names is the directories in which such files were given names that were not durable yet.
	names map[keyed.Key]leftNames
}

// leftNames has the number of syncs of a directory, or of all, that had failed before the first of its
// names was given. A later failure was reported to its caller, and SyncAll does not repeat it.
type leftNames struct {
	dir    string
	losses int
}

func appendError(path string, op retry.Op, err error) error {
	return &Error{Path: path, Op: string(op), Err: err}
}

// refused returns the error of an earlier failure for a call that accepted no data.
func refused(err error) error {
	if failed, ok := err.(*Error); ok {
		again := *failed
		again.Offset, again.Outcome = 0, holdfast.OutcomeUntouched
		return &again
	}
	return err
}

// opWait, opAppend and opDiscard stand in an Error of a call that never came to a
// system call.
const (
	opWait    retry.Op = "wait"
	opAppend  retry.Op = "append"
	opDiscard retry.Op = "discard"
)
