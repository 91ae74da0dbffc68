package rotate

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A disk is the calls that a log makes of a file system. [sys.Disk] calls the kernel.
type disk interface {
	vfs.Disk
	vfs.Source
}

// A place is where a log's files are: the directory that its path leads to.
type place struct {
	disk  disk
	names *durable.NameSyncs
	path  string   // of the log
	base  sys.Name // where its symbolic links lead, in dir
	dir   int
	key   keyed.Key // of dir
}

// findPlace opens the directory of a log's path.
func findPlace(d disk, names *durable.NameSyncs, path string) (p place, err error) {
	p = place{disk: d, names: names, path: path}
	var to string
	err = sys.Uninterrupted(func() (err error) {
		to, err = d.Resolve(path)
		return err
	})
	if err != nil {
		return p, err
	}
	directory, base := vfs.SplitPath(to)
	if p.base, err = sys.NewName(base); err != nil {
		return p, fmt.Errorf("%s: %w; name a file", path, err)
	}
	if len(base) > longestName-longestSuffix {
		return p, fmt.Errorf("the name %s is too long for those of its backups; use one of at most %d bytes", base, longestName-longestSuffix)
	}
	name, err := sys.NewName(directory)
	if err != nil {
		return p, err
	}
	err = sys.Uninterrupted(func() (err error) {
		p.dir, err = d.OpenDir(name)
		return err
	})
	if err != nil {
		return p, fmt.Errorf("the directory %s: %w; make it first, readable and writable", directory, err)
	}
	is, err := d.StatFD(p.dir)
	if err != nil {
		d.Close(p.dir) // nothing was written to it
		return p, err
	}
	p.key = keyed.Key{Device: is.Device, Inode: is.Inode}
	return p, nil
}

// syncDir makes the names durable that the directory has got since so many syncs had failed. It
// takes a descriptor of its own: one by which a sync failed must not be used again.
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

// A logFile is one file of the log, which a Writer writes to.
type logFile struct {
	place
	inode keyed.Key // which file it is
	like  access    // what its successor is to be like
	fd    int       // -1: it was closed and could not be opened again

	// turn is the offset of its Writer at which a Write must take the lock. It is where the
	// file is full, or -1 for at once.
	turn    atomic.Int64
	refused atomic.Bool // by Sync too; see rest
	healed  bool        // its last line was torn
	told    bool        // a failed sync was reported; guarded by File.mu

	syncing  sync.Mutex // guards what is below: one sync at a time
	spoilt   error      // of a failed sync, which no later one repairs
	nameless bool       // its name is not durable
	since    int        // how many syncs of names had failed when it was last seen to have its name

	mu     sync.Mutex // guards what is below, and one write at a time
	at     int64      // its size, if no other program changes it
	looked time.Time

	// keep is set while its Writer is closed. What the disk refuses then is kept in rest, so that
	// nothing is lost with the Writer: no more than a Writer's memory. It is written before all
	// else.
	keep bool
	rest []byte
}

// lookEvery is the longest that a log which is written to does not notice that another
// program has moved it.
const lookEvery = time.Second

// openFile opens the log's file, or makes one that is like another.
func openFile(d disk, names *durable.NameSyncs, path string, perm uint32, like *access) (*logFile, error) {
	p, err := findPlace(d, names, path)
	if err != nil {
		return nil, err
	}
	l := &logFile{place: p, fd: -1, since: names.Losses(p.key), nameless: true, looked: time.Now()}
	if err := l.open(perm, like); err != nil {
		return nil, errors.Join(err, l.discard())
	}
	if l.at > 0 && l.isTorn() {
		l.healed, l.rest = true, []byte{'\n'}
	}
	return l, nil
}

const openFlags = os.O_WRONLY | os.O_CREATE | os.O_APPEND | sys.NoFollow

