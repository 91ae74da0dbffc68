// Package rotate is a log file that rotates: by size, by time and on demand. It writes under a
// [holdfast.Policy], with a [holdfast.Writer], for any number of goroutines.
//
// A record is a line, or with [Options.Records] the argument of one Write. It is never split over
// two files, and neither is a line that a logger writes by several Writes. If a rotation fails, for
// any cause, the log continues in its file, reports the failure, and tries again later. No accepted
// record is lost by a rotation. After a crash during a rotation or a compression the next Open
// finishes it.
//
// Start with [Open]. The page [docs/logs.md] says when to use a log, a Writer or package files. It
// has a table for users of lumberjack and timberjack.
//
// Backups are in the log's directory. A backup of app.log is app-2006-01-02T15-04-05.000.log, with
// the time of its rotation in UTC (see [Options.LocalTime] and [Options.TimeFormat]), and .gz at the
// end when it is compressed.
//
// [docs/logs.md]: https://github.com/holdfast-go/holdfast/blob/main/docs/logs.md
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
	"github.com/holdfast-go/holdfast/internal/slow"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
	"github.com/holdfast-go/holdfast/stats"
)

// A File is a log that rotates. Any number of goroutines may call any method at any time.
//
// One Writer at a time accepts records. The next one begins when the one before has flushed all its
// records and, unless sync=never, synced them; Writes wait for that. So a crash takes no more than
// [holdfast.Policy.Loss], of the log as a whole, and takes it from the log's end. A rotation makes
// the backup's name durable before the new file exists.
//
// Another program may move, remove or truncate the file. A log in use notices a move or a removal
// at the next sync, or within a second. It then begins a new file at its path. Records accepted
// before are in the old file. Another process must not have the log open, unless both have it with
// [Options.Shared].
//
// A File must be closed. No goroutine and no descriptor is left after Close.
type File struct {
	disk        disk
	names       *durable.NameSyncs
	path        string
	options     Options
	enqueue     int           // the longest record that Write passes to Enqueue; -1: none
	closesFirst bool          // Windows can't rename an open file
	layout      string        // of the times in backups' names
	step        time.Duration // between two of them

	current atomic.Pointer[current] // replaced under mu

	// mu is held exclusively while the Writer is exchanged, and shared by each Sync.
	mu       sync.RWMutex
	closed   bool
	failing  error                       // the last failed write, until a record is accepted
	reported []*holdfast.WriteError      // noted, from the last that onWriterError has heard on
	wanted   bool                        // Rotate was called, and the rotation has not succeeded yet
	due      time.Time                   // the next rotation by time; zero: never
	attended time.Time                   // the time of the last attendLocked
	pause    time.Duration               // the wait after the last failed exchange
	retryAt  time.Time                   // the time of the next try
	cutAt    time.Time                   // when the line that a rotation waits for is divided; zero: it waits for none
	cutSize  int64                       // the size of the file at which it is divided
	tendAt   time.Time                   // the time of the next work on backups
	timer    *time.Timer                 // for the earliest of due, retryAt, cutAt and tendAt
	last     time.Time                   // the time in the newest backup's name; zero: not read yet, or none
	made     map[time.Time]time.Duration // by the time in a backup's name: when it was made, as a time since opened
	tending  bool                        // a goroutine works on the backups
	again    bool                        // that goroutine must start over

	// Of that goroutine.
	losses  int       // the count of failed syncs of the directory before it listed the backups
	doubted time.Time // the newest backup that such a failure may have taken the name of

	opened     time.Time
	background sync.WaitGroup // goroutines, and the timer while it runs
	stop       chan struct{}  // closed by Close
	closeOnce  sync.Once
	closeErr   error

	// notes guards the fields below. It is the last lock taken, and not held during a call of the
	// disk.
	notes    sync.Mutex
	stats    Stats             // the Counts of closed Writers only
	unsynced error             // the first failed sync: records may be lost
	troubles map[string]*Error // by Op, the failures that still hold
	hooks    errorqueue.Queue[func() error]
	failures errorqueue.Queue[*Error]
	slow     slow.Watch[holdfast.SlowSync]
}

