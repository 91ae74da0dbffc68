package files

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/handles"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/oldest"
)

// A stream is one path that is appended to. streams.mu guards its fields, unless a field's comment
// names another lock.
type stream struct {
	name  fileName
	given string // its path as the first caller gave it, for errors

	progress
	buffer
	failures
	busy      bool // a call writes to the file; it has flight and ticket
	exclusive bool // the busy call bypasses the buffer: no other may put bytes
	syncing   bool // a goroutine syncs the file
	age       oldest.Clock

	users   int // calls that hold the stream without the lock
	changed signal
	queued
	naming
	losses
	file   *streamFile  // its open file, or nil; guarded by handles.mu
	ticket keyed.Ticket // of the busy call
	target int          // its place in the batch of the group commit that it joined last
}

// progress is offsets, counted from the stream's first byte: accepted ≥ flushed ≥ durable ≥ safe.
// Bytes that went with a removed file are below durable: see losses.
type progress struct {
	accepted, flushed, durable int64
	safe                       int64 // durable with the names of their files
	counted                    int64 // bytes that are in streams.unsynced
}

// naming is the name of the stream's last file, and whether it is durable.
type naming struct {
	dir         string    // the directory of the name: not the path's where that is a symbolic link
	dirUnsynced bool      // the name is not known to be durable
	site        nameSite  // where the name was first given to a file, or found. The zero nameSite is none
	last        keyed.Key // the file that the name was last given to, or found at
	births      int       // files that the name was given to, or found at
	dirErr      error     // why the directory could not be synced at last; nil when that was tried
}

// A nameSite is the directory that a file's name is in, and how many syncs of it had
// failed before. After another failure it is unknown whether the name was lost.
type nameSite struct {
	dir    keyed.Key
	losses int
	birth  int // which of the stream's files it was
}

// failures is why calls for the path fail.
type failures struct {
	failing    bool  // since a flush failed, until one works
	failed     error // of the last flush; nil when it worked
	unreported error // of the background, until a call returns it
	final      error // a failed sync
}

// losses is the bytes that went with removed files.
type losses struct {
	lost     []span // as long as a call may ask
	unwaited []span // bytes whose call has left before they were known to be durable
	lostTo   int64  // the end of the last of lost
	gone     int64  // lost bytes that no call has reported
}

// A span is the bytes of a stream from one offset to another.
type span struct{ from, to int64 }

// within returns how many bytes of a span are in one of these.
func (x span) within(all []span) (n int64) {
	for _, y := range all {
		n += max(0, min(x.to, y.to)-max(x.from, y.from))
	}
	return n
}

// queued is where a stream stands in a queue of the flusher.
type queued struct {
	queue        *streamQueue
	since        time.Time // when its oldest byte came, or the last flush failed
	newer, older *stream
}

// waitsLocked returns how many bytes are not in the kernel.
func (s *stream) waitsLocked() int64 { return s.accepted - s.flushed }

// settledLocked is called when more of the stream is durable, or its file's name is.
func (s *stream) settledLocked() {
	if !s.dirUnsynced {
		s.safe = s.durable
	}
}

// leaveBytesLocked notes the bytes of a call that ends before they are known to be durable:
// if they get lost, a later call reports it.
func (s *stream) leaveBytesLocked(bytes span) {
	rest := s.unwaited[:0]
	for _, x := range s.unwaited {
		if x.to > s.durable {
			rest = append(rest, x)
		}
	}
	s.unwaited = append(rest, bytes)
}

// noteLocked keeps what failed in the background for the next call for the path. A
// failure that repeats the one before was returned already, or is kept.
func (s *stream) noteLocked(err error, again bool) {
	if err != nil && !again && s.unreported == nil && s.failed != nil {
		s.unreported = err
	}
}

// A streamFile is the open file of a stream.
type streamFile struct {
	handles.Handle
	stream   *stream
	key      keyed.Key       // device and inode, or zero where the system reports none
	syncsAll bool            // disk.SyncAll can be relied on there
	stales   int64           // streams.stales when it was opened
	errseq   *durable.Errseq // was open before anything was written here; or nil
	// replaced says that this process gave the name to another file, so that it is no
	// failure if this one has no name left. Guarded by streams.mu.
	replaced bool
	removed  bool          // a sync found it without a name: nothing in it will be found; guarded as replaced
	dropped  chan struct{} // closed when it is closed
	ended    bool          // it is known to end with a line; belongs to the call with the file's turn
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
