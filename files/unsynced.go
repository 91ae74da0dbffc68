package files

import (
	"context"
	"errors"
	"io/fs"
	"maps"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/errjoin"
	"github.com/holdfast-go/holdfast/internal/handles"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

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

// leftNames is how many syncs of a directory, or of all, had failed before the first of its
// names was given. A later failure was reported to its caller, and SyncAll does not repeat it.
type leftNames struct {
	dir    string
	losses int
}

var errLeft = errors.New("files there were closed to make room before they were synced; use sync=close to have them synced first")

// leaveLocked notes a closed file with unsynced bytes as left to syncLeftLocked. The stream
// no longer syncs it. It is for sync=never.
func (t *streams) leaveLocked(x *streamFile) {
	s := x.stream
	if s.durable == s.flushed && !s.nameless {
		return
	}
	l := t.left[x.key.Device]
	if _, ok := l.names[s.named.dir]; s.nameless && !ok {
		if l.names == nil {
			l.names = map[keyed.Key]leftNames{}
		}
		l.names[s.named.dir] = leftNames{s.dir, s.named.losses}
	}
	s.durable, s.nameless = s.flushed, true
	t.forgotten++
	l.dir, l.syncsAll, l.count = s.dir, x.syncsAll, t.forgotten
	t.left[x.key.Device] = l
}

// syncLeftLocked syncs the file systems on which files were left.
func (t *streams) syncLeftLocked(ctx context.Context) error {
	var errs []error
	for device, l := range t.left {
		if l.failed == nil {
			l.names = maps.Clone(l.names) // others may leave files meanwhile
			t.mu.Unlock()
			err := t.syncLeft(ctx, device, l)
			t.mu.Lock()
			if now := t.left[device]; err == nil && now.failed == nil && now.count == l.count {
				delete(t.left, device)
			}
			errs = append(errs, err)
		}
		errs = append(errs, t.left[device].failed)
	}
	return errjoin.Join(errs...)
}

func (t *streams) syncLeft(ctx context.Context, device uint64, l leftover) error {
	failure := func(op retry.Op, err error) error {
		return &Error{Path: l.dir, Op: string(op), Attempts: 1, Outcome: holdfast.OutcomeUncertain, Err: err}
	}
	if !l.syncsAll {
		return failure(retry.OpSync, errLeft)
	}
	h := &t.files.handles
	if err := h.Begin(ctx); err != nil {
		return failure(opWait, err)
	}
	defer h.End()
	d, err := t.findDir(ctx, l.dir)
	if err != nil {
		return failure(retry.OpOpen, err)
	}
	defer h.Rest(&d.Handle)
	if d.NamesOnly {
		h.ForgetDir(d)
		return failure(retry.OpOpen, handles.Unreadable(l.dir, fs.ErrPermission))
	}
	err = t.files.names.Whole(device, func() error { return t.files.syncBy(d, func(fd int) error { return vfs.SyncAll(t.files.disk, fd) }) })
	for directory, n := range l.names {
		if err != nil || t.files.names.Settled(directory, n.losses) == nil {
			delete(l.names, directory)
		}
	}
	if err != nil {
		err = failure(retry.OpSync, err)
	} else {
		t.files.countDoubt(d)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts.Syncs++
	for directory, n := range l.names { // those that are left have lost some
		t.loseNamesLocked(n.dir, directory, durable.ErrDirLost)
	}
	if now := t.left[device]; err != nil {
		now.failed = err
		t.left[device] = now
	}
	return nil
}