// A current is the Writer that accepts records, and its file.
type current struct {
	*holdfast.Writer
	file  *logFile
	base  int64 // the file's size when the Writer began; guarded by File.mu
	final bool  // the Writer has failed for good; guarded by File.mu
}

// Open opens the log at path for appending, or creates it. It refuses invalid options before it
// touches the file. A last line that a crash has torn is ended with a line feed before the next
// record; what another process has lost in a failed sync may be zeros there. Open makes no
// directories without DirPerm. A path that is not there or not permitted is a *fs.PathError.
func Open(path string, options Options) (*File, error) {
	return open(sys.Disk{}, path, options, runtime.GOOS == "windows")
}

func init() {
	vfs.OpenRotated = func(d vfs.ReadDisk, path string, o Options) (*File, error) { return open(d, path, o, false) }
}

func open(d disk, path string, o Options, closesFirst bool) (*File, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("holdfast: %w", err)
	}
	step, err := o.timeStep()
	if err != nil {
		return nil, fmt.Errorf("holdfast: %w", err)
	}
	if path == "" {
		return nil, errors.New("holdfast: the log has no path; name a file")
	}
	if path, err = sys.Absolute(path); err != nil {
		return nil, fmt.Errorf("holdfast: working directory: %w", err)
	}
	f := &File{disk: d, names: durable.NameSyncsOf(d), path: path, options: o, opened: time.Now(), enqueue: -1, closesFirst: closesFirst, layout: o.layout(), step: step, stop: make(chan struct{}), troubles: map[string]*Error{}}
	f.failures.To(o.OnError)
	f.slow.To(o.SlowSync, o.OnSlowSync)
	f.hooks.To(f.hook)
	if !o.Policy.Sync.Waits() {
		f.enqueue = int(o.Policy.Buffer)
	}
	perm := uint32(o.Perm)
	if perm == 0 {
		perm = 0o666
	}
	l, err := openFile(d, f.names, path, perm, nil, &f.options, f.keepBackup)
	if refused := sys.PathError("open", path, err); refused != nil {
		return nil, refused
	}
	if err != nil {
		return nil, fmt.Errorf("holdfast: open %s: %w", path, err)
	}
	if err := l.prepare(); err != nil {
		return nil, errors.Join(fmt.Errorf("holdfast: open %s: %w", path, err), l.discard())
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
	f.attendLocked() // OnError reports a failure, and the log works without it
	f.tendOnceLocked()
	return f, nil
}

// Write accepts the record p under the policy, see [holdfast.Writer.Write]. It waits while memory
// is full and during a rotation.
//
// With an error and n = 0, p is not in the log and may be written again. An error with n > 0 is a
// failed sync under a policy that waits for it: p is accepted and not known to be durable. Do not
// write it again. OnError reports these errors too.
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
			if n, err = c.Write(p); c.file.turned.Load() {
				end = c.Written()
			}
		}
		if err == nil {
			if turn := c.file.turn.Load(); end >= turn && f.mayTurn(p, end-turn) {
				f.attend(c)
			}
			return n, nil
		}
		if again := f.failed(c, err, first); n > 0 || !again {
			return n, err
		}
	}
}

// mayTurn reports whether the file may be exchanged after p, if it has `behind` bytes more than it
// should have.
func (f *File) mayTurn(p []byte, behind int64) bool {
	return f.options.Records || len(p) > 0 && p[len(p)-1] == '\n' || behind >= longestLine
}

// attend calls attendLocked when a Write has reached the file's turn.
func (f *File) attend(c *current) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current.Load() == c && !f.closed {
		f.failing = nil
		f.over("write")
		f.attendLocked()
	}
}

