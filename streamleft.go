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
	t.left[x.key.device] = leftover{s.name.folder, x.syncsAll}
}

// syncLeftLocked syncs the file systems on which files were left.
func (t *streams) syncLeftLocked(ctx context.Context) error {
	var errs []error
	for device, l := range t.left {
		t.mu.Unlock()
		op, err := t.syncLeft(ctx, l)
		t.mu.Lock()
		if err == nil {
			delete(t.left, device)
			t.counts.syncs++
			continue
		}
		errs = append(errs, &FileError{Path: l.folder, Op: string(op), Attempts: 1, Outcome: OutcomeUncertain, Err: err})
	}
	return joinAll(errs...)
}

func (t *streams) syncLeft(ctx context.Context, l leftover) (fileOp, error) {
	if !l.syncsAll {
		return opSync, errLeft
	}
	h := &t.files.handles
	if err := h.begin(ctx); err != nil {
		return opWait, err
	}
	defer h.end()
	d, err := h.useFolder(l.folder, t.files.era.Add(1))
	if err != nil {
		return opOpen, err
	}
	defer h.rest(&d.handle)
	return opSync, t.files.disk.SyncAll(d.fd)
}
