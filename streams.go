package holdfast

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// streams is the files that are appended to: one [stream] for each path that has
// bytes in memory, an open descriptor, or something to tell. A path without any of
// these is forgotten, so that it does not matter how many there ever were.
//
// One lock guards them all, and is held for a look-up and a copy; no system call is
// made under it. It may be held when handles.mu is taken, never the other way.
type streams struct {
	files  *Files
	policy Policy

	mu      sync.Mutex
	paths   map[string]*stream
	memory  streamMemory
	waiting streamQueue // have bytes to flush that nobody is flushing, by the age of the oldest
	stuck   streamQueue // their last flush failed; by the time of that
	flights int         // how many streams are being flushed
	hopes   int         // how many of these whose last flush has not failed
	calls   int         // how many are under way that look at more than memory
	closing bool
	// ended is closed, and made anew, when a flush ended: memory may be free then.
	ended signal

	due        dueFlushes
	syncTimer  deadline
	syncing    bool // the goroutine of the sync by time runs
	syncLate   bool // its time came again meanwhile
	background sync.WaitGroup

	commit  streamCommit
	witness streamWitness
	// names is the folders of files which were forgotten before their names were
	// durable, and lostNames those of which a sync has failed since, and why: it can't be
	// told which paths it were, so that every call is told that asks for one of them.
	names     map[string]forgottenNames
	forgotten int // how many such files there were
	lostNames map[string]error
	left      map[uint64]leftover // by device, under sync=never

	counts streamCounts
	stales atomic.Int64 // how often stale was called

	// byFile is the open files, by what they are. Guarded by handles.mu.
	byFile map[turnKey][]*streamFile
}

// streamCounts is what streams tell of themselves.
type streamCounts struct {
	flushes, syncs, waits int64
}

func (t *streams) init(f *Files) {
	t.files, t.policy = f, f.options.Policy
	t.paths = map[string]*stream{}
	t.byFile = map[turnKey][]*streamFile{}
	t.names = map[string]forgottenNames{}
	t.left = map[uint64]leftover{}
	t.memory.init(int64(t.policy.Buffer), int64(f.options.Memory))
	t.due.init(t)
	t.syncTimer.init(t.policy.syncPeriod(), t.syncDue)
	t.commit.init()
	t.witness.use = make(chan struct{}, 1)
}

// A stream is one path that is appended to. All is guarded by streams.mu, except
// that what busy says belongs to who set it.
type stream struct {
	name Name
	// Offsets, counted from the stream's first byte: accepted ≥ flushed ≥ durable.
	accepted, flushed, durable int64

	wait   *block // the bytes that gather
	flight *block // those that are being written, or whose write failed or was given up
	begun  int    // how many of flight are written

	busy      bool // somebody writes to the file, and has flight
	exclusive bool // who is busy writes past the memory: nobody may put bytes
	syncs     bool // somebody syncs the file
	nameless  bool // the name is not known to be durable
	// named is where it was first given to a file, or found. The zero nameSite is none.
	named   nameSite
	last    turnKey // the file that it was last given to, or found at
	births  int     // how many such files there were
	users   int     // how many calls hold the stream without the lock
	changed signal

	failed     error // the last flush's; nil when it worked
	unreported error // what failed in the background, if no call has told it
	final      error // a failed sync
	unnamed    error // why the name could not be synced at last; nil when it was tried

	file   *streamFile // its open file, or nil; guarded by handles.mu
	ticket ticket      // of who is busy

	// The last batch that it joined, and its place there.
	batch *streamBatch
	goal  int

	// Its place in a queue.
	queue        *streamQueue
	since        time.Time // when its oldest byte came, or the last flush failed
	newer, older *stream
}

// waitsLocked returns how many bytes are not in the kernel.
func (s *stream) waitsLocked() int64 { return s.accepted - s.flushed }

