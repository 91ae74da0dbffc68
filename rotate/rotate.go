// Package rotate is a log file that rotates: by size, by time and on demand. It writes under a
// [holdfast.Policy], with a [holdfast.Writer], for any number of goroutines.
//
// A record is what one Write was given. It is never split over two files. When a rotation
// fails, whatever the cause, the log goes on in its file, reports that, and tries again later.
// Nothing that was accepted is lost. After a crash in the middle of a rotation or a
// compression the next Open finishes it.
//
// Start with [Open]. The page docs/logs.md says when to use it, a Writer or package files.
// It has a table for users of lumberjack and timberjack.
//
// Backups are beside the log. That of app.log is app-2006-01-02T15-04-05.000.log, with the time
// of its rotation in UTC, and .gz behind it when it is compressed.
package rotate

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/errorqueue"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/stats"
)

// A File is a log that rotates. Any number of goroutines may call any method at any time.
//
// At any moment one Writer accepts records. The next one begins when the one before has
// flushed, and unless sync=never has synced, all that it accepted; Writes wait for that. So a
// crash takes no more than [holdfast.Policy.Loss] says, of the log as a whole, and takes it
// from the log's end. A rotation makes the backup's name durable before the new file exists.
//
// Another program may move, remove or truncate the file. A log that is written to notices a move
// or a removal at the next sync, or within a second. It then begins a new file at its path. What
// was accepted until then is in the old file. Another process must not rotate it.
//
// A File must be closed. No goroutine and no descriptor is left after Close.
type File struct {
	disk        disk
	names       *durable.NameSyncs
	path        string
	options     Options
	enqueue     int  // how long a record may be that goes by Enqueue; -1: none
	closesFirst bool // Windows renames no open file

	current atomic.Pointer[current] // replaced with mu

	// mu is held alone while the Writer is exchanged, and shared by each Sync.
	mu      sync.RWMutex
	closed  bool
	failing error                       // of a write; nil when a record was accepted since
	told    *holdfast.WriteError        // the last of these that was noted
	wanted  bool                        // a rotation that the caller asked for has not worked yet
	due     time.Time                   // of the next rotation by time; zero: never
	pause   time.Duration               // after the last failed exchange
	retryAt time.Time                   // when to try again
	tendAt  time.Time                   // when to look after the backups again
	timer   *time.Timer                 // for the next of these three
	last    time.Time                   // in the name of the newest backup; zero: not looked yet, or none
	made    map[time.Time]time.Duration // by the times in the names of backups: when they were made, after opened
	tending bool                        // the background looks after the backups
	again   bool                        // it is to look once more

	opened     time.Time
	background sync.WaitGroup // goroutines, and the timer while it runs
	stop       chan struct{}  // closed by Close
	closeOnce  sync.Once
	closeErr   error

	// notes guards what is below. It is taken last, and held for no call of the disk.
	notes    sync.Mutex
	stats    Stats             // Counts: of the Writers that are closed
	unsynced error             // the first failed sync: what it was to keep may be lost
	troubles map[string]*Error // the last failure of each Op that is not over
	failures errorqueue.Queue[*Error]
}

// A current is the Writer that accepts records, and its file.
type current struct {
	*holdfast.Writer
	file  *logFile
	base  int64 // how large the file was when the Writer began; guarded by File.mu
	final bool  // the Writer accepts nothing more; guarded by File.mu
}

// Open opens the log at path for appending, or makes it. It refuses invalid options before it
// touches the file. A last line that a crash has torn is ended with a line feed before the next
// record. Open does not make directories.
func Open(path string, options Options) (*File, error) {
	return open(sys.Disk{}, path, options, runtime.GOOS == "windows")
}

