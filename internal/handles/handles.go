// Package handles caches open descriptors, up to a limit: directories by their paths, and files of
// its users. It closes the one idle for longest.
package handles

import (
	"context"
	"sync"

	"github.com/holdfast-go/holdfast/internal/vfs"
)

// Cache holds all open descriptors of a files.Set, up to a limit. The cached ones, directories and
// files in append mode, are in use or idle. At the limit it closes the one idle for longest, and
// never one in use.
//
// A goroutine that works on a file first takes a turn, which permits it perTurn descriptors at
// once. The number of turns leaves room for that: the holder of a turn waits for a close, never for
// the end of another turn. Syncing an open file takes no turn.
type Cache struct {
	disk  vfs.Disk
	limit int
	Syncs bool // directory entries must be synced

	// Opened is called without a lock for each descriptor that is cached, and Evicted for each that
	// is closed to make room. Both may be nil.
	Opened, Evicted func(path string)

	Mu      sync.Mutex
	open    int // descriptors that are open, or in an open or close
	Idle    idleList
	Dirs    map[string]*Dir
	waiting int           // goroutines that wait until a descriptor is closed or idle
	room    chan struct{} // closed when there is room; nil if no goroutine waits

	turns chan struct{}
	Stats HandleStats // guarded by mu
}

// perTurn is the number of descriptors of a turn: a directory and a file in it.
const perTurn = 2

// ErrseqDescriptors is the number of descriptors reserved for batches. A batch keeps one open on
// the file system until the whole file system is synced.
const ErrseqDescriptors = 2

// LeastHandles is the least limit: one turn and the batches.
const LeastHandles = perTurn + ErrseqDescriptors

type HandleStats struct{ Hits, Misses, Evictions int64 }

// A Handle is a cached descriptor.
type Handle struct {
	Fd    int
	Path  string
	Users int  // 0: it is in the idle list
	Gone  bool // no new use; its last user drops it
	// Drop prepares and closes the descriptor. The handle is in no list then. It is called without
	// any lock.
	Drop         func()
	newer, older *Handle // in the idle list
}

func (h *Cache) Init(d vfs.Disk, limit int) {
	h.disk, h.limit = d, limit
	h.Dirs = map[string]*Dir{}
	h.turns = make(chan struct{}, (limit-ErrseqDescriptors-FileMarks(limit))/perTurn)
}

// FileMarks returns the number of descriptors reserved for marks, beyond the needs of a turn and a
// batch.
func FileMarks(limit int) int { return min((limit-LeastHandles)/4, mostFileMarks) }

// Begin takes a turn, or returns the cause of the end of ctx.
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

// Reserve reserves one more descriptor. It may close an idle one for that. The caller calls Release
// after it closed the descriptor, or could not open it.
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

// Counts returns the current counts, and the number of open descriptors and of turns taken.
func (h *Cache) Counts() (kept HandleStats, open, turns int) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	return h.Stats, h.open, len(h.turns)
}

// Release ends a Reserve: the descriptor is closed.
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

// Spare closes the descriptor idle for longest, and reports whether there was one. It is for calls
// that fail because the limit of the process or the system is below the Cache's.
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

// evictLocked closes the descriptor idle for longest, if there is one.
func (h *Cache) evictLocked() bool {
	if h.Idle.oldest == nil {
		return false
	}
	h.Stats.Evictions++
	h.dropOldestLocked(h.Evicted)
	return true
}

// dropOldestLocked drops the descriptor idle for longest. It releases the lock meanwhile, and calls
// seen then, unless it is nil.
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

// CloseAll closes all idle descriptors: every one, after all work has ended.
func (h *Cache) CloseAll() {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	for h.Idle.oldest != nil {
		h.dropOldestLocked(nil)
	}
}

// UseLocked starts a use of a cached handle that is not gone: it is not closed until Rest.
func (h *Cache) UseLocked(x *Handle) {
	if x.Users == 0 {
		h.Idle.Remove(x)
	}
	x.Users++
}

// Retire marks a handle in use as gone: its last user drops it.
func (h *Cache) Retire(x *Handle) {
	h.Mu.Lock()
	x.Gone = true
	h.Mu.Unlock()
}

// IsGone reports whether a handle is retired.
func (h *Cache) IsGone(x *Handle) bool {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	return x.Gone
}

// Rest ends a use. After the last one the handle is idle, or dropped if it is gone.
func (h *Cache) Rest(x *Handle) {
	h.Mu.Lock()
	x.Users--
	last, gone := x.Users == 0, x.Gone // once it is idle, another goroutine may drop it
	if last && !gone {
		h.Idle.Add(x)
		h.wakeLocked()
	}
	h.Mu.Unlock()
	if last && gone {
		x.Drop()
	}
}

// An idleList holds the idle handles, the longest idle first.
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

// mostFileMarks bounds the marks of a files.Set, which has one for each directory in which it makes
// temporary files, or made some lately. Each takes a descriptor.
const mostFileMarks = 16
