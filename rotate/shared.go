package rotate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// This file is about a log that several processes have open: Options.Shared.
//
// A process locks the log's file (flock) for each write and for a rotation, and looks under the lock
// whether the log's path still leads to that file. If not, another process has rotated it, and this
// one follows: it opens the path anew. So a file gets no byte after its rotation, and any process
// may compress or remove it. The kernel ends the lock of a process that dies. The next process finds
// the line that it has torn, and ends it.
//
// A rotation lasts from the rename until the new file exists, or the old one has its name back. Who finds no
// file at the path waits for that: see openMissing.
//
// No deadlock: a process that holds the lock of a file waits for no other file's.

// errFollow is the error of a write to a file that another process has rotated.
var errFollow = errors.New("another process has rotated the log")

// lock waits until this process has the file for itself.
func (l *logFile) lock() error {
	err := sys.Uninterrupted(func() error { return l.disk.LockWait(l.fd) })
	if err != nil {
		return fmt.Errorf("a lock of the file, for the option Shared: %w", err)
	}
	return nil
}

// unlock ends the lock. It fails for no open file.
func (l *logFile) unlock() { _ = l.disk.Unlock(l.fd) }

// enterLocked begins a write: in a shared log it locks the file, or returns errFollow. It counts
// the bytes that others have written, and ends a line that they have torn.
func (l *logFile) enterLocked() error {
	switch {
	case l.fd < 0:
		return errNotOpen
	case !l.options.Shared:
		return nil
	}
	if err := l.lock(); err != nil {
		return err
	}
	is, err := l.disk.StatFD(l.fd)
	if err == nil && l.isMoved() {
		err = errFollow
	}
	if err != nil {
		l.unlock()
		return err
	}
	l.grown += is.Size - l.at
	l.at = is.Size
	l.rest, l.header = l.rest[l.header:], 0
	switch {
	case is.Size == 0:
		l.rest, l.header = slices.Concat(l.options.Header, l.rest), len(l.options.Header)
	case is.Size != l.own && !l.options.Records && l.isTorn():
		l.rest, l.header = slices.Concat([]byte{'\n'}, l.rest), 1 // as a header: a write that fails does not keep it
		l.count(func(s *Stats) { s.Healed++ })
	}
	return nil
}

// leaveLocked ends a write that has begun.
func (l *logFile) leaveLocked() {
	if !l.options.Shared {
		return
	}
	l.own = l.at
	l.unlock()
	if full := int64(l.options.MaxSize); full > 0 && l.at >= full {
		l.turn.Store(-1)
	}
}

// follow opens the log's path for the same Writer. As at a rotation, the bytes in the old file are
// durable before the new one gets any, if the policy syncs, and as in reopenLocked its new name is,
// or the log does not leave it. The caller holds syncing.
func (l *logFile) follow() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	syncs := l.options.Policy.Sync.Mode != holdfast.SyncNever
	if syncs && l.spoilt == nil {
		if l.spoilt = l.disk.Datasync(l.fd); l.spoilt != nil && l.dirUnsynced { // without a journal the name may be lost too
			l.names.Fail(l.key)
		}
	}
	if (syncs || !l.dirUnsynced) && !l.isRemoved() {
		if err := l.syncDir(l.since); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	like, err := accessOf(l.disk, l.fd)
	if err != nil {
		return err
	}
	to, err := openFile(l.disk, l.names, l.path, 0, &like, l.options, l.missing)
	if err != nil {
		return err
	}
	l.disk.Close(l.fd) // it was synced as the policy says
	l.disk.Close(l.dir)
	l.place, l.fd, l.like, l.since, l.dirUnsynced, l.had = to.place, to.fd, to.like, to.since, true, to.had
	l.inode.Store(to.inode.Load())
	l.grown += to.at - l.at
	l.at, l.own = to.at, -1
	l.followed = moment{time.Now(), clock().Round(0)}
	l.count(func(s *Stats) { s.Reopens++ })
	return nil
}

// A moment is a time by the running clock and by the wall clock, which may be set.
type moment struct{ running, wall time.Time }

// followedAt returns when the log has followed another process last. A rotation that was due then is
// done.
func (l *logFile) followedAt() moment {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.followed
}

