package holdfast

import (
	"context"
	"sync"
)

// A turnstile lets through one at a time for each key, in the order in which they
// queued. Files has one key for each path that a call names, so that calls of one
// path are done in their order, and one for each file that is being written, so
// that two paths of one file (a hard link, a symbolic link) do not mix their bytes.
// Who waits for a file has a path already, and never waits for a path then.
type turnstile struct {
	mu   sync.Mutex
	last map[turnKey]*ticket // of each queue
}

// A turnKey is a path, or a file's device and inode.
type turnKey struct {
	path          string
	device, inode uint64
}

// A ticket is a place in a queue. It belongs to the turnstile until leave.
type ticket struct {
	key           turnKey
	before, after *ticket       // the neighbours; before is nil for the first
	first         chan struct{} // closed when it becomes the first; nil if it was from the start
}

// queue takes the next place for a key.
func (t *turnstile) queue(k turnKey, mine *ticket) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil {
		t.last = map[turnKey]*ticket{}
	}
	*mine = ticket{key: k, before: t.last[k]}
	if mine.before != nil {
		mine.before.after = mine
		mine.first = make(chan struct{})
	}
	t.last[k] = mine
}

// await waits for the first place. If ctx ends before that it returns the cause,
// and the place is still to be left.
func (t *turnstile) await(ctx context.Context, mine *ticket) error {
	if mine.first == nil {
		return nil
	}
	select {
	case <-mine.first:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leave gives the place up, whichever it is.
func (t *turnstile) leave(mine *ticket) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, after := mine.before, mine.after
	mine.before, mine.after = nil, nil // who keeps the ticket keeps no other
	if before != nil {
		before.after = after
	}
	switch {
	case after != nil:
		after.before = before
		if before == nil {
			close(after.first)
		}
	case before != nil:
		t.last[mine.key] = before
	default:
		delete(t.last, mine.key)
	}
}
