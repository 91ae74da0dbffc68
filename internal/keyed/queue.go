// Package keyed is a keyed mutex with queues: one goroutine at a time for each key, such as a path.
package keyed

import (
	"context"
	"sync"
)

// A Queue admits one goroutine at a time for each key, in the order in which they queued. Its user
// files has two kinds of keys. A path is a key, so that calls of one path keep their order. A file
// in writing is one too: two paths of one file (a hard link, a symbolic link) must not mix their
// bytes. A goroutine queues for its path first and for its file second, never the other way round.
type Queue struct {
	mu   sync.Mutex
	Last map[Key]*Ticket // the last Ticket of each key
}

// A Key is a path, or a file's device and inode.
type Key struct {
	Path          string
	Device, Inode uint64
}

// A Ticket is a place in a queue. It belongs to the Queue until Leave.
type Ticket struct {
	key           Key
	before, after *Ticket       // the neighbours; before is nil for the first
	First         chan struct{} // closed when the Ticket becomes the first; nil if it was at Join
}

// Join takes the next place for a key.
func (t *Queue) Join(k Key, mine *Ticket) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Last == nil {
		t.Last = map[Key]*Ticket{}
	}
	*mine = Ticket{key: k, before: t.Last[k]}
	if mine.before != nil {
		mine.before.after = mine
		mine.First = make(chan struct{})
	}
	t.Last[k] = mine
}

// Await waits for the first place. If ctx ends before that, it returns the context's cause, and
// Leave must still be called.
func (t *Queue) Await(ctx context.Context, mine *Ticket) error {
	if mine.First == nil {
		return nil
	}
	select {
	case <-mine.First:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Leave gives up the place, whether it is the first or not.
func (t *Queue) Leave(mine *Ticket) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, after := mine.before, mine.after
	mine.before, mine.after = nil, nil // a kept Ticket must not keep its neighbours alive
	if before != nil {
		before.after = after
	}
	switch {
	case after != nil:
		after.before = before
		if before == nil {
			close(after.First)
		}
	case before != nil:
		t.Last[mine.key] = before
	default:
		delete(t.Last, mine.key)
	}
}
