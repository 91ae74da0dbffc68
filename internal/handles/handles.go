// Package handles keeps descriptors open, within a limit: directories, found by their
// paths, and the files that its users keep. It closes what has been idle for longest.
package handles

import (
	"context"
	"sync"

	"github.com/holdfast-go/holdfast/internal/vfs"
)

// Cache is all descriptors that a files.Set has open: never more than its limit. The kept
// ones, directories and files that are appended to, are in use or idle. At the limit it
// closes the one that has been idle for longest, and never one in use.
//
// A goroutine that works on a file takes a turn first, which allows it perTurn descriptors
// at once. The number of turns leaves room for that: the holder of a turn waits for a close,
// never for another turn to end. To sync an open file takes no turn.
type Cache struct {
	disk  vfs.Disk
	limit int
	Syncs bool // the names in directories must be synced

	// Opened is called without a lock for each descriptor that is kept open, and Evicted for each that
	// is closed to make room. Both may be nil.
	Opened, Evicted func(path string)

	Mu      sync.Mutex
	open    int // descriptors open, being opened or being closed
	Idle    idleList
	Dirs    map[string]*Dir
	waiting int           // how many wait until a descriptor is closed, or idle
	room    chan struct{} // is closed when there is room; nil if no goroutine waits

	turns chan struct{}
	Stats HandleStats // guarded by mu
}

// perTurn is the descriptors that one turn needs at once: a directory and a file in it.
const perTurn = 2

// ErrseqDescriptors is the number of descriptors that are reserved for batches. A batch keeps one open on the
// file system until it is synced as a whole.
const ErrseqDescriptors = 2

// LeastHandles is the descriptors that one turn and a batch beside it need.
const LeastHandles = perTurn + ErrseqDescriptors

type HandleStats struct{ Hits, Misses, Evictions int64 }

// A Handle is a descriptor that is kept open.
type Handle struct {
	Fd    int
	Path  string
	Users int  // 0: it is in the list of the idle ones
	Gone  bool // it must not be taken any more: its last user drops it
	// Drop does what must be done before the descriptor can be closed, and closes it. The
	// handle is in no list then. It is called without any lock.
	Drop         func()
	newer, older *Handle // in the list of the idle ones
}

func (h *Cache) Init(d vfs.Disk, limit int) {
	h.disk, h.limit = d, limit
	h.Dirs = map[string]*Dir{}
	h.turns = make(chan struct{}, (limit-ErrseqDescriptors-FileMarks(limit))/perTurn)
}

// FileMarks returns how many descriptors are reserved for marks: of those that neither a
// turn nor a batch needs.
func FileMarks(limit int) int { return min((limit-LeastHandles)/4, mostFileMarks) }

// Begin takes a turn, or returns the cause why ctx ended.
func (h *Cache) Begin(ctx context.Context) error {
	select {
	case h.turns <- struct{}{}:
		return nil
	default:
	}
	select {
	case h.turns <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (h *Cache) End() { <-h.turns }

// Reserve gets the right to open one more descriptor. It may close an idle one for that. The
// caller gives the right back with Release: after it closed the descriptor, or could not
// open it.
func (h *Cache) Reserve() {
	h.Mu.Lock()
	for h.open >= h.limit {
		if !h.evictLocked() {
			h.awaitRoomLocked()
		}
	}
	h.open++
	h.Mu.Unlock()
}

// Counts returns the counts as they are now, how many descriptors are open, and how many
// turns are taken.
func (h *Cache) Counts() (kept HandleStats, open, turns int) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	return h.Stats, h.open, len(h.turns)
}

// Release gives back a right of Reserve: the descriptor is closed.
func (h *Cache) Release() {
	h.Mu.Lock()
	h.open--
	h.wakeLocked()
	h.Mu.Unlock()
}

func (h *Cache) awaitRoomLocked() {
	h.waiting++
	if h.room == nil {
		h.room = make(chan struct{})
	}
	room := h.room
	h.Mu.Unlock()
	<-room
	h.Mu.Lock()
	h.waiting--
}

// wakeLocked wakes all goroutines that wait for room.
func (h *Cache) wakeLocked() {
	if h.room != nil {
		close(h.room)
		h.room = nil
	}
}

// Spare closes the descriptor that has been idle for longest, and reports whether there was
// one. It is for calls that fail because the process's or the system's limit is below ours.
func (h *Cache) Spare() bool {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	return h.evictLocked()
}

// CanSpare reports whether a descriptor is idle.
func (h *Cache) CanSpare() bool {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	return h.Idle.oldest != nil
}

// evictLocked closes the descriptor that has been idle for longest, if there is one.
func (h *Cache) evictLocked() bool {
	if h.Idle.oldest == nil {
		return false
	}
	h.Stats.Evictions++
	h.dropOldestLocked(h.Evicted)
	return true
}

// dropOldestLocked releases the lock meanwhile, and calls seen then, unless it is nil.
func (h *Cache) dropOldestLocked(seen func(path string)) {
	x := h.Idle.oldest
	h.Idle.Remove(x)
	x.Gone = true
	h.Mu.Unlock()
	if seen != nil {
		seen(x.Path)
	}
	x.Drop()
	h.Mu.Lock()
}

// CloseAll closes what is idle: everything, once all work has ended.
func (h *Cache) CloseAll() {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	for h.Idle.oldest != nil {
		h.dropOldestLocked(nil)
	}
}

// UseLocked takes a kept handle that is not gone: it is not closed until Rest.
func (h *Cache) UseLocked(x *Handle) {
	if x.Users == 0 {
		h.Idle.Remove(x)
	}
	x.Users++
}

// Retire marks a handle in use as gone: it is not taken again, and its last user drops it.
func (h *Cache) Retire(x *Handle) {
	h.Mu.Lock()
	x.Gone = true
	h.Mu.Unlock()
}

// IsGone reports whether a handle must not be taken any more.
func (h *Cache) IsGone(x *Handle) bool {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	return x.Gone
}

// Rest ends a use. After the last one the handle is idle, or dropped if it is gone.
func (h *Cache) Rest(x *Handle) {
	h.Mu.Lock()
	x.Users--
	last, gone := x.Users == 0, x.Gone // once it is idle another may drop it
	if last && !gone {
		h.Idle.Add(x)
		h.wakeLocked()
	}
	h.Mu.Unlock()
	if last && gone {
		x.Drop()
	}
}

// An idleList has the handles in the order in which they became idle.
type idleList struct{ oldest, newest *Handle }

func (l *idleList) Add(x *Handle) {
	x.older, x.newer = l.newest, nil
	if l.newest != nil {
		l.newest.newer = x
	} else {
		l.oldest = x
	}
	l.newest = x
}

func (l *idleList) Remove(x *Handle) {
	if x.newer != nil {
		x.newer.older = x.older
	} else {
		l.newest = x.older
	}
	if x.older != nil {
		x.older.newer = x.newer
	} else {
		l.oldest = x.newer
	}
	x.newer, x.older = nil, nil
}

// A files.Set has a mark for each of a few directories: those where it makes temporary files,
// and some where it did. Each takes a descriptor.
const mostFileMarks = 16
