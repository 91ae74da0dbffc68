package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/errjoin"
	"github.com/holdfast-go/holdfast/internal/handles"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/retry"
)

// An unsyncedName is a name that is to be made durable, for the stream's file of this number.
type unsyncedName struct {
	stream *stream
	births int
}

// syncNamesLocked makes the names of the streams' files durable, and the forgotten streams' names. Each
// directory is synced once. It returns an error if ctx ended, or a directory could not be opened for a
// cause that may pass: then nothing is lost yet, and again is true.
func (t *streams) syncNamesLocked(ctx context.Context, targets []target) (again bool, err error) {
	dirs := map[string][]unsyncedName{}
	for path := range t.forgotten.names {
		dirs[path] = nil
	}
	for _, g := range targets {
		s := g.stream
		if s.dirUnsynced && s.final == nil && s.durable > 0 && s.site != (nameSite{}) {
			dirs[s.dir] = append(dirs[s.dir], unsyncedName{s, s.births})
		}
	}
	if len(dirs) == 0 {
		return false, nil
	}
	paths := slices.Collect(maps.Keys(dirs))
	sites, synced := make([]nameSite, len(paths)), make([]error, len(paths))
	before := maps.Clone(t.forgotten.names)
	t.mu.Unlock()
	durable.Abreast(durable.Waiters, len(paths), func(i int) { sites[i], synced[i] = t.syncDirAt(ctx, paths[i]) })
	t.mu.Lock()
	var errs []error
	for i, path := range paths {
		all, site, err := dirs[path], sites[i], synced[i]
		forgotten, some := before[path]
		if end := (ended{}); errors.As(err, &end) {
			return again, appendError(path, opWait, end.error)
		}
		if later := (unopened{}); errors.As(err, &later) {
			again = true
			errs = append(errs, t.unopenedLocked(path, all, some && !forgotten.unopened, later.error))
			continue
		}
		if t.forgotten.names[path] == forgotten {
			delete(t.forgotten.names, path)
			t.unsynced -= forgotten.bytes
		}
		if why := nameFailure(site, forgotten.nameSite, err); some && why != nil {
			t.loseNamesLocked(path, forgotten.dir, why)
		} else if err != nil && len(t.forgotten.left) > 0 {
			t.loseNamesLocked(path, keyed.Key{}, err)
		}
		t.namedLocked(all, site, err)
	}
	return again, errjoin.Join(errs...)
}

// unopenedLocked notes, for the streams and forgotten files with names in it, why a directory could not be
// opened. It reports that once, until it works: isNew says that it is new for forgotten files.
func (t *streams) unopenedLocked(path string, all []unsyncedName, isNew bool, why error) error {
	err := &Error{Path: path, Op: string(retry.OpOpen), Attempts: t.options.Retry.Attempts, Outcome: holdfast.OutcomeUncertain, Err: why}
	for _, n := range all {
		isNew = isNew || n.stream.dirErr == nil
		n.stream.dirErr = err
	}
	if now, ok := t.forgotten.names[path]; ok {
		now.unopened = true
		t.forgotten.names[path] = now
	}
	if isNew {
		t.reportLocked(err, 0)
	}
	return err
}

// namedLocked gives the result of a directory's sync to the streams with names in it.
func (t *streams) namedLocked(all []unsyncedName, site nameSite, err error) {
	for _, n := range all {
		s := n.stream
		why := nameFailure(site, s.site, err)
		switch {
		case s.site == (nameSite{}): // its file was removed meanwhile
		case why == nil:
			s.dirUnsynced, s.dirErr = s.births != n.births, nil
			s.settledLocked()
		case s.final == nil:
			t.endLocked(s, fmt.Errorf("its directory: %w", why))
		}
		t.countLocked(s)
		s.changed.wakeLocked()
	}
}

// syncDirAt makes the names in the directory at a path durable, in a turn.
func (t *streams) syncDirAt(ctx context.Context, path string) (nameSite, error) {
	if err := t.handles.Begin(ctx); err != nil {
		return nameSite{}, ended{err}
	}
	defer t.handles.End()
	d, err := t.findDir(ctx, path)
	if err != nil && retry.RemedyFor(retry.OpOpen, err) != retry.GiveUp {
		return nameSite{}, unopened{err}
	}
	if err != nil {
		return nameSite{}, err
	}
	defer t.handles.Rest(&d.Handle)
	if d.NamesOnly {
		t.handles.ForgetDir(d) // the next call may be permitted to read it
		return nameSite{}, unopened{handles.Unreadable(path, fs.ErrPermission)}
	}
	if err := t.syncDir(d); err != nil {
		return nameSite{}, err
	}
	return nameSite{dir: d.Key(), losses: t.names.Losses(d.Key())}, nil
}

// findDir opens a directory that should be there, with retries.
func (t *streams) findDir(ctx context.Context, path string) (*handles.Dir, error) {
	for tries := t.tries(path); ; {
		d, err := t.handles.UseDir(path, t.era.Add(1))
		if err == nil || !tries.Again(ctx, retry.OpOpen, &err) {
			return d, err
		}
		if ctx.Err() != nil {
			return nil, ended{context.Cause(ctx)}
		}
	}
}

// unopened is why a directory could not be opened, for a cause that may pass.
type unopened struct{ error }

func (e unopened) Unwrap() error { return e.error }

// ended is the cause why a context ended, where other errors are the disk's.
type ended struct{ error }

func (e ended) Unwrap() error { return e.error }
