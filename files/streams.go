package files

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/commit"
	"github.com/holdfast-go/holdfast/internal/deadline"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/oldest"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
	"github.com/holdfast-go/holdfast/stats"
)

// streams is the files that are appended to. It has one [stream] for each path
// with bytes in memory, an open descriptor, or a failure to report. Any other
// path is forgotten, so that memory does not grow with all paths that ever were.
//
// One lock guards them all, and is held for a look-up and a copy; no system call is
// made under it. It may be held when handles.mu is taken, never the other way.
type streams struct {
	files  *Set
	policy holdfast.Policy

	mu      sync.Mutex
	paths   map[string]*stream
	memory  streamMemory
	waiting streamQueue // have bytes to flush and no flush under way, by the age of the oldest byte
	stuck   streamQueue // their last flush failed; by the time of that
	flights int         // how many streams are being flushed
	hopes   int         // how many of these had no failure at their last flush
	calls   int         // how many are under way that look at more than memory
	closing bool
	// ended is closed, and made anew, when a flush ended: memory may be free then.
	ended signal

	due        dueFlushes
	syncTimer  deadline.Timer
	syncing    bool  // the goroutine of the syncs by time and by bytes runs
	syncDue    bool  // the time of a sync has come
	unsynced   int64 // the flushed bytes that are not durable with their names; counted under a sync by bytes
	flushAt    int   // how many waiting bytes start the flush of a stream
	background sync.WaitGroup

	commit   commit.Group[[]goal] // of each stream one; in use
	durable  durable.Step
	errseq   *durable.Errseq // nil: none is open
	watching bool            // a goroutine opens it
	// names is the directories of files that were forgotten before their names were
	// durable. lostNames is those directories with a failed sync since, and why. It is not
	// known which paths are lost, so every call for a path in there returns the failure.
	names     map[string]forgottenNames
	forgotten int // how many such files there were
	lostNames map[string]lostNames
	left      map[uint64]leftover // by device, under sync=never

	counts  stats.Counts
	healed  int64
	stales  atomic.Int64      // how often stale was called
	renames map[keyed.Key]int // in flight, by the file that each replaces

	// byFile is the open files, by what they are. Guarded by handles.mu.
	byFile map[keyed.Key][]*streamFile
}

func (t *streams) init(f *Set) {
	t.files, t.policy = f, f.options.Policy
	t.paths = map[string]*stream{}
	t.byFile = map[keyed.Key][]*streamFile{}
	t.renames = map[keyed.Key]int{}
	t.names = map[string]forgottenNames{}
	t.left = map[uint64]leftover{}
	t.memory.init(int64(t.policy.Buffer), int64(f.options.Memory))
	t.due.init(t)
	t.syncTimer.Init(t.policy.Sync.Every, nil, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.syncDue = true
		t.startSyncsLocked()
	})
	t.flushAt = int(cmp.Or(t.policy.FlushBytes, math.MaxInt))
	t.commit.Init(&t.mu, t.stepLocked, func(error) {})
	t.durable = durable.Step{Disk: f.disk, Names: f.names, Most: durable.Waiters,
		SyncAll: func(errseq int) error { return vfs.SyncAll(f.disk, errseq) }}
}

