// Package wal is a write-ahead log: records with consecutive indices that survive crashes. It
// stores records under a [holdfast.Policy] and finds them again after a crash. It distinguishes the
// torn end that a crash may leave from damage to durable records.
//
// Start with [Open]. Under sync=group a record is on stable storage when [Log.Append] returns, and
// concurrent calls share one sync. Records are never changed. [Log.TruncateBefore] removes them at
// the log's beginning and [Log.TruncateAfter] at its end.
//
// Three things are not promised. Damage in the last batch may be mistaken for a torn end, if the
// log was not closed after it. The checksums don't stop an attacker who can read the files. A
// record that is accepted but not yet synced may be lost, if the policy does not wait. [docs/wal.md]
// has the format and the reasons.
//
// [docs/wal.md]: https://github.com/holdfast-go/holdfast/blob/main/docs/wal.md
package wal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/commit"
	"github.com/holdfast-go/holdfast/internal/deadline"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/errorqueue"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/oldest"
	"github.com/holdfast-go/holdfast/internal/slow"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
	"github.com/holdfast-go/holdfast/stats"
)

// Options configure a Log.
type Options struct {
	// Policy says when records become durable. Its Loss bounds the log's bytes: a record takes 36
	// bytes in addition to its own, rounded up to a multiple of 8. Two things don't depend on the
	// policy: a segment is synced before the next one begins, so that a crash never leaves a hole;
	// and Close syncs, unless the policy is sync=never.
	Policy holdfast.Policy

	// SegmentSize is the size of new files; 0 is 16 MiB. It is a multiple of 4 KiB between 8 KiB
	// and 256 MiB. A larger batch has a segment of its own size, up to 1 GiB. The log also has one
	// spare file, prepared for the next segment.
	SegmentSize holdfast.Size

	// Perm is the permissions of new files, before umask; 0 is 0666. Users who may read them may
	// enter a new directory. An existing segment keeps its permissions, and the last one gets more
	// records. A segment is recycled only if it permits no more than Perm.
	Perm fs.FileMode

	// Repair lets Open go on with a damaged log: it keeps the records before the first damage, as if
	// TruncateAfter had removed the rest. If the log's first segments are missing, it keeps the
	// records behind these. The files with damage and all behind it are set aside under their names
	// with ".damaged" at the end, and Recovery names them. Without Repair damage is an error, and
	// nothing is changed.
	Repair bool

	// OnError is called once for each failure, even if no later call could return it. Failed writes
	// in a row are one failure. A goroutine of its own makes the calls, one at a time and without a
	// lock: OnError may call any method of the Log, and Close does not wait for it.
	OnError func(*Error)

	// OnSlowSync is called while a sync of a segment runs for longer than SlowSync, once for each, as
	// OnError is. 0 never calls it.
	SlowSync   time.Duration
	OnSlowSync func(holdfast.SlowSync)
}

const (
	defaultSegment = 16 * holdfast.MiB
	leastSegment   = 2 * headerSize
	defaultPerm    = 0o666
	mostSegment    = 256 << 20

	// largest is the size of the largest file: a batch that is larger than a segment has one of its own.
	largest = 1 << 30

	// groupBuffer is the least buffer under sync=group and sync=each. Records gather in it while a
	// sync runs; a crash loses none that Append has returned.
	groupBuffer = 1 << 20
)

// A Record is a record and its index.
type Record struct {
	Index uint64
	Data  []byte
}

// A Recovery describes the records found in a log's directory.
type Recovery struct {
	First, Last uint64 // Last is First-1 if there is no record
	Records     int64
	Bytes       int64 // of records' data
	Segments    int

	// Torn is the number of bytes, as far as recognized, at the log's end of appends that were not
	// durable at the crash. Open cuts them.
	Torn int64

	// Damage is the first damage that Options.Repair found, or nil, and Aside the paths of the files
	// that were set aside.
	Damage *DamageError
	Aside  []string
}