// openMissing opens the log's file, or calls create while there is none and no process can make or rename one. A process whose rotation made
// the last backup holds its lock until the rotation is over, one way or the other, or the process has ended. So openMissing locks that
// backup, and where there is no plain one the directory: a compressed backup is durable.
func (f *File) openMissing(p place, open func(create int) error, create func() error) error {
	for {
		last, unlock, err := f.lockLast(p)
		if err != nil {
			return err
		}
		if err = open(0); errors.Is(err, fs.ErrNotExist) {
			var now uint64
			if _, now, err = f.lastPlain(p); err == nil && now != last { // another process has rotated meanwhile
				unlock()
				continue
			}
			if err == nil {
				err = create()
			}
		}
		unlock()
		return err
	}
}

// lastPlain returns the last backup's name and inode, or none if it is no plain file.
func (f *File) lastPlain(p place) (name sys.Name, inode uint64, err error) {
	all, err := f.list(p)
	if err != nil || len(all) == 0 {
		return "", 0, err
	}
	return all[0].plain, all[0].inode, nil
}

// lockLast locks the last backup, or the directory if it is no plain file, until unlock is called.
func (f *File) lockLast(p place) (last uint64, unlock func(), err error) {
	for {
		name, last, err := f.lastPlain(p)
		if err != nil {
			return 0, nil, err
		}
		l := &logFile{place: p, fd: p.dir}
		if name != "" {
			l.fd, err = f.disk.OpenFile(p.dir, name, openFlags, 0)
			if errors.Is(err, fs.ErrPermission) { // somebody took the write permission from a finished backup
				l.fd, err = f.disk.OpenFile(p.dir, name, os.O_RDONLY|sys.NoFollow, 0)
			}
			if errors.Is(err, fs.ErrNotExist) {
				continue // it has its name back, or was compressed
			}
			if err != nil {
				return 0, nil, err
			}
		}
		shut := func() {
			if l.fd != p.dir {
				f.disk.Close(l.fd) // nothing was written to it
			}
		}
		if err := l.lock(); err != nil {
			shut()
			return 0, nil, err
		}
		return last, func() {
			l.unlock() // also if the close fails
			shut()
		}, nil
	}
}

// awaitRotation waits until no rotation has an open backup in work. Then the backup keeps its name.
func (f *File) awaitRotation(p place, fd int) error {
	l := &logFile{place: p, fd: fd}
	if err := l.lock(); err != nil {
		return err
	}
	l.unlock()
	return nil
}

// renameBack gives the log's file its name back. Another process of a shared log may make a new file
// at any time, which stays.
func (f *File) renameBack(l *logFile, name sys.Name) error {
	type renamer interface {
		RenameNew(dir int, from, to sys.Name) error
	}
	if d, ok := f.disk.(renamer); ok && f.options.Shared {
		return d.RenameNew(l.dir, name, l.base)
	}
	return f.disk.Rename(l.dir, name, l.base)
}

// removePart removes a partial compression. In a shared log it returns errTaken if a process that
// lives works on it. A name that is not there may get a file at any time, so only one that it has
// locked is removed.
func (f *File) removePart(p place, part sys.Name) error {
	if f.options.Shared {
		fd, err := f.disk.OpenSource(p.dir, part)
		if errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err != nil {
			return errTaken
		}
		defer f.disk.Close(fd) // nothing was written to it
		is, err := f.disk.StatFD(fd)
		if err != nil || f.claim(p, part, fd, is.Inode) != nil {
			return errTaken
		}
	}
	return f.disk.Remove(p.dir, part)
}

// claimBackup locks the open, new file of a compression, and looks whether the backup is still there, when its rotation is
// over.
func (f *File) claimBackup(p place, b *backup, part sys.Name, fd, from int) error {
	is, err := f.disk.StatFD(fd)
	if err != nil {
		return err
	}
	if err := f.claim(p, part, fd, is.Inode); err != nil {
		return err
	}
	if err := f.awaitRotation(p, from); err != nil {
		return err
	}
	if is, err := f.disk.Stat(p.dir, b.plain); err != nil || is.Inode != b.inode {
		f.disk.Remove(p.dir, part) // if it fails, the next one to compress removes it
		return errTaken
	}
	return nil
}

// errTaken says that another process has the backup in work.
var errTaken = errors.New("another process works on the backup")

// claim locks an open file of a compression, and returns errTaken if another process has it, or has
// given its name to another file.
func (f *File) claim(p place, name sys.Name, fd int, inode uint64) error {
	if err := sys.Uninterrupted(func() error { return f.disk.Lock(fd) }); err != nil {
		return errTaken
	}
	if is, err := f.disk.Stat(p.dir, name); err != nil || is.Inode != inode {
		return errTaken
	}
	return nil
}