// useLocked returns the stream of a path, which is not forgotten until rest.
func (t *streams) useLocked(path string) (*stream, error) {
	s := t.paths[path]
	if s == nil {
		var err error
		if s, err = t.addLocked(path); err != nil {
			return nil, err
		}
	}
	s.users++
	return s, nil
}

func (t *streams) restLocked(s *stream) {
	s.users--
	t.tidyLocked(s)
}

func (t *streams) addLocked(path string) (*stream, error) {
	name, err := NewName(string([]byte(path))) // the caller's string may be part of a large one
	if err != nil {
		return nil, err
	}
	s := &stream{name: name, nameless: true}
	t.paths[name.path] = s
	return s, nil
}

// tidyLocked forgets a stream of which nothing is left to do or to tell.
func (t *streams) tidyLocked(s *stream) {
	if s.users > 0 || s.busy || s.syncs || s.waitsLocked() > 0 || s.failed != nil || s.unreported != nil || s.final != nil {
		return
	}
	if t.policy.syncs() && s.durable < s.flushed {
		return
	}
	if t.openFile(s) != nil || t.paths[s.name.path] != s {
		return
	}
	if s.nameless && t.policy.syncs() && s.named != (nameSite{}) {
		site := s.named
		if old, ok := t.names[s.name.folder]; ok {
			site = old.nameSite // what was lost since then may be any of them
		}
		t.forgotten++
		t.names[s.name.folder] = forgottenNames{site, t.forgotten}
	}
	delete(t.paths, s.name.path)
}

// openFile returns the stream's descriptor, or nil.
func (t *streams) openFile(s *stream) *streamFile {
	h := &t.files.handles
	h.mu.Lock()
	defer h.mu.Unlock()
	return s.file
}

// any reports whether there may be a stream at all.
func (t *streams) any() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.paths) > 0
}

// A signal tells all who wait for it at once, and then serves again. The zero
// signal is ready. It is guarded by streams.mu.
type signal struct{ c chan struct{} }

func (g *signal) tellLocked() {
	if g.c != nil {
		close(g.c)
		g.c = nil
	}
}

// awaitLocked waits, without the lock, until the signal is told, or returns the
// cause why ctx ended.
func (t *streams) awaitLocked(ctx context.Context, g *signal) error {
	if g.c == nil {
		g.c = make(chan struct{})
	}
	c := g.c
	t.mu.Unlock()
	defer t.mu.Lock()
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// A streamQueue has streams in the order of their since. A stream is in one queue
// at most.
type streamQueue struct{ oldest, newest *stream }

// addLocked puts a stream at the end.
func (q *streamQueue) addLocked(s *stream) {
	s.queue, s.older, s.newer = q, q.newest, nil
	if q.newest != nil {
		q.newest.newer = s
	} else {
		q.oldest = s
	}
	q.newest = s
}

// addFirstLocked puts a stream at the front.
func (q *streamQueue) addFirstLocked(s *stream) {
	s.queue, s.older, s.newer = q, nil, q.oldest
	if q.oldest != nil {
		q.oldest.older = s
	} else {
		q.newest = s
	}
	q.oldest = s
}

// leaveLocked takes the stream out of the queue that it is in.
func (s *stream) leaveLocked() {
	q := s.queue
	if q == nil {
		return
	}
	if s.newer != nil {
		s.newer.older = s.older
	} else {
		q.newest = s.older
	}
	if s.older != nil {
		s.older.newer = s.newer
	} else {
		q.oldest = s.newer
	}
	s.queue, s.newer, s.older = nil, nil, nil
}

// idleLocked returns the first stream of the queue that nobody is busy with.
func (q *streamQueue) idleLocked() *stream {
	s := q.oldest
	for s != nil && s.busy {
		s = s.newer
	}
	return s
}

// tell adds what the streams count.
func (t *streams) tell(s *FilesStats) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.Flushes += t.counts.flushes
	s.Syncs += t.counts.syncs
	s.Waits += t.counts.waits
	s.Streams, s.Memory = len(t.paths), t.memory.used
}