// A disk is the file system calls of a log.
type disk interface {
	vfs.Disk
	ReadAt(fd int, p []byte, at int64) (n int, err error)
	WriteAt(fd int, p []byte, at int64) (n int, err error)
}

// A durableWriter is a disk that writes and syncs in one call. It returns [errors.ErrUnsupported]
// where the system has none.
type durableWriter interface {
	WriteAtDurably(fd int, p []byte, at int64) (n int, err error)
}

// A writebacker is a disk that can start to write a file's pages before a sync.
type writebacker interface {
	Writeback(fd int, at, n int64) error
}

// A Log is an open log. Any number of goroutines may call its methods at once.
//
// Memory is bounded by two buffers. Each has the policy's Buffer, 1 MiB under sync=group and
// sync=each, or the largest batch. When they are full, Append waits. Each reader has 256 KiB and
// never delays a writer; for Read the log keeps up to 4 readers, and up to 32 descriptors. The
// log's index in memory is 1/512 of the log's size, and at most 4 MiB.
//
// If another program removes the segment that the log appends to, the next sync returns
// [holdfast.ErrUnlinked], which is final.
type Log struct {
	disk  disk
	dir   directory
	opts  Options
	id    [16]byte
	limit int // the most bytes of pending
	due   holdfast.Due

	mu   sync.Mutex
	room sync.Cond // signals free memory, or the end of a batch or TruncateAfter
	// Indices: first ≤ last+1, and last ≥ flushed ≥ durable.
	first, last, flushed uint64
	durable              atomic.Uint64 // also read without mu

	pending    []byte     // accepted frames, in order
	segments   []*segment // all with live records, and last the head
	head       *segment   // the log appends to it; only the leader changes it
	group      commit.Group[batch]
	exclusive  bool         // TruncateAfter is under way: nothing is accepted
	cuts       atomic.Int64 // number of TruncateAfters that removed records: readers look again
	flushTimer deadline.Timer
	syncTimer  deadline.Timer
	starting   bool          // a goroutine makes the batches that are due by bytes
	lowWritten uint64        // the largest first index in a mark or header
	lowDurable uint64        // the largest durable one of these
	unsynced   int64         // bytes in the kernel that are not durable
	grown      chan struct{} // closed when readers may see more; nil: no reader waits
	final      error
	unreported error  // a failure in the background that no call has returned
	failing    *Error // the last failure, until a write or a sync succeeds
	failures   errorqueue.Queue[*Error]
	slow       slow.Watch[holdfast.SlowSync]
	age        oldest.Clock  // by indices
	zeros      time.Duration // the shortest time that a segment of zeros took: see roomAloneLocked
	counts     stats.Counts
	closing    chan struct{}
	isClosing  bool
	sealed     bool // Close has written the last record
	closed     chan struct{}
	closeErr   error
	background sync.WaitGroup
	places     placeIndex
	uses       uint64 // counts the uses of segments' readFD
	reading    int    // number of open ones
	released   bool   // Close has closed them

	// cursors are kept for Read: the most recently used one is the last.
	cursors     []*cursor
	cursorsLock sync.Mutex

	// each serializes Appends under sync=each.
	each sync.Mutex

	// Only the leader uses these, without mu.
	out     []byte // frames of the batch; the kernel has the bytes before written
	written int
	noDsync bool

	epoch uint64 // of the current segment

	filled    atomic.Int64  // bytes of the current segment that are written: see awaitFilled
	nextZeros atomic.Int64  // the value of filled at which zeros are due
	hurry     chan struct{} // signals that zeros are due, or that a call needs the spare file

	// spare serializes work on the spare file, and guards given: the permissions that the system
	// gave the last new file.
	spare  sync.Mutex
	given  uint32
	wanted atomic.Int32 // calls that wait for spare
}

// Open opens the log in a directory, or makes a new one; the parent directory must exist. It reads
// and checks every record, cuts a torn end, makes the found records durable, and returns their
// Recovery. Other damage is a [DamageError], and then nothing is changed: see Options.Repair,
// [Scan], and the command "holdfast wal repair". A directory that can't be opened or made is a
// *fs.PathError.
func Open(dir string, o Options) (*Log, Recovery, error) { return open(sys.Disk{}, dir, o) }

