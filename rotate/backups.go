package rotate

import (
	"cmp"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/permission"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A backup is the files of one rotation: as it was, compressed, or both when a compression was
// interrupted.
type backup struct {
	at    time.Time
	plain sys.Name // as it was, or ""
	is    sys.Stat // of plain
	files []sys.Name
	bytes int64 // of all files
}

// tendLocked has the background look after the backups.
func (f *File) tendLocked() {
	f.again = true
	o := f.options
	if f.tending || f.closed || !o.Compress && o.MaxBackups == 0 && o.MaxAge == 0 && o.MaxTotal == 0 {
		return
	}
	f.tending = true
	f.background.Go(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for f.again && !f.closed {
			f.again = false
			f.mu.Unlock()
			f.tend()
			f.mu.Lock()
		}
		f.tending = false
	})
}

// errStopped ends a compression because the log is closed.
var errStopped = errors.New("the log is closed")

// tend removes the backups that are too many or too old, and compresses the others.
func (f *File) tend() {
	p, err := findPlace(f.disk, f.names, f.path)
	var all []*backup
	if err == nil {
		defer f.disk.Close(p.dir) // nothing was written to it
		all, err = f.backups(p)
	}
	if err != nil {
		f.tendLater(&Error{Op: "remove", Path: f.path, Err: err})
		return
	}
	f.over("compress", "remove")
	now, kept, total := time.Now(), 0, int64(0)
	for _, b := range all {
		kept++
		total += b.bytes
		o := f.options
		if (o.MaxBackups == 0 || kept <= o.MaxBackups) && (o.MaxTotal == 0 || total <= int64(o.MaxTotal)) &&
			(o.MaxAge == 0 || now.Sub(b.at) <= o.MaxAge) {
			continue
		}
		for _, name := range b.files {
			if err := f.disk.Remove(p.dir, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				f.tendLater(&Error{Op: "remove", Path: name.String(), Err: err})
			}
		}
		b.plain = ""
		f.count(func(s *Stats) { s.Removed++ })
	}
	for _, b := range slices.Backward(all) {
		if b.plain == "" || !f.options.Compress && len(b.files) == 1 {
			continue
		}
		err := f.compress(p, b)
		f.count(func(s *Stats) {
			s.Compressing = ""
			if err == nil {
				s.Compressed++
			}
		})
		switch {
		case err == errStopped:
			return
		case err != nil:
			f.tendLater(&Error{Op: "compress", Path: b.plain.String(), Err: err})
		default:
			f.mu.Lock()
			f.again = f.again || f.options.MaxTotal > 0 // it is smaller now
			f.mu.Unlock()
		}
	}
}

// tendLater reports a failure, and has the timer try again.
func (f *File) tendLater(e *Error) {
	f.note(e)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.tendAt = time.Now().Add(longestPause)
		f.armLocked(time.Now())
	}
}

// backups returns the log's backups, the newest first. What it finds half compressed without
// the backup itself it removes.
func (f *File) backups(p place) ([]*backup, error) {
	fd, err := f.disk.OpenDirIn(p.dir, sys.Name(".\x00"))
	if err != nil {
		return nil, err
	}
	defer f.disk.Close(fd) // nothing was written to it
	before, behind := parts(p.base)
	found := map[string]*backup{}
	buf := make([]byte, 16<<10)
	for {
		names, err := f.disk.ReadNames(fd, buf, nil)
		if err != nil {
			return nil, err
		}
		if len(names) == 0 {
			break
		}
		for _, e := range names {
			text, ok := strings.CutPrefix(e.Name.String(), before)
			if !ok || len(text) < len(stamp) {
				continue
			}
			kind, ok := strings.CutPrefix(text[len(stamp):], behind)
			at, bad := time.Parse(stamp, text[:len(stamp)])
			if !ok || bad != nil || kind != "" && kind != packed && kind != packed+partly {
				continue
			}
			is, err := f.disk.Stat(p.dir, e.Name)
			if err != nil || is.Mode&vfs.KindMask != vfs.KindRegular {
				continue // it is gone, or not ours
			}
			b := found[text[:len(stamp)]]
			if b == nil {
				b = &backup{at: at}
				found[text[:len(stamp)]] = b
			}
			b.files = append(b.files, e.Name)
			b.bytes += is.Size
			if kind == "" {
				b.plain, b.is = e.Name, is
			}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	current := f.current.Load().file.inode // by now: what it was before is closed
	var all []*backup
	for _, b := range found {
		if b.is.Inode != 0 && b.is.Inode == current.Inode {
			continue // it has a backup's name since a rotation failed, or by another program
		}
		if name := b.files[0]; b.plain == "" && len(b.files) == 1 && strings.HasSuffix(name.String(), partly) {
			f.disk.Remove(p.dir, name) // the next look tries again
			continue
		}
		all = append(all, b)
	}
	slices.SortFunc(all, func(a, b *backup) int { return b.at.Compare(a.at) })
	if len(all) > 0 && all[0].at.After(f.last) {
		f.last = all[0].at // a clock that was set back must not give a new backup an older name
	}
	return all, nil
}

// compress replaces a backup by a compressed one, whatever an interrupted compression has left.
// The backup goes when the other's bytes and then its name are durable, under every policy:
// it may have been on the disk for long.
func (f *File) compress(p place, b *backup) (err error) {
	name := strings.TrimSuffix(string(b.plain), "\x00") + packed
	whole, part := sys.Name(name+"\x00"), sys.Name(name+partly+"\x00")
	f.count(func(s *Stats) {
		s.Compressing, s.CompressedBytes, s.CompressingSize = b.plain.String(), 0, b.is.Size
	})
	from, err := f.disk.OpenSource(p.dir, b.plain)
	if err != nil {
		return err
	}
	defer f.disk.Close(from)
	to := &logFile{place: p, fd: -1}
	to.base = part
	if err := f.disk.Remove(p.dir, part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	to.fd, err = f.disk.OpenFile(p.dir, part, os.O_WRONLY|os.O_CREATE|os.O_EXCL|sys.NoFollow, permission.Private)
	if err != nil {
		return err
	}
	err = to.imitate(b.is)
	if err == nil {
		err = f.pack(to, from)
	}
	if err == nil {
		err = f.disk.Sync(to.fd)
	}
	err = cmp.Or(err, f.disk.Close(to.fd))
	since := f.names.Losses(p.key)
	if err == nil {
		err = f.disk.Rename(p.dir, part, whole)
	}
	if err != nil {
		f.disk.Remove(p.dir, part) // what failed first is reported
		return err
	}
	if err := p.syncDir(since); err != nil {
		return err
	}
	return f.disk.Remove(p.dir, b.plain)
}

// packChunk is how much is compressed between two looks whether the log is closed.
const packChunk = 64 << 10

// pack compresses the bytes of a file. It rests after each chunk for as long as that took, the
// longer the busier the machine is: so it takes half of one CPU at most.
//
// Note: a thread of a low priority (nice) is worse. When it does not get to run, each stop of the
// world and each goroutine that needs a lock which it holds wait for it.
func (f *File) pack(to *logFile, from int) error {
	z := gzip.NewWriter(io.Writer(to))
	buf := make([]byte, packChunk)
	for at := int64(0); ; {
		select {
		case <-f.stop:
			return errStopped
		default:
		}
		start := time.Now()
		n, err := f.disk.ReadAt(from, buf, at)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		at += int64(n)
		if _, err := z.Write(buf[:n]); err != nil {
			return err
		}
		f.count(func(s *Stats) { s.CompressedBytes = at })
		time.Sleep(time.Since(start))
	}
	return z.Close()
}