// failed handles a failed call of a Writer, and reports whether the call may be repeated.
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
		return first // it may be an old failure of the background
	}
	f.endedLocked(c, err)
	f.attendLocked()
	return true
}

// failingLocked notes a failed write. Until a record is accepted, more failures are not noted.
func (f *File) failingLocked(c *current, err error) {
	failed := writeError(err)
	if slices.Contains(f.reported, failed) {
		return // the failed call has reported it already
	}
	if f.failing == nil {
		f.know(failed)
		f.note(&Error{Op: "write", Path: f.path, AtRisk: c.Written() - c.Flushed(), Err: err})
	}
	f.failing = err
	f.current.Load().file.turn.Store(-1) // the next accepted record ends the failure
}

// mostReported is how many failures are kept at most until onWriterError hears them: of a lasting one it hears the first alone.
const mostReported = 100

// know keeps a failure that a call has reported, so that it is not noted again when onWriterError hears it.
func (f *File) know(failed *holdfast.WriteError) {
	f.reported = append(f.reported[max(0, len(f.reported)+1-mostReported):], failed)
}

// writeError returns the failed write that an error is of, or nil.
func writeError(err error) (failed *holdfast.WriteError) {
	errors.As(err, &failed)
	return failed
}

// isFinal reports whether an error of a Writer is final.
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

// unsyncedLocked notes a failed sync, and reports it once per file.
func (f *File) unsyncedLocked(c *current, err error) {
	if !c.file.reported {
		c.file.reported = true
		f.note(&Error{Op: "sync", Path: f.path, AtRisk: c.Written() - c.Durable(), Err: err})
	}
	if errors.As(err, new(notSynced)) {
		return // no bytes are lost
	}
	f.notes.Lock()
	defer f.notes.Unlock()
	if f.unsynced == nil || errors.Is(f.unsynced, holdfast.ErrUnlinked) {
		f.unsynced = err
	}
}

// settleLocked writes the bytes that a file has kept, and syncs it if the policy syncs. On an error
// it must be tried again.
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

// Rotate begins a new file, unless the current one is empty. If that fails, the log continues in
// the same file and tries again by itself. If a line has begun, the rotation comes behind its end.
func (f *File) Rotate() error {
	return f.asked(func() { f.wanted = true })
}

// Reopen opens the log's path again if it now leads to another file, or to none. Call it on the
// SIGHUP of a program such as logrotate that has moved the file. A file truncated in place
// (copytruncate) needs no Reopen. Records accepted before are written to the old file, which must
// not be compressed before that: use logrotate's delaycompress. If Reopen fails, the log continues
// in the open file and tries again by itself.
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

// Sync makes all records accepted before the call durable, and the names of their files. Under
// sync=never it covers the current file only.
//
// A failed sync is final, as for a Writer: Close and every later Sync return it. The log does not
// know whose records were lost, and no later sync brings them back. Writes continue in a new file,
// and a Write that waits for its own sync still reports whether its record is durable. For a Sync
// of later records only, close the log and open it again. The removal of the file by another
// program is not final and is returned once.
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
			failed = c.Sync() // the first may be an old failure of the background
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

// withUnsynced adds a failed sync to the error of Sync or Close.
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

// Err returns the failures that still hold, or nil: failures that the log tries again, and a failed
// sync, which is final. It waits for nothing.
func (f *File) Err() error {
	f.notes.Lock()
	defer f.notes.Unlock()
	var errs []error
	for _, op := range slices.Sorted(maps.Keys(f.troubles)) {
		errs = append(errs, f.troubles[op])
	}
	return errors.Join(errs...)
}

// over ends the failures of operations.
func (f *File) over(ops ...string) {
	f.notes.Lock()
	defer f.notes.Unlock()
	for _, op := range ops {
		delete(f.troubles, op)
	}
}