func open(d disk, path string, o Options, closesFirst bool) (*File, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("holdfast: %w", err)
	}
	if path == "" {
		return nil, errors.New("holdfast: the log has no path; name a file")
	}
	path, err := sys.Absolute(path)
	if err != nil {
		return nil, fmt.Errorf("holdfast: working directory: %w", err)
	}
	f := &File{disk: d, names: durable.NameSyncsOf(d), path: path, options: o, opened: time.Now(), enqueue: -1, closesFirst: closesFirst, stop: make(chan struct{}), troubles: map[string]*Error{}}
	f.failures.To(o.OnError)
	if !o.Policy.Sync.Waits() {
		f.enqueue = int(o.Policy.Buffer)
	}
	perm := uint32(o.Perm)
	if perm == 0 {
		perm = 0o666
	}
	l, err := openFile(d, f.names, path, perm, nil)
	if err != nil {
		return nil, fmt.Errorf("holdfast: open %s: %w", path, err)
	}
	now := clock().Round(0)
	f.due = o.due(now)
	if s, err := d.StatFile(l.fd); err == nil && l.at > 0 && !s.Modified.IsZero() {
		if since := o.due(s.Modified); !since.IsZero() && !since.After(now) {
			f.due = since
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.startLocked(l, stats.Counts{})
	f.attendLocked() // OnError reports what fails, and the log works without it
	f.tendOnceLocked()
	return f, nil
}

// Write accepts the record p as the policy says, see [holdfast.Writer.Write]. It waits while
// memory is full and while a rotation is made.
//
// With an error and n = 0, p is not in the log and may be given again. An error with n > 0 is of
// a sync, where the policy waits for it: p is accepted and not known to be durable. Do not write
// it again. OnError reports these errors too.
func (f *File) Write(p []byte) (n int, err error) {
	for first := true; ; first = false {
		c := f.current.Load()
		var end int64
		if len(p) <= f.enqueue {
			n = len(p)
			if end, err = c.Enqueue(p); err != nil {
				n = 0
			}
		} else {
			n, err = c.Write(p)
			end = c.Written()
		}
		if err == nil {
			if end >= c.file.turn.Load() {
				f.attend(c)
			}
			return n, nil
		}
		if again := f.failed(c, err, first); n > 0 || !again {
			return n, err
		}
	}
}

// attend looks after the log because a Write found that to be due.
func (f *File) attend(c *current) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current.Load() == c && !f.closed {
		f.failing = nil
		f.over("write")
		f.attendLocked()
	}
}

// failed looks after a failed call of a Writer, and reports whether it may be made again.
func (f *File) failed(c *current, err error, first bool) (again bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return false
	case f.current.Load() != c:
		return true
	case !isFinal(err):
		f.failingLocked(c, err)
		return first // it may have been a failure of the background that is over
	}
	f.endedLocked(c, err)
	f.attendLocked()
	return true
}

// failingLocked notes a failed write, once until a record is accepted.
func (f *File) failingLocked(c *current, err error) {
	var failed *holdfast.WriteError
	if errors.As(err, &failed) && failed == f.told {
		return // it is heard of later than from the call that it failed
	}
	if f.failing == nil {
		f.told = failed
		f.note(&Error{Op: "write", Path: f.path, AtRisk: c.Written() - c.Flushed(), Err: err})
	}
	f.failing = err
	f.current.Load().file.turn.Store(-1) // the next record that is accepted ends it
}

// isFinal reports whether a Writer accepts nothing more after an error.
func isFinal(err error) bool {
	return err != nil && (!errors.As(err, new(*holdfast.WriteError)) || errors.As(err, new(*holdfast.SyncError)))
}

// endedLocked notes the final error of a Writer.
func (f *File) endedLocked(c *current, err error) {
	if c.final {
		return
	}
	c.final = true
	f.unsyncedLocked(c, err)
}

// unsyncedLocked notes a failed sync, and reports it once a file.
func (f *File) unsyncedLocked(c *current, err error) {
	if !c.file.told {
		c.file.told = true
		f.note(&Error{Op: "sync", Path: f.path, AtRisk: c.Written() - c.Durable(), Err: err})
	}
	if errors.As(err, new(notSynced)) {
		return // nothing is lost
	}
	f.notes.Lock()
	defer f.notes.Unlock()
	if f.unsynced == nil || errors.Is(f.unsynced, holdfast.ErrUnlinked) {
		f.unsynced = err
	}
}

// settleLocked writes what a file has kept, and syncs it where the policy syncs. It returns why
// that must be tried again.
func (f *File) settleLocked(c *current) error {
	l := c.file
	switch {
	case l.fd < 0 || !l.refused.Load():
		return nil
	case f.options.Policy.Sync.Mode == holdfast.SyncNever:
		return l.drain()
	}
	err := l.Sync()
	if err == nil || errors.As(err, new(notSynced)) {
		return err
	}
	f.unsyncedLocked(c, err)
	return nil
}

