package holdfast

import (
	"context"
	"errors"
)

// A leftover is a file system on which files were closed, under sync=never, that
// nobody has synced. Their paths are not kept: there may be any number of them.
type leftover struct {
	folder   string // of one of them
	syncsAll bool
	count    int   // of all files left so far, at the last one
	failed   error // of the sync: final
}

var errLeft = errors.New("files there were closed to make room before they were synced; use sync=close to have them synced first")

// leaveLocked counts what was written to a file, which is closed, as no more the
// stream's to sync. It is for sync=never.
func (t *streams) leaveLocked(x *streamFile) {
	s := x.stream
	if s.durable == s.flushed && !s.nameless {
		return
	}
	s.durable, s.nameless = s.flushed, true
	t.forgotten++
	failed := t.left[x.key.device].failed
	t.left[x.key.device] = leftover{s.name.folder, x.syncsAll, t.forgotten, failed}
}

// syncLeftLocked syncs the file systems on which files were left.
func (t *streams) syncLeftLocked(ctx context.Context) error {
	var errs []error
	for device, l := range t.left {
		if l.failed == nil {
			t.mu.Unlock()
			err := t.syncLeft(ctx, device, l)
			t.mu.Lock()
			if err == nil && t.left[device] == l {
				delete(t.left, device)
			}
			errs = append(errs, err)
		}
		errs = append(errs, t.left[device].failed)
	}
	return joinAll(errs...)
}

func (t *streams) syncLeft(ctx context.Context, device uint64, l leftover) error {
	failure := func(op fileOp, err error) error {
		return &FileError{Path: l.folder, Op: string(op), Attempts: 1, Outcome: OutcomeUncertain, Err: err}
	}
	if !l.syncsAll {
		return failure(opSync, errLeft)
	}
	h := &t.files.handles
	if err := h.begin(ctx); err != nil {
		return failure(opWait, err)
	}
	defer h.end()
	d, err := t.findFolder(ctx, l.folder)
	if err != nil {
		return failure(opOpen, err)
	}
	defer h.rest(&d.handle)
	t.witness.use <- struct{}{} // who is second must not be told that all is well
	defer func() { <-t.witness.use }()
	if err = t.files.syncThrough(d, t.files.disk.SyncAll); err != nil {
		err = failure(opSync, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts.syncs++
	if now := t.left[device]; err != nil {
		now.failed = err
		t.left[device] = now
	}
	return nil
}