// A stream is one path that is appended to. All is guarded by streams.mu, except that
// flight belongs to the call that set busy.
type stream struct {
	name  fileName
	given string // its path as the first caller gave it, for errors
	dir   string // that the name of its last file is in: not name's where that is a symbolic link
	// Offsets, counted from the stream's first byte: accepted ≥ flushed ≥ durable ≥ safe.
	// What went with a removed file is below durable: see lost.
	accepted, flushed, durable int64
	safe                       int64 // durable with the names of their files
	counted                    int64 // how many of them are in streams.unsynced

	wait   *block // the bytes that gather
	flight *block // those that are being written, or were when a write failed or was given up
	begun  int    // how many of flight are written

	busy      bool // a call writes to the file, and has flight
	exclusive bool // the busy call bypasses the memory: no other may put bytes
	syncs     bool // a goroutine syncs the file
	nameless  bool // the name is not known to be durable
	// named is where it was first given to a file, or found. The zero nameSite is none.
	named   nameSite
	last    keyed.Key // the file that it was last given to, or found at
	births  int       // how many such files there were
	users   int       // how many calls hold the stream without the lock
	changed signal

	age     oldest.Clock
	failing bool // since a flush failed, until one works

	failed     error // the last flush's; nil when it worked
	unreported error // what failed in the background, until a call returns it
	final      error // a failed sync
	// lost is the bytes that went with removed files, as long as a call may ask. Of these
	// bytes, gone have not been reported by any call. No call waits for the bytes of
	// unwaited.
	lost, unwaited []span
	lostTo, gone   int64 // lostTo is the end of the last of lost
	unnamed        error // why the name could not be synced at last; nil when it was tried

	file   *streamFile  // its open file, or nil; guarded by handles.mu
	ticket keyed.Ticket // of the busy call

	goal int // its place in the batch of the group commit that it joined last

	// Its place in a queue.
	queue        *streamQueue
	since        time.Time // when its oldest byte came, or the last flush failed
	newer, older *stream
}

// waitsLocked returns how many bytes are not in the kernel.
func (s *stream) waitsLocked() int64 { return s.accepted - s.flushed }

// pathOf returns what a stream is known by: its bytes may be written when the working directory
// is another one.
func pathOf(path string) (string, error) {
	absolute, err := sys.Absolute(path)
	if err != nil {
		return "", appendError(path, retry.OpOpen, fmt.Errorf("working directory: %w", err))
	}
	return absolute, nil
}

// useLocked returns the stream of an absolute path, which is not forgotten until rest.
func (t *streams) useLocked(path, given string) (*stream, error) {
	s := t.paths[path]
	if s == nil {
		name, err := newName(string([]byte(path))) // the caller's string may be part of a large one
		if err != nil {
			return nil, err
		}
		s = &stream{name: name, given: name.path, dir: name.dir, nameless: true}
		if given != path {
			s.given = string([]byte(given))
		}
		t.paths[name.path] = s
	}
	s.users++
	return s, nil
}

func (t *streams) restLocked(s *stream) {
	s.users--
	t.tidyLocked(s)
}

// tidyLocked forgets a stream with nothing left to do or to report.
func (t *streams) tidyLocked(s *stream) {
	if s.users > 0 {
		return
	}
	s.lost = nil
	if s.busy || s.syncs || s.waitsLocked() > 0 || s.failed != nil || s.unreported != nil || s.final != nil || s.gone > 0 {
		return
	}
	if t.policy.Sync.Mode != holdfast.SyncNever && s.durable < s.flushed {
		return
	}
	if t.openFile(s) != nil || t.paths[s.name.path] != s {
		return
	}
	t.forgetLocked(s)
}

// forgetLocked lets the next call for the path begin a new stream.
func (t *streams) forgetLocked(s *stream) {
	if s.nameless && t.policy.Sync.Mode != holdfast.SyncNever && s.named != (nameSite{}) {
		t.forgetNameLocked(s.dir, s.named, s.counted)
	} else {
		t.unsynced -= s.counted
	}
	s.counted = 0
	delete(t.paths, s.name.path)
}

// openFile returns the stream's descriptor, or nil.
func (t *streams) openFile(s *stream) *streamFile {
	h := &t.files.handles
	h.Mu.Lock()
	defer h.Mu.Unlock()
	return s.file
}

// isOpen reports whether the stream's next write needs no open, unless the file is closed before that.
func (t *streams) isOpen(s *stream) bool {
	h := &t.files.handles
	h.Mu.Lock()
	defer h.Mu.Unlock()
	return s.file != nil && !s.file.Gone
}

// A signal wakes all its waiters at once, and then serves again. The zero
// signal is ready. It is guarded by streams.mu.
type signal struct{ c chan struct{} }

func (g *signal) wakeLocked() {
	if g.c != nil {
		close(g.c)
		g.c = nil
	}
}

// awaitLocked waits, without the lock, until wakeLocked is called, or returns the
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

// idleLocked returns the first stream of the queue that no call is busy with.
func (q *streamQueue) idleLocked() *stream {
	s := q.oldest
	for s != nil && s.busy {
		s = s.newer
	}
	return s
}