func init() {
	vfs.OpenLog = func(d vfs.ReadDisk, dir string, o Options) (*Log, Recovery, error) { return open(d, dir, o) }
	vfs.ScanLog = func(d vfs.ReadDisk, dir string, each func(Record, *DamageError) bool) (Recovery, error) {
		return scan(d, dir, each)
	}
}

func open(d disk, dir string, o Options) (*Log, Recovery, error) {
	if err := o.Policy.Validate(); err != nil {
		return nil, Recovery{}, err
	}
	if o.SegmentSize == 0 {
		o.SegmentSize = defaultSegment
	}
	if o.SegmentSize < leastSegment || o.SegmentSize > mostSegment || o.SegmentSize%headerSize != 0 {
		return nil, Recovery{}, fmt.Errorf("wal: a segment of %v; use a multiple of 4KiB between 8KiB and 256MiB", o.SegmentSize)
	}
	if o.Perm == 0 {
		o.Perm = defaultPerm
	}
	switch {
	case o.Perm&^fs.ModePerm != 0:
		return nil, Recovery{}, fmt.Errorf("wal: Perm %#o holds more than permissions; use a value like 0o640", uint32(o.Perm))
	case o.Perm&0o600 != 0o600:
		return nil, Recovery{}, fmt.Errorf("wal: with Perm %#o the owner can't read and write the log; use a value like 0o640", uint32(o.Perm))
	}
	l := &Log{disk: d, opts: o, due: o.Policy.Due(), closing: make(chan struct{}), closed: make(chan struct{}), hurry: make(chan struct{}, 1)}
	l.room.L = &l.mu
	l.group.Init(&l.mu, l.lead, l.noteLocked)
	l.limit = int(o.Policy.Buffer)
	if o.Policy.Sync.Waits() {
		l.limit = max(l.limit, groupBuffer)
	}
	if l.due.Flush != l.due.Sync { // if equal, the sync flushes all
		l.flushTimer.Init(l.due.Flush, &l.dir.key.Device, deadline.ForSync, func() { l.fired(&l.flushTimer, false) })
	}
	l.syncTimer.Init(l.due.Sync, &l.dir.key.Device, deadline.ForSync, func() { l.fired(&l.syncTimer, true) })
	found, err := l.recover(dir)
	if err != nil {
		l.release()
		return nil, Recovery{}, err
	}
	l.slow.To(o.SlowSync, o.OnSlowSync)
	l.failures.To(o.OnError) // Open itself returns earlier failures
	return l, found, nil
}

// First returns the index of the first record. It waits for nothing.
func (l *Log) First() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first
}

// Last returns the index of the last accepted record, or First-1 if there is none. It waits for
// nothing.
func (l *Log) Last() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// Durable returns the index of the last record that is on stable storage with all before it. It
// waits for nothing.
func (l *Log) Durable() uint64 {
	return l.durable.Load()
}

// Err returns the failure that still holds, or nil: one that each call tries again, or a final one.
// It waits for nothing, and does not keep the next call from returning the failure.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.final == nil && l.failing != nil {
		return l.failing
	}
	return l.final
}

// waitsLocked returns the number of bytes that only memory holds.
func (l *Log) waitsLocked() int64 { return int64(len(l.pending) + len(l.out) - l.written) }

