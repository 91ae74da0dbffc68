package rotate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/records"
	"github.com/holdfast-go/holdfast/internal/slow"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A disk is the file system calls of a log. [sys.Disk] calls the kernel.
type disk interface {
	vfs.Disk
	vfs.Source
}

// A place is the directory of a log's files.
type place struct {
	disk  disk
	names *durable.NameSyncs
	path  string   // the log's
	in    string   // the path of dir
	base  sys.Name // the file's name in dir, after symbolic links
	dir   int
	key   keyed.Key // of dir
}

// findPlace opens the directory of a log's path.
func findPlace(d disk, names *durable.NameSyncs, path string, o *Options) (p place, err error) {
	p = place{disk: d, names: names, path: path}
	var to string
	resolve := func() (err error) {
		to, err = d.Resolve(path)
		return err
	}
	if err = sys.Uninterrupted(resolve); errors.Is(err, fs.ErrNotExist) && o.DirPerm != 0 {
		if err = p.makeDir(filepath.Dir(path), o); err == nil {
			err = sys.Uninterrupted(resolve)
		}
	}
	if err == nil && sys.IsDescriptor(path) {
		err = errors.New("it names a file that is open already, which can't be rotated; use a holdfast.Writer on it, or name a path")
	}
	if err != nil {
		return p, err
	}
	directory, base := vfs.SplitPath(to)
	if p.base, err = sys.NewName(base); err != nil {
		return p, fmt.Errorf("%s: %w; name a file", path, err)
	}
	longest := longestName - longestSuffix
	if o.TimeFormat != "" {
		longest += len(stamp) - len(time.Time{}.Format(o.TimeFormat))
	}
	if len(base) > longest {
		return p, fmt.Errorf("the name %s is too long for those of its backups; use one of at most %d bytes", base, longest)
	}
	p.in = directory
	name, err := sys.NewName(directory)
	if err != nil {
		return p, err
	}
	openDir := func() (err error) {
		p.dir, err = d.OpenDir(name)
		return err
	}
	err = sys.Uninterrupted(openDir)
	if errors.Is(err, fs.ErrNotExist) && o.DirPerm != 0 {
		if err = p.makeDir(directory, o); err == nil {
			err = sys.Uninterrupted(openDir)
		}
	}
	if err != nil {
		return p, fmt.Errorf("the directory %s: %w; make it first, readable and writable, or set DirPerm", directory, err)
	}
	is, err := d.StatFD(p.dir)
	if err != nil {
		d.Close(p.dir) // nothing was written to it
		return p, err
	}
	p.key = keyed.Key{Device: is.Device, Inode: is.Inode}
	if o.DirPerm != 0 && o.Policy.Sync.Mode != holdfast.SyncNever {
		if err := p.nameDirs(directory, is.Device); err != nil {
			d.Close(p.dir) // nothing was written to it
			return p, fmt.Errorf("the name of the directory %s: %w", directory, err)
		}
	}
	return p, nil
}

// nameDirs makes the names of a directory and of those above it on its file system durable: a process that was
// killed may have made them, though none that it had no permission to sync. Where the file system refuses to
// sync directories, the sync of the log's own says so.
func (p *place) nameDirs(path string, device uint64) error {
	for above := filepath.Dir(path); above != path; path, above = above, filepath.Dir(above) {
		is, err := p.syncPath(above)
		if refused := (*durable.RefusedError)(nil); errors.As(err, &refused) || errors.Is(err, fs.ErrPermission) {
			return nil
		}
		if err != nil || is.Device != device { // a file system is mounted here
			return err
		}
	}
	return nil
}

