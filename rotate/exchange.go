package rotate

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/stats"
)

// startLocked opens a Writer on a file. past are the counts of the Writer before it.
func (f *File) startLocked(l *logFile, past stats.Counts) {
	l.missing, l.count, l.slow, l.written = f.keepBackup, f.count, &f.slow, 0
	w, err := holdfast.New(l, f.options.Policy)
	if err != nil {
		panic(err) // Open validates the policy
	}
	f.count(func(s *Stats) {
		past.NotFlushed, past.NotDurable = 0, 0 // the logFile keeps the bytes that could not be written
		s.merge(past)
		c := &current{Writer: w, file: l, base: l.at + int64(len(l.rest)-l.header)}
		w.OnError(func(err error) { f.onWriterError(c, err) })
		f.current.Store(c)
		if l.healed {
			s.Healed++
		}
	})
	l.healed = false
}

// exchangeLocked closes the Writer and opens one on the next file. If next fails, or the disk does
// not take the Writer's bytes, the log continues in the same file and exchangeLocked returns the
// cause. Calls meanwhile wait for the lock.
func (f *File) exchangeLocked(next func(*logFile) (*logFile, error)) error {
	c := f.current.Load()
	l := c.file
	whole := func() bool { return f.options.Records || f.isCutLocked(c) || !l.isInLine() }
	if !c.final && l.isOpen() {
		err := c.Flush()
		if err != nil && !isFinal(err) {
			first := err
			if err = c.Flush(); err != nil { // the first may be an old failure of the background
				f.know(writeError(first)) // an error that a call returned is reported
			}
		}
		if err != nil && !isFinal(err) {
			return err
		}
		if err == nil && !whole() {
			return errInLine
		}
		// Bytes synced here, while others still write, need no sync in Close, for which Writes
		// wait.
		if m := f.options.Policy.Sync.Mode; err == nil && (m == holdfast.SyncClose || m == holdfast.SyncPeriodic) {
			_ = c.Sync() // Close returns a failure too
		}
	}
	l.setKeep(true)
	if err := c.Close(); isFinal(err) {
		f.endedLocked(c, err)
	}
	l.setKeep(false)

	to, err := l, f.settleLocked(c)
	if err == nil && !c.final && l.fd >= 0 && !whole() { // a Write came behind the Flush
		err = errInLine
	}
	if err == nil {
		to, err = next(l)
	}
	if err != nil {
		if l.fd < 0 {
			err = errors.Join(err, l.open(0, &l.like, os.O_CREATE))
		}
		to = l
	} else if to != l {
		if l.fd < 0 { // the file could not be opened
			to.rest = append(to.rest, l.rest...) // after the line feed that ends a torn line
			to.refused.Store(len(l.rest) > 0)
			l.rest = nil
		}
		if err := l.discard(); err != nil {
			f.note(&Error{Op: "sync", Path: f.path, Err: err})
		}
	}
	f.startLocked(to, c.Stats())
	return err
}

// A line that has not ended when the log is to be exchanged is waited for, up to these bounds.
const (
	longestLine = 1 << 20
	lineWait    = time.Minute
)

// errInLine is the error of an exchange in the middle of a line.
var errInLine = errors.New("a line has not ended yet")

// isCutLocked reports whether the line that an exchange waits for has passed a bound.
func (f *File) isCutLocked(c *current) bool {
	size, full := c.base+c.Written(), int64(f.options.MaxSize)
	return full > 0 && size-full >= longestLine ||
		!f.cutAt.IsZero() && (!time.Now().Before(f.cutAt) || size >= f.cutSize)
}

// awaitLineLocked sets the bounds of the wait for a line's end, and returns the offset of the
// Writer from which on a Write that ends in a line feed is to exchange the file.
func (f *File) awaitLineLocked(c *current, now time.Time) (turn int64) {
	if f.cutAt.IsZero() {
		f.cutAt, f.cutSize = now.Add(lineWait), c.base+c.Written()+longestLine
	}
	return f.cutSize - longestLine - c.base
}