// Close writes all accepted records, syncs them unless the policy is sync=never, and closes the
// log. It tries each step, and returns all errors that no call has returned yet. Calls that wait
// for memory, Follow, and every later call return ErrClosed. A second Close waits for the first and
// returns the same error.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.isClosing {
		l.mu.Unlock()
		<-l.closed
		return l.closeErr
	}
	l.isClosing = true
	close(l.closing)
	l.group.Hurry()
	l.clocksLocked()
	l.room.Broadcast()
	for l.exclusive {
		l.room.Wait()
	}
	sync := l.opts.Policy.Sync.Mode != holdfast.SyncNever
	var errs []error
	if err := l.advanceLocked(background, l.last, sync); err != nil {
		errs = append(errs, err)
	}
	for l.group.Leading() { // a Wait may be trying a failed write again
		l.room.Wait()
	}
	if sync && len(errs) == 0 {
		if err := l.vouchLocked(); err != nil {
			errs = append(errs, err)
		}
	}
	if l.unreported != nil {
		errs = append(errs, l.unreported)
	}
	if l.final != nil && !errors.Is(errors.Join(errs...), l.final) { // every later call returns it, and this one too
		errs = append(errs, l.final)
	}
	l.sealed = true
	l.growLocked()
	for l.group.Leading() {
		l.room.Wait()
	}
	l.mu.Unlock()
	l.background.Wait()
	l.group.Wait()
	l.closeErr = errors.Join(append(errs, l.release())...)
	close(l.closed)
	return l.closeErr
}

// vouchLocked writes a mark behind the last frame and a note beside the header. Nothing depends on
// them: each lets the next Open tell damage in the last batch from a torn end, and no block of the
// disk has both.
func (l *Log) vouchLocked() error {
	s := l.head
	if s.end == headerSize || s.marked && int64(s.note.durable) == s.end {
		return nil
	}
	if !s.marked {
		l.pending = appendFrame(l.pending, l.last+1, nil, l.first)
	}
	var failed error
	err := l.moveLocked(batch{sync: true, cut: func() {
		s, n := l.head, note{low: l.first}
		l.mu.Unlock()
		defer l.mu.Lock()
		n.durable = uint32(s.synced)
		if err := l.writePart(s, n.encode(s.secret), noteAt); err != nil {
			failed = l.problem("write", s.name, false, err)
			return
		}
		s.note = n
	}})
	return cmp.Or(err, failed)
}

// release closes all descriptors, which releases the lock.
func (l *Log) release() error {
	var err error
	l.mu.Lock()
	l.released = true
	l.flushTimer.Release()
	l.syncTimer.Release()
	for _, s := range l.segments {
		if s.pins == 0 {
			l.closeReadLocked(s)
		}
	}
	l.mu.Unlock()
	if l.head != nil && l.head.fd >= 0 {
		err = l.disk.Close(l.head.fd)
	}
	if err = errors.Join(err, l.dir.close()); err != nil {
		return fmt.Errorf("wal: close %s: %w", l.dir.path, err)
	}
	return nil
}

// A directory is the log's directory, open and locked.
type directory struct {
	disk  disk
	path  string
	fd    int
	lock  int
	key   keyed.Key
	names *durable.NameSyncs
	live  bool // not locked: a log that is open may change it
}

// A lockMode is how a log's directory is locked.
type lockMode int

const (
	lockExclusive lockMode = iota
	lockShared             // against writers only
	lockNone
)

// lockFile is locked while the log is open.
const lockFile = "lock"