// Rotate begins a new file, unless this one is empty. If it fails the log goes on in the same
// file and tries again by itself.
func (f *File) Rotate() error {
	return f.asked(func() { f.wanted = true })
}

// Reopen opens the log's path anew if it leads to another file by now, or to none. It is for a
// SIGHUP of a program such as logrotate that has moved the file. A file that was truncated in
// its place (copytruncate) needs no Reopen. Records that were accepted before are written to the
// old file, which must not be compressed until then: use logrotate's delaycompress. If it fails
// the log goes on in the file that is open, and tries again by itself.
func (f *File) Reopen() error {
	return f.asked(func() {})
}

func (f *File) asked(what func()) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return holdfast.ErrClosed
	}
	what()
	f.retryAt = time.Time{}
	return f.attendLocked()
}

// Sync makes all that was accepted before the call durable, with the names of its files. Only
// under sync=never it covers the current file alone.
//
// A failed sync is final, as that of a Writer is: every later Sync returns it, and Close does. The
// log does not know whose records were lost, and no later sync brings them back. Writes go on, in a
// new file. A Write that waits for its own sync still says whether its record is durable. To have a
// Sync of later records alone, close the log and open it again. That another program has removed
// the file is no such failure, and is returned once.
func (f *File) Sync() error {
	f.mu.RLock()
	c := f.current.Load()
	var err error
	if c.file.refused.Load() {
		if err = c.file.Sync(); err != nil {
			err = fmt.Errorf("holdfast: sync %s: %w", f.path, err)
		}
	}
	var failed error
	if err == nil {
		failed = c.Sync()
		if failed != nil && !isFinal(failed) {
			failed = c.Sync() // the first may be of the background, and over
		}
	}
	f.mu.RUnlock()
	switch {
	case failed != nil:
		err = failed
		f.failed(c, err, false)
	case err != nil:
		f.mu.Lock()
		f.unsyncedLocked(c, err)
		f.mu.Unlock()
	}
	return f.withUnsynced(err)
}

// withUnsynced adds a failed sync to what a call of Sync or Close returns.
func (f *File) withUnsynced(err error) error {
	f.notes.Lock()
	defer f.notes.Unlock()
	failed := f.unsynced
	if errors.Is(failed, holdfast.ErrUnlinked) {
		f.unsynced = nil
	}
	switch {
	case err == nil:
		if err = failed; f.unsynced == nil {
			delete(f.troubles, "sync")
		}
	case failed != nil && !errors.Is(err, failed):
		err = errors.Join(err, failed)
	}
	return err
}

// Err returns what still fails, or nil: failures that the log tries again, and a failed sync, which
// is final. It waits for nothing.
func (f *File) Err() error {
	f.notes.Lock()
	defer f.notes.Unlock()
	var errs []error
	for _, op := range slices.Sorted(maps.Keys(f.troubles)) {
		errs = append(errs, f.troubles[op])
	}
	return errors.Join(errs...)
}

// over ends the troubles of these operations.
func (f *File) over(ops ...string) {
	f.notes.Lock()
	defer f.notes.Unlock()
	for _, op := range ops {
		delete(f.troubles, op)
	}
}

// Close flushes what was accepted, syncs it unless the policy is sync=never, and closes the
// log. It returns every failure of that, and a failed sync of an earlier file. It waits for the
// background, and leaves a compression that is under way to the next Open. A second Close waits for
// the first and returns the same.
func (f *File) Close() error {
	f.closeOnce.Do(func() {
		f.mu.Lock()
		f.closed = true
		close(f.stop)
		f.disarmLocked()
		c := f.current.Load()
		f.closeErr = f.withUnsynced(errors.Join(f.settleLocked(c), c.Close()))
		f.mu.Unlock()
		f.background.Wait()
	})
	return f.closeErr
}

// Stats returns the counts so far. It may be called at any time and waits for nothing.
func (f *File) Stats() Stats {
	f.notes.Lock()
	defer f.notes.Unlock()
	s := f.stats
	s.merge(f.current.Load().Stats())
	return s
}

