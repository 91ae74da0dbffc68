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

// A nameSite is the directory that a file's name is in, and how many syncs of it had
// failed before. After another failure it is unknown whether the name was lost.
type nameSite struct {
	dir    keyed.Key
	losses int
	birth  int // which of the stream's files it was
}

// forgottenNames is the names in one directory of files that were forgotten before these
// were durable.
type forgottenNames struct {
	nameSite
	upTo     int   // the number of the last of them
	bytes    int64 // of these files in streams.unsynced
	unopened bool  // the directory could not be opened when they were to be synced
}

// A naming is a name that is to be made durable, for the stream's file of this number.
type naming struct {
	stream *stream
	births int
}

// forgetNameLocked notes a name that may not be durable and belongs to no stream any more, of a file with
// so many bytes in streams.unsynced.
func (t *streams) forgetNameLocked(dir string, site nameSite, bytes int64) {
	old, ok := t.names[dir]
	if ok {
		if old.dir != site.dir { // only one of the two is at this path
			t.loseNamesLocked(dir, keyed.Key{}, errDirMoved)
		}
		site = old.nameSite // what was lost since then may be any of them
	}
	t.forgotten++
	t.names[dir] = forgottenNames{site, t.forgotten, old.bytes + bytes, old.unopened}
}

// syncNamesLocked makes the names of the streams' files durable, and those that were
// forgotten before. Each directory is synced once. It returns an error if ctx ended, or a
// directory could not be opened for a cause that may pass: then nothing is lost yet.
func (t *streams) syncNamesLocked(ctx context.Context, goals []goal) error {
	dirs := map[string][]naming{}
	for path := range t.names {
		dirs[path] = nil
	}
	for _, g := range goals {
		s := g.stream
		if s.nameless && s.final == nil && s.durable > 0 && s.named != (nameSite{}) {
			dirs[s.dir] = append(dirs[s.dir], naming{s, s.births})
		}
	}
	if len(dirs) == 0 {
		return nil
	}
	paths := slices.Collect(maps.Keys(dirs))
	sites, synced := make([]nameSite, len(paths)), make([]error, len(paths))
	before := maps.Clone(t.names)
	t.mu.Unlock()
	durable.Abreast(durable.Waiters, len(paths), func(i int) { sites[i], synced[i] = t.syncDir(ctx, paths[i]) })
	t.mu.Lock()
	var errs []error
	for i, path := range paths {
		all, site, err := dirs[path], sites[i], synced[i]
		forgotten, some := before[path]
		if end := (ended{}); errors.As(err, &end) {
			return appendError(path, opWait, end.error)
		}
		if later := (unopened{}); errors.As(err, &later) {
			err := &Error{Path: path, Op: string(retry.OpOpen), Attempts: t.files.options.Retry.Attempts, Outcome: holdfast.OutcomeUncertain, Err: later.error}
			again := !some || forgotten.unopened
			for _, n := range all {
				again = again && n.stream.unnamed != nil
				n.stream.unnamed = err
			}
			if now, ok := t.names[path]; ok {
				now.unopened = true
				t.names[path] = now
			}
			if !again {
				t.reportLocked(err, 0)
			}
			if !t.closing {
				t.syncTimer.Set(true)
			}
			errs = append(errs, err)
			continue // the next call tries again, or the next sync by time
		}
		if t.names[path] == forgotten {
			delete(t.names, path)
			t.unsynced -= forgotten.bytes
		}
		if why := nameFailure(site, forgotten.nameSite, err); some && why != nil {
			t.loseNamesLocked(path, forgotten.dir, why)
		} else if err != nil && len(t.left) > 0 {
			t.loseNamesLocked(path, keyed.Key{}, err)
		}
		t.namedLocked(all, site, err)
	}
	return errjoin.Join(errs...)
}

// lostNames is why names of forgotten files may be lost in a directory. The field is holds the
// zero key where only the directory's path is known.
type lostNames struct {
	is  keyed.Key
	why error
}

// loseNamesLocked notes why forgotten files may have lost their names in a directory.
func (t *streams) loseNamesLocked(dir string, is keyed.Key, why error) {
	if t.lostNames == nil {
		t.lostNames = map[string]lostNames{}
	}
	_, known := t.lostNames[dir]
	lost := &Error{Path: dir, Op: string(retry.OpSync), Attempts: 1, Outcome: holdfast.OutcomeUncertain, Err: why}
	t.lostNames[dir] = lostNames{is, lost}
	if !known {
		t.reportLocked(lost, 0)
	}
}

// lostNamesOfLocked returns why names may be lost in a directory that has this key, or is or was
// found by one of the paths.
func (t *streams) lostNamesOfLocked(is keyed.Key, paths ...string) error {
	for path, lost := range t.lostNames {
		if lost.is == is && is != (keyed.Key{}) || slices.Contains(paths, path) {
			return lost.why
		}
	}
	return nil
}

// namedLocked gives the result of a directory's sync to the streams with names in it.
func (t *streams) namedLocked(all []naming, site nameSite, err error) {
	for _, n := range all {
		s := n.stream
		why := nameFailure(site, s.named, err)
		switch {
		case s.named == (nameSite{}): // its file was removed meanwhile
		case why == nil:
			s.nameless, s.unnamed = s.births != n.births, nil
			s.settledLocked()
		case s.final == nil:
			t.endLocked(s, fmt.Errorf("its directory: %w", why))
		}
		t.countLocked(s)
		s.changed.wakeLocked()
	}
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

// syncDir makes the names in a directory durable, in a turn.
func (t *streams) syncDir(ctx context.Context, path string) (nameSite, error) {
	f := t.files
	if err := f.handles.Begin(ctx); err != nil {
		return nameSite{}, ended{err}
	}
	defer f.handles.End()
	d, err := t.findDir(ctx, path)
	if err != nil && retry.RemedyFor(retry.OpOpen, err) != retry.GiveUp {
		return nameSite{}, unopened{err}
	}
	if err != nil {
		return nameSite{}, err
	}
	defer f.handles.Rest(&d.Handle)
	if d.NamesOnly {
		f.handles.ForgetDir(d) // the next call may be permitted to read it
		return nameSite{}, unopened{handles.Unreadable(path, fs.ErrPermission)}
	}
	if err := f.syncDir(d); err != nil {
		return nameSite{}, err
	}
	return nameSite{dir: d.Key(), losses: f.names.Losses(d.Key())}, nil
}

// findDir opens a directory that should be there, with retries.
func (t *streams) findDir(ctx context.Context, path string) (*handles.Dir, error) {
	for tries := t.files.tries(path); ; {
		d, err := t.files.handles.UseDir(path, t.files.era.Add(1))
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