// openDirectory opens and locks a directory. A new lock file gets perm.
func openDirectory(d disk, path string, mode lockMode, perm fs.FileMode) (dir directory, err error) {
	dir = directory{disk: d, path: path, fd: -1, lock: -1, names: durable.NameSyncsOf(d), live: mode == lockNone}
	defer func() {
		if err != nil {
			dir.close()
			dir.fd, dir.lock = -1, -1
		}
	}()
	name, err := sys.NewName(path)
	if err != nil {
		return dir, fmt.Errorf("wal: %q: %w", path, err)
	}
	if dir.fd, err = d.OpenDir(name); err != nil {
		return dir, ofDirectory("open", path, err)
	}
	is, err := d.StatFD(dir.fd)
	if err != nil {
		return dir, fmt.Errorf("wal: stat directory %s: %w", path, err)
	}
	dir.key = keyed.Key{Device: is.Device, Inode: is.Inode}
	if mode == lockNone {
		return dir, nil
	}
	shared := mode == lockShared
	flags, lock := os.O_RDWR|os.O_CREATE, d.Lock
	if shared {
		flags, lock = os.O_RDONLY, d.LockShared
	}
	if dir.lock, _, err = dir.open(lockFile, flags, perm); err != nil && !(shared && errors.Is(err, os.ErrNotExist)) {
		if known := sys.PathError("open", filepath.Join(path, lockFile), err); known != nil {
			return dir, known
		}
		return dir, fmt.Errorf("wal: open the lock of %s: %w", path, err)
	}
	// Lock the directory too: if another program removes the lock file, the next Open makes a new
	// one. The file is for systems that lock no directory, NFS among them.
	for _, fd := range []int{dir.fd, dir.lock} {
		if fd < 0 {
			continue
		}
		err = lock(fd)
		if errors.Is(err, syscall.EAGAIN) {
			return dir, fmt.Errorf("%w: %s", ErrLocked, filepath.Join(path, lockFile))
		}
		locksNone := errors.Is(err, errors.ErrUnsupported) || fd == dir.fd && (errors.Is(err, syscall.EBADF) || errors.Is(err, syscall.EINVAL))
		if err != nil && !locksNone {
			return dir, fmt.Errorf("wal: lock %s: %w", path, err)
		}
	}
	return dir, nil
}

// ofDirectory returns the error of a call on a log's directory, before anything of the log is known.
func ofDirectory(op, path string, err error) error {
	if known := sys.PathError(op, path, err); known != nil {
		return known
	}
	return fmt.Errorf("wal: %s directory %s: %w", op, path, err)
}

// open opens a regular file of the log. Other programs may have replaced it, so open follows no
// link and does not wait for a pipe.
func (d *directory) open(name string, flag int, perm fs.FileMode) (fd int, is sys.Stat, err error) {
	fd, err = d.disk.OpenFile(d.fd, plainName(name), flag|sys.NoFollow, uint32(perm))
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.EMLINK) { // EMLINK: FreeBSD
		return -1, is, fmt.Errorf("it is a symbolic link; move the file itself there: %w", err)
	}
	if err != nil {
		return -1, is, err
	}
	if is, err = d.disk.StatFD(fd); err == nil && is.Mode&vfs.KindMask != vfs.KindRegular {
		err = errors.New("it is no regular file; move it away")
	}
	if err != nil {
		d.disk.Close(fd)
		return -1, is, err
	}
	return fd, is, nil
}

// has reports whether a name is in the directory.
func (d *directory) has(name string) bool {
	_, err := d.disk.Stat(d.fd, plainName(name))
	return !errors.Is(err, os.ErrNotExist)
}

// sync makes the directory's names durable.
func (d *directory) sync(since int) error {
	if err := d.names.Directory(d.key, func() error { return d.disk.Sync(d.fd) }); err != nil {
		return err
	}
	return d.names.LostSince(d.key, since)
}

// syncAbove makes the directory's own entry durable, in its actual parent: the path may lead
// elsewhere by now. A mount point needs no sync.
func (d *directory) syncAbove(since int) error {
	fd, err := d.disk.OpenDirIn(d.fd, plainName(".."))
	if err != nil {
		return err
	}
	above := directory{disk: d.disk, fd: fd, lock: -1, names: d.names}
	is, err := d.disk.StatFD(fd)
	if above.key = (keyed.Key{Device: is.Device, Inode: is.Inode}); err == nil && is.Device == d.key.Device {
		err = above.sync(since)
	}
	return errors.Join(err, above.close())
}

func (d *directory) close() error {
	var errs []error
	for _, fd := range []int{d.lock, d.fd} {
		if d.disk != nil && fd >= 0 {
			// A forked process shares the descriptor until it runs its program.
			_ = d.disk.Unlock(fd) // Close suffices if it is not locked or the system has no call
			errs = append(errs, d.disk.Close(fd))
		}
	}
	return errors.Join(errs...)
}