// reopenLocked opens the log's path again. As in renameLocked, the name that another program has
// given to the old file is made durable first. If that fails, no later sync repairs it: on the disk
// the path may still be the old file's, and a new file there would replace its only name. So the
// log stays in the old file.
func (f *File) reopenLocked(old *logFile) (*logFile, error) {
	if !old.isRemoved() && (f.options.Policy.Sync.Mode != holdfast.SyncNever || !old.dirUnsynced || old.had) {
		if err := old.syncDir(old.since); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	l, err := openFile(f.disk, f.names, f.path, 0, &old.like, &f.options, f.keepBackup)
	if err == nil {
		f.count(func(s *Stats) { s.Reopens++ })
		f.tendLocked()
	}
	return l, err
}

// renameLocked makes the log's file a backup and opens a new one. The backup's name is durable
// before a new file has the old name: otherwise a power cut could leave only the new file. A shared
// log stays in its file if another process has rotated meanwhile.
func (f *File) renameLocked(old *logFile) (*logFile, error) {
	if f.options.Shared && old.fd >= 0 {
		if err := old.lock(); err != nil {
			return nil, err
		}
		defer old.unlock()
		switch {
		case old.isMoved():
			old.unlock() // it may be the last backup: see openMissing
			return f.reopenLocked(old)
		case !old.followedAt().running.Before(f.attended):
			return old, nil
		}
	}
	name, at, err := f.backupName(old)
	if err != nil {
		return nil, err
	}
	// Bytes that a killed process has left may be in the page cache only, and newer records must not outlive them.
	if f.options.Policy.Sync.Mode != holdfast.SyncNever && old.had && old.fd >= 0 && !old.isSpoilt() {
		if err := old.Sync(); err != nil && old.isSpoilt() {
			f.unsyncedLocked(f.current.Load(), err) // what it took is missing in front of newer records
			return nil, err
		}
	}
	since := f.names.Losses(old.key)
	if f.closesFirst && old.fd >= 0 {
		f.disk.Close(old.fd) // it was synced as the policy says
		old.fd = -1
	}
	if err := f.disk.Rename(old.dir, old.base, name); err != nil {
		if errors.Is(err, fs.ErrNotExist) && old.isMoved() { // another program moved it just now
			old.unlock()
			return f.reopenLocked(old)
		}
		return nil, err
	}
	f.last = at // also if it is taken back: nobody is to wonder which of two files had the name
	var l *logFile
	if f.options.Policy.Sync.Mode != holdfast.SyncNever || !old.dirUnsynced || old.had {
		err = old.syncDir(since)
	}
	if err == nil {
		l, err = openFile(f.disk, f.names, f.path, 0, &old.like, &f.options, nil)
	}
	if err != nil {
		// If this fails too, the path has no file: then the next try makes one.
		if _, missing := f.disk.Stat(old.dir, old.base); errors.Is(missing, fs.ErrNotExist) {
			err = errors.Join(err, f.renameBack(old, name))
		}
		return nil, err
	}
	f.count(func(s *Stats) { s.Rotations++ })
	if call := f.options.Rotated; call != nil {
		path, backup := old.of(old.base), old.of(name)
		f.after(func() error { return call(path, backup) })
	}
	f.tendLocked()
	return l, nil
}

const (
	// stamp is the time in a backup's name. It is lumberjack's format, so that its backups
	// count too. The order of the names is the order of the rotations.
	stamp  = "2006-01-02T15-04-05.000"
	packed = ".gz"
	// longestPacked is the greatest length of a Compressor's suffix.
	longestPacked = len(".zst")
	// partly is the suffix of a file in compression.
	partly = ".part"

	// lastYear is the last year of names that count as backups: a later time overflows 64-bit
	// nanoseconds. A name after it is another program's, and the next names could grow longer than
	// stamp. The last name of the year does not count either, because its successor would not.
	lastYear = 2262

	longestName   = 255 // bytes, on most file systems
	longestSuffix = len("-") + len(stamp) + longestPacked + len(partly)
)

// parts returns the text before and after the time in the names of a log's backups.
func parts(base sys.Name) (before, behind string) {
	name := base.String()
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 {
		dot = len(name)
	}
	return name[:dot] + "-", name[dot:]
}

// backupName returns an unused backup name, later than all existing ones.
func (f *File) backupName(l *logFile) (name sys.Name, at time.Time, err error) {
	lists := 0
	switch {
	case f.options.Shared: // the clock of another process may have been ahead
		lists = 2 // the first lacks a backup whose compressed file took its place meanwhile
	case f.last.IsZero():
		lists = 1
	}
	for range lists {
		all, err := f.list(l.place)
		if err != nil {
			return "", at, err
		}
		f.passLocked(all)
	}
	before, behind := parts(l.base)
	for at = f.options.wall(clock()).Truncate(f.step); ; at = at.Add(f.step) {
		if !at.After(f.last) {
			at = f.last.Add(f.step)
		}
		free := before + at.Format(f.layout) + behind
		taken := false
		for _, name := range []string{free, free + packed, free + f.packed()} {
			switch _, err := f.disk.Stat(l.dir, sys.Name(name+"\x00")); {
			case err == nil:
				taken = true
			case !errors.Is(err, fs.ErrNotExist):
				return "", at, err
			}
		}
		if !taken {
			return sys.Name(free + "\x00"), at, nil
		}
	}
}

// onWriterError is the OnError of a Writer. It also gets background failures that no later Write
// would return.
func (f *File) onWriterError(c *current, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !isFinal(err) {
		f.failingLocked(c, err)
		f.reported = f.reported[max(0, slices.Index(f.reported, writeError(err))):] // it hears them in order, and later than a call may
		return
	}
	f.endedLocked(c, err)
	if f.current.Load() == c && !f.closed {
		f.attendLocked()
	}
}
