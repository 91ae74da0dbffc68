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

var errLeft = errors.New("files there were closed to make room before they were synced; use sync=close to have them synced first")

// leaveLocked notes a closed file with unsynced bytes as left to syncLeftLocked. The stream
// no longer syncs it. It is for sync=never.
func (t *streams) leaveLocked(x *streamFile) {
	s := x.stream
	if s.durable == s.flushed && !s.dirUnsynced {
		return
	}
	l := t.forgotten.left[x.key.Device]
	if _, ok := l.names[s.site.dir]; s.dirUnsynced && !ok {
		if l.names == nil {
			l.names = map[keyed.Key]leftNames{}
		}
		l.names[s.site.dir] = leftNames{s.dir, s.site.losses}
	}
	s.durable, s.dirUnsynced = s.flushed, true
	t.forgotten.count++
	l.dir, l.syncsAll, l.count = s.dir, x.syncsAll, t.forgotten.count
	t.forgotten.left[x.key.Device] = l
}

// syncLeftLocked syncs the file systems on which files were left.
func (t *streams) syncLeftLocked(ctx context.Context) error {
	var errs []error
	for device, l := range t.forgotten.left {
		if l.failed == nil {
			l.names = maps.Clone(l.names) // others may leave files meanwhile
			t.mu.Unlock()
			err := t.syncLeft(ctx, device, l)
			t.mu.Lock()
			if now := t.forgotten.left[device]; err == nil && now.failed == nil && now.count == l.count {
				delete(t.forgotten.left, device)
			}
			errs = append(errs, err)
		}
		errs = append(errs, t.forgotten.left[device].failed)
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
	h := &t.handles
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
	err = t.names.Whole(device, func() error { return t.syncBy(d, func(fd int) error { return vfs.SyncAll(t.disk, fd) }) })
	for directory, n := range l.names {
		if err != nil || t.names.Settled(directory, n.losses) == nil {
			delete(l.names, directory)
		}
	}
	if err != nil {
		err = failure(retry.OpSync, err)
	} else {
		t.countDoubt(d)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts.Syncs++
	for directory, n := range l.names { // the remaining directories have lost some
		t.loseNamesLocked(n.dir, directory, durable.ErrDirLost)
	}
	if now := t.forgotten.left[device]; err != nil {
		now.failed = err
		t.forgotten.left[device] = now
	}
	return nil
}