// makeDir makes a directory, and those above it that are missing. Their names are durable if the
// policy syncs.
func (p *place) makeDir(path string, o *Options) error {
	above := filepath.Dir(path)
	name, err := sys.NewName(path)
	if err != nil {
		return err
	}
	mkdir := func() error { return p.disk.Mkdir(name, uint32(o.DirPerm)) }
	err = sys.Uninterrupted(mkdir)
	if errors.Is(err, fs.ErrNotExist) && above != path {
		if err = p.makeDir(above, o); err == nil {
			err = sys.Uninterrupted(mkdir)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrExist) { // another program may make it just now
		return err
	}
	if o.Policy.Sync.Mode == holdfast.SyncNever {
		return nil
	}
	_, err = p.syncPath(above)
	return err
}

// syncPath makes the names in a directory durable.
func (p *place) syncPath(path string) (is sys.Stat, err error) {
	name, err := sys.NewName(path)
	if err != nil {
		return is, err
	}
	fd := 0
	err = sys.Uninterrupted(func() (err error) {
		fd, err = p.disk.OpenDir(name)
		return err
	})
	if err != nil {
		return is, err
	}
	defer p.disk.Close(fd) // nothing was written to it
	if is, err = p.disk.StatFD(fd); err != nil {
		return is, err
	}
	key := keyed.Key{Device: is.Device, Inode: is.Inode}
	if err = p.names.Directory(key, func() error { return p.disk.Sync(fd) }); err == nil {
		err = p.names.LostSince(key, 0)
	}
	return is, err
}

// of returns the path of a file in the directory.
func (p *place) of(name sys.Name) string { return filepath.Join(p.in, name.String()) }

// syncDir syncs the directory. If more syncs of it have failed than since, it returns an error: a
// name made after that may be lost. It opens a new descriptor, because one with a failed sync must
// not be used again.
func (p *place) syncDir(since int) error {
	var fd int
	err := sys.Uninterrupted(func() (err error) {
		fd, err = p.disk.OpenDirIn(p.dir, sys.Name(".\x00"))
		return err
	})
	if err != nil {
		return notSynced{fmt.Errorf("directory of the file: %w", err)}
	}
	err = p.names.Directory(p.key, func() error { return p.disk.Sync(fd) })
	p.disk.Close(fd) // nothing was written to it
	if err == nil {
		err = p.names.LostSince(p.key, since)
	}
	if err != nil {
		return fmt.Errorf("directory of the file: %w", err)
	}
	return nil
}

// A logFile is one file of the log, the File of a Writer.
type logFile struct {
	place
	options *Options

	// Of its File, since it has a Writer.
	missing missing                   // keepBackup
	count   func(change func(*Stats)) // count
	slow    *slow.Watch[holdfast.SlowSync]

	// In a shared log the next three change with syncing and mu held: see follow.
	inode atomic.Pointer[keyed.Key] // its identity
	like  access                    // the access that its successor gets
	fd    int                       // -1: it was closed and could not be opened again

	// turn is the offset of its Writer at which a Write must take the lock: where the file is full,
	// or -1 for at once. turned is set when the file has the Writer's bytes up to there: a Write that
	// does not stay in memory need not ask its Writer for its offset, which takes a lock.
	turn   atomic.Int64
	turned atomic.Bool

	// due is set by timer, lookEvery after the last look at the log's path. A shared log has no timer: it looks at
	// each write.
	due   atomic.Bool
	timer *time.Timer

	refused  atomic.Bool // rest holds accepted bytes, or Sync must try the directory again
	healed   bool        // its last line was torn
	reported bool        // a failed sync was reported; guarded by File.mu

	syncing     sync.Mutex // guards the next three fields: one sync at a time
	spoilt      error      // the failed sync, which no later one repairs
	dirUnsynced bool       // its directory entry is not durable
	had         bool       // it had bytes when it was opened, which this process has not synced
	since       int        // count of failed directory syncs when the file last had its name

	mu      sync.Mutex // guards the fields below: one write at a time
	at      int64      // its size, if no other program changes it
	written int64      // by its Writer
	inLine  bool       // the last accepted byte is no line feed

	// keep is set while its Writer is closed. Bytes that the disk refuses then go to rest, at most
	// a Writer's memory, and are written before all others: the Writer loses nothing.
	keep bool
	rest []byte

	grown    int64  // bytes that other processes have added, and not in File.current.base yet
	own      int64  // the size behind the last own write; -1: none yet
	followed moment // when it last followed another process; zero: never
	// header is the number of bytes of rest that are a new file's header, or in a shared log the line
	// feed that ends a torn line. They are written with the next record, and do not count for the file's
	// size before.
	header int
}

// lookEvery bounds the time until a log in use notices that another program has moved it.
const lookEvery = time.Second

// A missing makes a file where the log's path has none. It calls open with os.O_CREATE for that. Since is the count of failed syncs of the
// directory.
type missing func(p place, since int, open func(create int) error) error

// openFile opens the log's file, or makes one that is like another. It
// ends a torn line, and prepares the header of an empty file. Missing is called where there is no file;
// it is nil where this process has just renamed it.
func openFile(d disk, names *durable.NameSyncs, path string, perm uint32, like *access, o *Options, missing missing) (*logFile, error) {
	p, err := findPlace(d, names, path, o)
	if err != nil {
		return nil, err
	}
	l := &logFile{place: p, fd: -1, since: names.Losses(p.key), options: o, count: func(func(*Stats)) {}, own: -1, dirUnsynced: true}
	l.inode.Store(new(keyed.Key))
	open := func(create int) error { return l.open(perm, like, create) }
	switch {
	case missing == nil, like != nil && !o.Shared:
		err = open(os.O_CREATE)
	default: // in a shared log another process may rename the file at any time
		if err = open(0); errors.Is(err, fs.ErrNotExist) {
			err = missing(p, l.since, open)
		}
	}
	if err != nil {
		return nil, errors.Join(err, l.discard())
	}
	switch {
	case o.Shared: // each write looks at the end
	case l.at == 0:
		l.rest, l.header = slices.Clone(o.Header), len(o.Header)
	case !o.Records && l.isTorn():
		l.healed, l.rest = true, []byte{'\n'}
	}
	if !o.Shared {
		l.timer = time.AfterFunc(lookEvery, func() { l.due.Store(true) })
	}
	return l, nil
}

// prepare gives the log's first file what Options ask of a file that exists.
func (l *logFile) prepare() (err error) {
	if l.options.Shared {
		if err := l.lock(); err != nil {
			return err
		}
		defer l.unlock()
	}
	if l.options.SetPerm {
		err = sys.Uninterrupted(func() error { return l.disk.Chmod(l.fd, uint32(l.options.Perm)) })
	}
	return err
}

const openFlags = os.O_WRONLY | os.O_APPEND | sys.NoFollow

// open opens the file, and with os.O_CREATE makes it if it is not there.
func (l *logFile) open(perm uint32, like *access, create int) error {
	openAs := func(flag int, perm uint32) error {
		return sys.Uninterrupted(func() (err error) {
			l.fd, err = l.disk.OpenFile(l.dir, l.base, flag, perm)
			return err
		})
	}
	if like != nil {
		perm = like.private() // private until it has its owner
	}
	err := fs.ErrExist
	if create != 0 {
		err = openAs(openFlags|os.O_CREATE|os.O_EXCL, perm)
	}
	isNew := err == nil
	if errors.Is(err, fs.ErrExist) {
		err = openAs(openFlags|create, perm)
	}
	if err != nil {
		l.fd = -1
		return err
	}
	if isNew && like != nil {
		err = l.imitate(like)
	}
	var is access
	if err == nil {
		is, err = accessOf(l.disk, l.fd)
	}
	if err == nil && is.Mode&vfs.KindMask != vfs.KindRegular {
		return fmt.Errorf("%s is no regular file and can't be rotated", l.path)
	}
	if err != nil {
		if isNew {
			l.disk.Remove(l.dir, l.base) // the first failure is reported
		}
		return err
	}
	l.inode.Store(&keyed.Key{Device: is.Device, Inode: is.Inode})
	l.at, l.had, l.like = is.Size, is.Size > 0, is
	if l.had {
		vfs.DropRefused(l.disk, l.fd, l.at-1)
	}
	return nil
}

// Name returns the path for the Writer's errors.
func (l *logFile) Name() string { return l.path }

// FileSystemDevice is [deadline.Placed]'s: another process may keep a shared log locked.
func (l *logFile) FileSystemDevice() uint64 {
	if l.options.Shared {
		return 0
	}
	return l.key.Device
}

// isTorn reports whether the file ends without a line feed. It returns false if the file can't be
// read.
func (l *logFile) isTorn() bool {
	fd, err := l.disk.OpenSource(l.dir, l.base)
	if err != nil {
		return false
	}
	defer l.disk.Close(fd)
	var last [1]byte
	n, err := l.disk.ReadAt(fd, last[:], l.at-1)
	return err == nil && n == 1 && last[0] != '\n'
}

// Write writes all of p, or nothing if the disk can cut a partial write off again.
//
// What the kernel takes at once needs nothing of writeLocked: a record without a buffer is to cost what write(2) costs. So no
// function lies between, and the code and the fields are close together (docs/design/decisions.md).
func (l *logFile) Write(p []byte) (n int, err error) {
	l.mu.Lock()
	if kernel, ok := l.disk.(sys.Disk); ok && l.fd >= 0 && !l.options.Shared && len(l.rest) == 0 && !l.due.Load() {
		var e syscall.Errno
		if n, e = kernel.WriteOnce(l.fd, p); e != 0 && e != syscall.EINTR {
			err = e
		}
		l.at += int64(n)
	}
	if n < len(p) {
		n, err = l.writeLocked(p, n, err)
	}
	if n > 0 {
		l.inLine = p[n-1] != '\n'
	}
	if l.written += int64(n); l.written >= l.turn.Load() {
		l.turned.Store(true)
	}
	l.mu.Unlock()
	return n, err
}

// writeLocked writes p, of which the file has n bytes, unless it was refused with an error. It may release the lock meanwhile.
func (l *logFile) writeLocked(p []byte, n int, refused error) (int, error) {
	if l.due.Load() {
		l.lookLocked()
	}
	err := refused
	if err == nil {
		err = l.enterLocked()
	}
	for err == errFollow {
		l.mu.Unlock()
		l.syncing.Lock()
		err = l.follow()
		l.syncing.Unlock()
		l.mu.Lock()
		if err == nil {
			err = l.enterLocked()
		}
	}
	if err == nil {
		if err = l.restLocked(); err == nil {
			n, err = l.putLocked(p, n)
		}
		l.leaveLocked()
	}
	if err != nil && l.keep && l.options.Policy.Buffer > 0 { // without a buffer a Write under way returns its failure
		l.rest = append(l.rest, p[n:]...)
		l.refused.Store(true)
		return len(p), nil
	}
	return n, err
}

// lookLocked looks whether another program has moved the file. The next look is due lookEvery later, at the next write.
func (l *logFile) lookLocked() {
	l.due.Store(false)
	l.timer.Reset(lookEvery)
	if l.isMoved() {
		l.turn.Store(-1)
	}
}

// putLocked writes p, of which the file has n bytes. After a partial write it cuts the part off: a refused record must
// not leave a torn line.
func (l *logFile) putLocked(p []byte, n int) (int, error) {
	before := l.at - int64(n)
	k, err := writeAll(l.disk, l.fd, p[n:])
	n += k
	l.at += int64(k)
	if err != nil && n > 0 {
		is, failed := l.disk.StatFD(l.fd)
		if failed == nil && is.Size == l.at && l.disk.Truncate(l.fd, before) == nil {
			l.at, n = before, 0
		}
	}
	return n, err
}

// mostInterruptions is the most times that an interrupted write is retried.
const mostInterruptions = 100

// writeAll writes p in one or more calls.
func writeAll(d disk, fd int, p []byte) (n int, err error) {
	for interrupted := 0; n < len(p); {
		k, err := d.Write(fd, p[n:])
		n += max(k, 0)
		switch {
		case errors.Is(err, syscall.EINTR):
			if interrupted++; interrupted > mostInterruptions {
				return n, fmt.Errorf("write was interrupted %d times", interrupted) // a Writer retries EINTR
			}
		case err != nil:
			return n, err
		case k <= 0:
			return n, io.ErrShortWrite
		}
	}
	return n, nil
}

// restLocked writes the bytes that an earlier Writer could not write.
func (l *logFile) restLocked() error {
	if len(l.rest) == 0 {
		return nil
	}
	n, err := l.putLocked(l.rest, 0)
	l.rest, l.header = l.rest[n:], max(0, l.header-n)
	return err
}

// drain is restLocked if rest holds accepted bytes. The caller holds syncing, or has the file for
// itself.
func (l *logFile) drain() error {
	if !l.refused.Load() {
		return nil
	}
	err := l.drainOnce()
	for err == errFollow {
		if err = l.follow(); err == nil {
			err = l.drainOnce()
		}
	}
	return err
}

func (l *logFile) drainOnce() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.rest) == 0 {
		return nil
	}
	if err := l.enterLocked(); err != nil {
		return err
	}
	defer l.leaveLocked()
	return l.restLocked()
}

