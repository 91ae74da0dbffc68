package holdfast

import (
	"context"
	"errors"
	"fmt"
)

// A nameSite is the folder that a file's name is in, and how many syncs of it had
// failed before: after another one it can't be told whether the name was lost.
type nameSite struct {
	folder turnKey
	losses int
}

// forgottenNames is the names in one folder of files that were forgotten before these
// were durable.
type forgottenNames struct {
	nameSite
	upTo int // the number of the last of them
}

// A naming is a name that is to be made durable, and of which of the stream's files.
type naming struct {
	stream *stream
	births int
}

// syncNamesLocked makes the names of the streams' files durable, and those that were
// forgotten before. Each folder is synced once. It returns an error if ctx ended, or a
// folder could not be opened for a cause that may pass: then nothing is lost yet.
func (t *streams) syncNamesLocked(ctx context.Context, goals []goal) error {
	folders := map[string][]naming{}
	for path := range t.names {
		folders[path] = nil
	}
	for _, g := range goals {
		s := g.stream
		if s.nameless && s.final == nil && s.durable > 0 {
			folders[s.name.folder] = append(folders[s.name.folder], naming{s, s.births})
		}
	}
	var errs []error
	for path, all := range folders {
		forgotten, some := t.names[path]
		t.mu.Unlock()
		site, err := t.syncFolder(ctx, path)
		t.mu.Lock()
		if end := (ended{}); errors.As(err, &end) {
			return appendError(path, opWait, end.error)
		}
		if later := (unopened{}); errors.As(err, &later) {
			errs = append(errs, t.unopenedLocked(path, all, later.error))
			continue
		}
		if t.names[path] == forgotten {
			delete(t.names, path)
		}
		if why := nameFailure(site, forgotten.nameSite, err); some && why != nil {
			t.loseNamesLocked(path, why)
		} else if err != nil && len(t.left) > 0 {
			t.loseNamesLocked(path, err)
		}
		t.namedLocked(all, site, err)
	}
	return joinAll(errs...)
}

// loseNamesLocked is told why names may be lost in a folder of files that are forgotten.
func (t *streams) loseNamesLocked(folder string, why error) {
	if t.lostNames == nil {
		t.lostNames = map[string]error{}
	}
	t.lostNames[folder] = &FileError{Path: folder, Op: string(opSync), Attempts: 1, Outcome: OutcomeUncertain, Err: why}
}

// unopenedLocked is told that a folder could not be opened to sync it: those names are
// not durable, and the next call tries again.
func (t *streams) unopenedLocked(path string, all []naming, err error) error {
	err = &FileError{Path: path, Op: string(opOpen), Attempts: t.files.options.Retry.Attempts, Outcome: OutcomeUncertain, Err: err}
	for _, n := range all {
		n.stream.unnamed = err
	}
	return err
}

// namedLocked is told what came of the sync of a folder for these streams' names.
func (t *streams) namedLocked(all []naming, site nameSite, err error) {
	for _, n := range all {
		s := n.stream
		why := nameFailure(site, s.named, err)
		switch {
		case why == nil:
			s.nameless, s.unnamed = s.births != n.births, nil
		case s.final == nil:
			s.final = syncFailed(s, fmt.Errorf("its folder: %w", why))
		}
		s.changed.tellLocked()
	}
}

// nameFailure returns why a name is not durable after a sync of its folder.
func nameFailure(synced, named nameSite, err error) error {
	switch {
	case err != nil:
		return err
	case synced.folder != named.folder:
		return errFolderMoved
	case synced.losses != named.losses:
		return errFolderLost
	}
	return nil
}

// syncFolder makes the names in a folder durable, in a turn.
func (t *streams) syncFolder(ctx context.Context, path string) (nameSite, error) {
	f := t.files
	if err := f.handles.begin(ctx); err != nil {
		return nameSite{}, ended{err}
	}
	defer f.handles.end()
	d, err := t.findFolder(ctx, path)
	if err != nil && remedyFor(opOpen, err) != giveUp {
		return nameSite{}, unopened{err}
	}
	if err != nil {
		return nameSite{}, err
	}
	defer f.handles.rest(&d.handle)
	if err := f.syncFolder(d); err != nil {
		return nameSite{}, err
	}
	return nameSite{d.key(), f.handles.losses(d)}, nil
}

// findFolder opens a folder that should be there, with retries.
func (t *streams) findFolder(ctx context.Context, path string) (*folder, error) {
	for tries := t.files.tries(); ; {
		d, err := t.files.handles.useFolder(path, t.files.era.Add(1))
		if err == nil || !tries.again(ctx, opOpen, &err) {
			return d, err
		}
		if ctx.Err() != nil {
			return nil, ended{context.Cause(ctx)}
		}
	}
}

// unopened is why a folder could not be opened, for a cause that may pass.
type unopened struct{ error }

func (e unopened) Unwrap() error { return e.error }

// ended is the cause why a context ended, where other errors are the disk's.
type ended struct{ error }

func (e ended) Unwrap() error { return e.error }
