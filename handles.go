package holdfast

import (
	"context"
	"sync"
)

// handles is all descriptors that a Files has open: never more than its limit.
// Those that are kept for later, folders and files that are appended to, are in
// use or idle. When the limit is reached the one that has been idle for longest is
// closed; one in use never is.
//
// Whoever works on a file takes a turn first, and then needs no more than
// perTurn descriptors at once. There are only as many turns as that leaves room
// for, so who has one waits for no other's turn to end, only for a close. Open files
// are also used without a turn, to sync them, by who waits for the disk alone.
type handles struct {
	disk  disk
	limit int

	mu      sync.Mutex
	open    int // descriptors open, being opened or being closed
	idle    idleList
	folders map[string]*folder
	// lostNames is how many syncs of a folder failed, by its device and inode.
	lostNames map[turnKey]int
	waiting   int           // how many wait for a descriptor that is closed, or idle
	room      chan struct{} // is closed when there is one; nil if nobody waits

	turns chan struct{}
	stats handleStats // guarded by mu
}

// perTurn is what one turn needs at once: a folder and a file in it.
const perTurn = 2

// witnesses is how many descriptors are set aside for batches, which keep one open
// on the file system until it is synced as a whole.
const witnesses = 2

// leastHandles is what one turn and a batch beside it need.
const leastHandles = perTurn + witnesses

type handleStats struct{ hits, misses, evictions int64 }

// A handle is a descriptor that is kept open.
type handle struct {
	fd    int
	users int  // 0: it is in the list of the idle ones
	gone  bool // nobody may take it any more: its last user drops it
	// drop does what has to be done before its descriptor can be spared, and closes
	// it. The handle is in no list then. It is called without any lock.
	drop         func()
	newer, older *handle // in the list of the idle ones
}

func (h *handles) init(d disk, limit int) {
	h.disk, h.limit = d, limit
	h.folders = map[string]*folder{}
	h.turns = make(chan struct{}, (limit-witnesses)/perTurn)
}

// begin takes a turn, or returns the cause why ctx ended.
func (h *handles) begin(ctx context.Context) error {
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

func (h *handles) end() { <-h.turns }

// reserve gets the right to open one more descriptor. It may close an idle one for that. Who has it
// opens one, and gives the right back by release when that is closed, or could not be opened.
func (h *handles) reserve() {
	h.mu.Lock()
	for h.open >= h.limit {
		if !h.evictLocked() {
			h.awaitRoomLocked()
		}
	}
	h.open++
	h.mu.Unlock()
}

// release is told that a descriptor was closed.
func (h *handles) release() {
	h.mu.Lock()
	h.open--
	h.wakeLocked()
	h.mu.Unlock()
}

func (h *handles) awaitRoomLocked() {
	h.waiting++
	if h.room == nil {
		h.room = make(chan struct{})
	}
	room := h.room
	h.mu.Unlock()
	<-room
	h.mu.Lock()
	h.waiting--
}

// wakeLocked has all who wait for room look again.
func (h *handles) wakeLocked() {
	if h.room != nil {
		close(h.room)
		h.room = nil
	}
}

// spare closes the descriptor that has been idle for longest, and reports whether there was
// one: for those whom the process's or the system's limit stops below ours.
func (h *handles) spare() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.evictLocked()
}

// canSpare reports whether a descriptor is idle.
func (h *handles) canSpare() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.idle.oldest != nil
}

// evictLocked closes the descriptor that has been idle for longest, if there is one.
func (h *handles) evictLocked() bool {
	if h.idle.oldest == nil {
		return false
	}
	h.stats.evictions++
	h.dropOldestLocked()
	return true
}

// dropOldestLocked gives the lock up meanwhile.
func (h *handles) dropOldestLocked() {
	x := h.idle.oldest
	h.idle.remove(x)
	x.gone = true
	h.mu.Unlock()
	x.drop()
	h.mu.Lock()
}

// closeAll closes what is idle: everything, once nobody works any more.
func (h *handles) closeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.idle.oldest != nil {
		h.dropOldestLocked()
	}
}

// useLocked takes a handle that is kept, and not gone: it is not closed until rest.
func (h *handles) useLocked(x *handle) {
	if x.users == 0 {
		h.idle.remove(x)
	}
	x.users++
}

// isGone reports whether nobody may take a handle any more.
func (h *handles) isGone(x *handle) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return x.gone
}

// rest ends a use. After the last one the handle is idle, or dropped if it is gone.
func (h *handles) rest(x *handle) {
	h.mu.Lock()
	x.users--
	last, gone := x.users == 0, x.gone // once it is idle another may drop it
	if last && !gone {
		h.idle.add(x)
		h.wakeLocked()
	}
	h.mu.Unlock()
	if last && gone {
		x.drop()
	}
}

// An idleList has the handles in the order in which they became idle.
type idleList struct{ oldest, newest *handle }

func (l *idleList) add(x *handle) {
	x.older, x.newer = l.newest, nil
	if l.newest != nil {
		l.newest.newer = x
	} else {
		l.oldest = x
	}
	l.newest = x
}

func (l *idleList) remove(x *handle) {
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