// A notSynced is the error of a sync that was not made: the disk refuses the kept bytes, or the
// directory can't be opened. No bytes are lost, and a later sync may succeed.
type notSynced struct{ error }

func (e notSynced) Unwrap() error { return e.error }

// Sync makes the written bytes and the file's name durable.
func (l *logFile) Sync() error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	if l.spoilt != nil {
		return l.spoilt
	}
	if err := l.drain(); err != nil {
		return notSynced{err}
	}
	if l.fd < 0 {
		return notSynced{errNotOpen}
	}
	defer l.slow.Begin(holdfast.SlowSync{Path: l.path, Since: time.Now()})()
	if err := l.disk.Datasync(l.fd); err != nil {
		if l.dirUnsynced { // without a journal the name may be lost too
			l.names.Fail(l.key)
		}
		l.spoilt = err
		return err
	}
	if l.dirUnsynced {
		if err := l.syncDir(l.since); err != nil {
			if errors.As(err, new(notSynced)) {
				l.refused.Store(true) // the next Sync must try again, even if its Writer has nothing new
			} else {
				l.spoilt = err
			}
			return err
		}
		l.dirUnsynced = false
	}
	l.had = false
	l.mu.Lock()
	if len(l.rest) <= l.header { // a Write may have been refused meanwhile
		l.refused.Store(false)
	}
	l.mu.Unlock()
	failed := l.names.Losses(l.key)
	if !l.isMoved() {
		l.since = failed
	} else {
		l.turn.Store(-1)
		if l.isRemoved() && !l.options.Shared { // else another process may have compressed it
			return holdfast.ErrUnlinked
		}
	}
	return nil
}