// merge adds the counts of a Writer. Its failures are the log's already.
func (s *Stats) merge(c stats.Counts) {
	c.Errors = 0
	s.Merge(&c)
}

// count changes the counts.
func (f *File) count(change func(*Stats)) {
	f.notes.Lock()
	defer f.notes.Unlock()
	change(&f.stats)
}

// note counts a failure and has it reported.
func (f *File) note(e *Error) {
	f.notes.Lock()
	defer f.notes.Unlock()
	f.stats.Errors++
	f.troubles[e.Op] = e
	f.failures.Add(e)
}

// The pauses between a failed rotation and the next try.
const (
	firstPause   = time.Second
	longestPause = time.Minute
)

// attendLocked finds out whether the log needs another file, and exchanges it. It returns what
// failed, which is noted too.
func (f *File) attendLocked() (err error) {
	c := f.current.Load()
	now := time.Now()
	c.base -= c.file.truncated()
	size := c.base + c.Written()
	full := f.options.MaxSize > 0 && size >= int64(f.options.MaxSize)
	wall := clock().Round(0) // not the time that passes
	passed := f.passedLocked(wall)
	waits := now.Before(f.retryAt)

	var op string
	next := func(l *logFile) (*logFile, error) { return l, nil }
	switch {
	case c.file.fd < 0 || c.file.isMoved():
		op = "reopen"
	case c.final || c.file.isSpoilt() || full || (f.wanted || passed) && size > 0:
		op = "rotate"
	}
	switch {
	case waits && !c.final, op == "":
	case waits:
		f.exchangeLocked(next) // to another Writer: it has noted what failed
	default:
		if next = f.reopenLocked; op == "rotate" {
			next = f.renameLocked
		}
		err = f.exchangeLocked(next)
	}
	switch {
	case err != nil:
		f.pause = min(max(firstPause, 2*f.pause), longestPause)
		f.retryAt = now.Add(f.pause)
		failed := &Error{Op: op, Path: f.path, Err: err}
		f.note(failed)
		err = failed
	case !waits:
		f.pause, f.retryAt, f.wanted = 0, time.Time{}, false
		f.over("rotate", "reopen")
		if passed {
			f.due = f.options.due(wall)
		}
	}
	c = f.current.Load()
	turn := int64(math.MaxInt64)
	if f.options.MaxSize > 0 && f.retryAt.IsZero() {
		turn = int64(f.options.MaxSize) - c.base
	}
	if f.failing != nil {
		turn = -1 // see failingLocked
	}
	c.file.turn.Store(turn)
	f.armLocked(now)
	return err
}

// passedLocked reports whether the time of a rotation has come. Else it looks for that time again: it is
// nearer if the clock was set back.
func (f *File) passedLocked(wall time.Time) bool {
	if !f.due.IsZero() && !wall.Before(f.due) {
		return true
	}
	f.due = f.options.due(wall)
	return false
}

// armLocked sets the timer to what comes next.
func (f *File) armLocked(now time.Time) {
	f.disarmLocked()
	next := []time.Time{f.tendAt, f.retryAt}
	if f.retryAt.IsZero() && !f.due.IsZero() { // the clock may be set, or stand still while the machine sleeps
		next = append(next, now.Add(min(f.due.Sub(clock().Round(0)), longestPause)))
	}
	next = slices.DeleteFunc(next, time.Time.IsZero)
	if len(next) == 0 {
		return
	}
	at := slices.MinFunc(next, time.Time.Compare)
	f.background.Add(1)
	f.timer = time.AfterFunc(at.Sub(now), func() {
		defer f.background.Done()
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.closed {
			return
		}
		now := time.Now()
		switch {
		case !f.tendAt.IsZero() && !now.Before(f.tendAt):
			f.tendAt = time.Time{}
			f.tendOnceLocked()
		case f.retryAt.IsZero() && !f.passedLocked(clock().Round(0)):
			f.armLocked(now) // it was a look at the clock
			return
		}
		f.attendLocked()
	})
}

func (f *File) disarmLocked() {
	if f.timer != nil && f.timer.Stop() {
		f.background.Done()
	}
}