// Close flushes all accepted records, syncs them unless the policy is sync=never, and closes the
// log. It returns the errors of these steps and a failed sync of an earlier file. It waits for the
// background work, removes backups beyond the limits, and leaves an unfinished compression to the
// next Open. A second Close waits for
// the first and returns the same error.
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
		f.prune()
	})
	return f.closeErr
}

// Stats returns the counts since Open. It may be called at any time and waits for nothing.
func (f *File) Stats() Stats {
	f.notes.Lock()
	defer f.notes.Unlock()
	s := f.stats
	s.merge(f.current.Load().Stats())
	return s
}

// merge adds the counts of a Writer, except its errors, which the log has counted.
func (s *Stats) merge(c stats.Counts) {
	c.Errors = 0
	s.Merge(&c)
}

// count changes the counts under their lock.
func (f *File) count(change func(*Stats)) {
	f.notes.Lock()
	defer f.notes.Unlock()
	change(&f.stats)
}

// note counts a failure and queues it for OnError.
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

// after queues a call of the program's after an event. The caller is a goroutine of the
// background, or the log is not closed.
func (f *File) after(call func() error) {
	f.background.Add(1)
	f.hooks.Add(call)
}

func (f *File) hook(call func() error) {
	defer f.background.Done() // also if it ends the goroutine
	if err := call(); err != nil {
		f.note(&Error{Op: "hook", Path: f.path, Err: err})
		return
	}
	f.over("hook")
}

// attendLocked exchanges the file if the log needs another one. It notes and returns a failure.
func (f *File) attendLocked() (err error) {
	c := f.current.Load()
	now := time.Now()
	c.base -= c.file.truncated()
	size := c.base + c.Written()
	full := f.options.MaxSize > 0 && size >= int64(f.options.MaxSize)
	wall := clock().Round(0) // without the monotonic clock
	passed := f.passedLocked(wall)
	if passed && !c.file.followedAt().wall.Before(f.due) {
		f.due, passed = f.options.due(wall), false
	}
	f.attended = now
	waits := now.Before(f.retryAt)

	var op string
	next := func(l *logFile) (*logFile, error) { return l, nil }
	switch {
	case !c.file.isOpen() || c.file.isMoved():
		op = "reopen"
	case c.final || c.file.isSpoilt() || full || (f.wanted || passed) && size > 0:
		op = "rotate"
	}
	switch {
	case waits && !c.final, op == "":
	case waits:
		f.exchangeLocked(next) // to another Writer; exchangeLocked has noted a failure
	default:
		if next = f.reopenLocked; op == "rotate" {
			next = f.renameLocked
		}
		err = f.exchangeLocked(next)
	}
	inLine := err == errInLine
	if !inLine {
		f.cutAt = time.Time{}
	}
	switch {
	case inLine:
		err = nil
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
	if inLine {
		turn = f.awaitLineLocked(c, now)
	}
	if f.failing != nil {
		turn = -1 // see failingLocked
	}
	c.file.turned.Store(false) // before turn: a Write that reaches that sets it again
	c.file.turn.Store(turn)
	f.armLocked(now)
	return err
}

// passedLocked reports whether the time of a rotation has come. If not, it computes that time
// again: it is earlier if the clock was set back.
func (f *File) passedLocked(wall time.Time) bool {
	if !f.due.IsZero() && !wall.Before(f.due) {
		return true
	}
	f.due = f.options.due(wall)
	return false
}

// armLocked sets the timer to the earliest time.
func (f *File) armLocked(now time.Time) {
	f.disarmLocked()
	next := []time.Time{f.tendAt, f.retryAt, f.cutAt}
	if f.retryAt.IsZero() && f.cutAt.IsZero() && !f.due.IsZero() { // the clock may be set, or the machine may sleep
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
		case f.retryAt.IsZero() && f.cutAt.IsZero() && !f.passedLocked(clock().Round(0)):
			f.armLocked(now) // the timer only rechecked the clock
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