func (l *logFile) isSpoilt() bool {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	return l.spoilt != nil
}

// isMoved reports whether the log's path now leads to another file or to none.
func (l *logFile) isMoved() bool {
	is, err := l.disk.StatPath(sys.Name(l.path + "\x00"))
	return errors.Is(err, fs.ErrNotExist) || err == nil && keyed.Key{Device: is.Device, Inode: is.Inode} != *l.inode.Load()
}

// isRemoved reports whether the file has no name any more. Of one that is not open that is not known.
func (l *logFile) isRemoved() bool {
	if l.fd < 0 {
		return false
	}
	is, err := l.disk.StatFD(l.fd)
	return err == nil && is.Links == 0
}

// truncated returns the number of bytes that another program has cut off since the last call, less
// the bytes that it has added to a shared log. It records the file's access for the next file.
func (l *logFile) truncated() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fd < 0 {
		return 0
	}
	is, err := accessOf(l.disk, l.fd)
	if err != nil {
		return 0
	}
	cut := l.at - is.Size - l.grown
	l.like, l.at, l.grown = is, is.Size, 0
	return cut
}

// RecordEnd implements [records.Ender].
func (l *logFile) RecordEnd(p records.Bytes) int {
	if l.options.Records {
		return len(p)
	}
	return bytes.LastIndexByte(p, '\n') + 1
}

// isOpen reports whether the file is open.
func (l *logFile) isOpen() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fd >= 0
}

func (l *logFile) isInLine() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.inLine
}

func (l *logFile) setKeep(keep bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keep = keep
}

// Close closes the file, unless its Writer is exchanged and the next one may use it.
func (l *logFile) Close() error {
	if l.keep {
		return nil
	}
	return l.discard()
}

// discard writes rest if it can, and closes the file.
func (l *logFile) discard() error {
	if l.timer != nil {
		l.timer.Stop()
	}
	err := l.drain()
	if l.fd >= 0 {
		err = errors.Join(err, l.disk.Close(l.fd))
		l.fd = -1
	}
	l.disk.Close(l.dir) // nothing was written to it
	if err != nil {
		err = fmt.Errorf("holdfast: close %s: %w", l.path, err)
	}
	return err
}

var errNotOpen = errors.New("the file was closed to be renamed and can't be opened again")