func (l *logFile) open(perm uint32, like *access) error {
	openAs := func(flag int, perm uint32) error {
		return sys.Uninterrupted(func() (err error) {
			l.fd, err = l.disk.OpenFile(l.dir, l.base, flag, perm)
			return err
		})
	}
	if like != nil {
		perm = like.private() // until it has its owner
	}
	err := openAs(openFlags|os.O_EXCL, perm)
	isNew := err == nil
	if errors.Is(err, fs.ErrExist) {
		err = openAs(openFlags, perm)
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
			l.disk.Remove(l.dir, l.base) // what failed first is reported
		}
		return err
	}
	l.inode, l.at, l.like = keyed.Key{Device: is.Device, Inode: is.Inode}, is.Size, is
	return nil
}

// Name is what the Writer's errors say.
func (l *logFile) Name() string { return l.path }

// isTorn reports whether the file ends without a line feed. One that can't be read is left as
// it is.
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

// Write hands p to the kernel whole, or none of it where the disk lets us take a part back.
func (l *logFile) Write(p []byte) (n int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.looked) >= lookEvery {
		l.looked = now
		if l.isMoved() {
			l.turn.Store(-1)
		}
	}
	if err = l.drainLocked(); err == nil {
		n, err = l.putLocked(p)
	}
	if err != nil && l.keep {
		l.rest = append(l.rest, p[n:]...)
		l.refused.Store(true)
		return len(p), nil
	}
	return n, err
}

// putLocked writes p. If that fails in the middle it cuts the part off again: a record that is
// refused must not be torn.
func (l *logFile) putLocked(p []byte) (n int, err error) {
	if l.fd < 0 {
		return 0, errNotOpen
	}
	before := l.at
	n, err = writeAll(l.disk, l.fd, p)
	l.at += int64(n)
	if err != nil && n > 0 {
		is, failed := l.disk.StatFD(l.fd)
		if failed == nil && is.Size == l.at && l.disk.Truncate(l.fd, before) == nil {
			l.at, n = before, 0
		}
	}
	return n, err
}

// mostInterruptions is how often an interrupted write goes on.
const mostInterruptions = 100

// writeAll writes p in as many calls as that takes.
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

// drainLocked writes what an earlier Writer could not.
func (l *logFile) drainLocked() error {
	if len(l.rest) == 0 {
		return nil
	}
	n, err := l.putLocked(l.rest)
	l.rest = l.rest[n:]
	return err
}

// drain is drainLocked of bytes that were accepted.
func (l *logFile) drain() error {
	if !l.refused.Load() {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.drainLocked()
}

// A notSynced is why a sync was not made: the disk refuses what the file keeps, or the directory
// can't be opened. Nothing is lost by that, and a later sync may succeed.
type notSynced struct{ error }

func (e notSynced) Unwrap() error { return e.error }

// Sync makes durable what was written, the file's name too.
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
	if err := l.disk.Datasync(l.fd); err != nil {
		if l.nameless { // without a journal the name may be lost with it
			l.names.Fail(l.key)
		}
		l.spoilt = err
		return err
	}
	if l.nameless {
		if err := l.syncDir(l.since); err != nil {
			if errors.As(err, new(notSynced)) {
				l.refused.Store(true) // the next Sync must try again, also if its Writer has nothing new
			} else {
				l.spoilt = err
			}
			return err
		}
		l.nameless = false
	}
	l.refused.Store(false)
	failed := l.names.Losses(l.key)
	if !l.isMoved() {
		l.since = failed
	} else {
		l.turn.Store(-1)
		if is, err := l.disk.StatFD(l.fd); err == nil && is.Links == 0 {
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

// isMoved reports whether the log's path leads to another file by now, or to none.
func (l *logFile) isMoved() bool {
	is, err := l.disk.StatPath(sys.Name(l.path + "\x00"))
	return errors.Is(err, fs.ErrNotExist) || err == nil && keyed.Key{Device: is.Device, Inode: is.Inode} != l.inode
}

// truncated returns how many bytes another program has cut off since the last look. It notes
// what the file is like, for the next one.
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
	cut := l.at - is.Size
	l.like, l.at = is, is.Size
	return cut
}

func (l *logFile) setKeep(keep bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keep = keep
}

// Close ends the file's use, unless its Writer is exchanged and it may go on.
func (l *logFile) Close() error {
	if l.keep {
		return nil
	}
	return l.discard()
}

// discard closes the file.
func (l *logFile) discard() error {
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
