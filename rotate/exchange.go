package rotate

import (
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/stats"
)

// startLocked opens a Writer on a file, after one with these counts.
func (f *File) startLocked(l *logFile, past stats.Counts) {
	w, err := holdfast.New(l, f.options.Policy)
	if err != nil {
		panic(err) // Open has refused such a policy
	}
	f.count(func(s *Stats) {
		past.NotFlushed, past.NotDurable = 0, 0 // the log has taken over what could not be written
		s.merge(past)
		c := &current{Writer: w, file: l, base: l.at + int64(len(l.rest))}
		w.OnError(func(err error) { f.heard(c, err) })
		f.current.Store(c)
		if l.healed {
			s.Healed++
		}
	})
	l.healed = false
}

// exchangeLocked closes the Writer and opens one on the next file. If there is none, or the
// disk does not take what the Writer holds, it goes on with the same file and returns why. Calls
// that come meanwhile wait for the lock.
func (f *File) exchangeLocked(next func(*logFile) (*logFile, error)) error {
	c := f.current.Load()
	l := c.file
	if !c.final && l.fd >= 0 {
		err := c.Flush()
		if err != nil && !isFinal(err) {
			first := err
			if err = c.Flush(); err != nil { // the first may be of the background, and over
				errors.As(first, &f.told) // what is returned is noted
			}
		}
		if err != nil && !isFinal(err) {
			return err
		}
		// What is synced while others still write, they need not wait for.
		if m := f.options.Policy.Sync.Mode; err == nil && (m == holdfast.SyncClose || m == holdfast.SyncPeriodic) {
			_ = c.Sync() // Close returns a failure again
		}
	}
	l.setKeep(true)
	if err := c.Close(); isFinal(err) {
		f.endedLocked(c, err)
	}
	l.setKeep(false)

	to, err := l, f.settleLocked(c)
	if err == nil {
		to, err = next(l)
	}
	if err != nil {
		if l.fd < 0 {
			err = errors.Join(err, l.open(0, &l.like))
		}
		to = l
	} else if to != l {
		if l.fd < 0 { // it could not be written to
			to.rest = append(to.rest, l.rest...) // behind the line feed that ends a torn line
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

// reopenLocked opens the log's path anew. The name that another program has given to the old
// file is made durable first, as in renameLocked. If that fails no later sync makes up for it: on the disk the path may be the
// old file's still, and a new file there would take its only name. So the log stays in the old file.
func (f *File) reopenLocked(old *logFile) (*logFile, error) {
	if f.options.Policy.Sync.Mode != holdfast.SyncNever || !old.nameless {
		if err := old.syncDir(old.since); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	l, err := openFile(f.disk, f.names, f.path, 0, &old.like)
	if err == nil {
		f.count(func(s *Stats) { s.Reopens++ })
		f.tendLocked()
	}
	return l, err
}

// renameLocked makes the log's file a backup and opens a new one. The backup's name is durable
// before there is a file with the old name: else a power cut could leave the new file alone.
func (f *File) renameLocked(old *logFile) (*logFile, error) {
	name, at, err := f.backupName(old)
	if err != nil {
		return nil, err
	}
	since := f.names.Losses(old.key)
	if f.closesFirst && old.fd >= 0 {
		f.disk.Close(old.fd) // it was synced as the policy says
		old.fd = -1
	}
	if err := f.disk.Rename(old.dir, old.base, name); err != nil {
		if errors.Is(err, fs.ErrNotExist) && old.isMoved() { // just now
			return f.reopenLocked(old)
		}
		return nil, err
	}
	var l *logFile
	if f.options.Policy.Sync.Mode != holdfast.SyncNever || !old.nameless {
		err = old.syncDir(since)
	}
	if err == nil {
		l, err = openFile(f.disk, f.names, f.path, 0, &old.like)
	}
	if err != nil {
		// If this fails too, the path leads to no file: then the next try opens one.
		if _, missing := f.disk.Stat(old.dir, old.base); errors.Is(missing, fs.ErrNotExist) {
			err = errors.Join(err, f.disk.Rename(old.dir, name, old.base))
		}
		return nil, err
	}
	f.last = at
	f.count(func(s *Stats) { s.Rotations++ })
	f.tendLocked()
	return l, nil
}

const (
	// stamp is the time in a backup's name, in UTC: that of lumberjack, so that its backups
	// count too. The names sort as they came.
	stamp  = "2006-01-02T15-04-05.000"
	packed = ".gz"
	// longestPacked is how long the suffix of another Compressor may be.
	longestPacked = len(".zst")
	// partly is behind the name of a file that is being compressed.
	partly = ".part"

	// lastYear is of names that count. Nanoseconds since 1970 end in it, so no clock is later. A later
	// name is another program's, and the names behind it could grow longer than stamp. So is the last one
	// of the year: the next would not count.
	lastYear = 2262

	longestName   = 255 // bytes, of most file systems
	longestSuffix = len("-") + len(stamp) + longestPacked + len(partly)
)

// parts returns what is before and behind the time in the names of a log's backups.
func parts(base sys.Name) (before, behind string) {
	name := base.String()
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 {
		dot = len(name)
	}
	return name[:dot] + "-", name[dot:]
}

// backupName returns a name that no backup has, later than all existing ones.
func (f *File) backupName(l *logFile) (name sys.Name, at time.Time, err error) {
	if f.last.IsZero() { // an earlier process may have had a clock that was ahead
		all, err := f.list(l.place)
		if err != nil {
			return "", at, err
		}
		f.passLocked(all)
	}
	before, behind := parts(l.base)
	for at = clock().UTC().Truncate(time.Millisecond); ; at = at.Add(time.Millisecond) {
		if !at.After(f.last) {
			at = f.last.Add(time.Millisecond)
		}
		free := before + at.Format(stamp) + behind
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

// heard is the OnError of a Writer: it hears what fails in the background also if no record
// comes any more.
func (f *File) heard(c *current, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !isFinal(err) {
		f.failingLocked(c, err)
		return
	}
	f.endedLocked(c, err)
	if f.current.Load() == c && !f.closed {
		f.attendLocked()
	}
}
