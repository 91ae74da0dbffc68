package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// The names of a log's files. A segment's is its epoch, in 16 hexadecimal digits.
const (
	segmentSuffix = ".wal"
	spareFile     = "spare"     // whole and synced: the next segment
	spareMaking   = "spare.tmp" // not yet
)

func segmentName(epoch uint64) string { return fmt.Sprintf("%016x%s", epoch, segmentSuffix) }

// plainName is the Name of a file of ours.
func plainName(name string) sys.Name { return sys.Name(name + "\x00") }

// A header is the beginning of a segment.
type header struct {
	id    [16]byte // of the log
	size  uint32   // of the segment, the header included
	epoch uint64   // is larger than that of each segment before
	first uint64   // the index of its first record
	low   uint64   // the log's first index when the segment began
	// begun is when the segment began, and so when the last record of the one before was at the
	// latest appended. The zero time is not known.
	begun time.Time
}

func (h *header) encode() []byte {
	b := make([]byte, headerUsed)
	copy(b, magic)
	binary.LittleEndian.PutUint32(b[8:], version)
	binary.LittleEndian.PutUint32(b[12:], h.size)
	copy(b[16:], h.id[:])
	binary.LittleEndian.PutUint64(b[32:], h.epoch)
	binary.LittleEndian.PutUint64(b[40:], h.first)
	binary.LittleEndian.PutUint64(b[48:], h.low)
	if sec := h.begun.Unix() + 1; sec > 0 && sec <= math.MaxUint32 { // rounded up: no record is taken for older than it is
		binary.LittleEndian.PutUint32(b[56:], uint32(sec))
	}
	binary.LittleEndian.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli()))
	return b
}

// A segment is a file of the log with its records from first to next, without next. They
// end where the first of the segment behind it begins, whatever the file holds.
type segment struct {
	header
	name string

	// The Log's mu guards these.
	next  uint64
	end   int64      // of its last frame
	table []position // where some frames begin, in order
	pins  int        // readers that may have it open
	gone  bool       // it has left the log

	// The leader's.
	fd       int           // of the current segment; else -1
	synced   int64         // up to here it is durable
	marked   bool          // its last frame is the mark of Close: it moves no index
	partial  bool          // a write behind synced failed, and may have left a part
	prepared bool          // the next one was asked for
	took     time.Duration // of its syncs in all
}

type position struct {
	index uint64
	at    int64
}

// note appends a frame to what is to be entered into the table, if it is far enough from the
// last one there.
func (s *segment) note(to []position, p position) []position {
	last := int64(0)
	if n := len(to); n > 0 {
		last = to[n-1].at
	} else if n := len(s.table); n > 0 {
		last = s.table[n-1].at
	}
	if p.at-last < int64(s.size)/tableEntries {
		return to
	}
	return append(to, p)
}

// tableEntries is how many frames of a segment a table has at most.
const tableEntries = 64

// groundChunk is how much of a new file is written at once. Larger writes make larger folios in
// the page cache, and then each append costs 3 to 6 % more (Linux 6.18, ext4: 1 MiB beside 64 KiB).
const groundChunk = 64 << 10

// Zeros are written in steps, each synced: the syncs of appends wait behind all of them otherwise. A step
// waits until the current segment has filled as far, but no longer than a pause.
const (
	groundStep  = 1 << 20
	groundPause = 20 * time.Millisecond
)

// prepare makes the spare file: of its full size, synced, and full of zeros. So writing to it
// changes no metadata, which makes its syncs cheap, and it can't find the disk full. With room
// alone it gets the room without the zeros, where the system can: see roomAloneLocked.
func (l *Log) prepare(roomAlone bool) (err error) {
	defer func() {
		if err != nil {
			_ = l.disk.Remove(l.dir.fd, plainName(spareMaking)) // the next one begins anew
		}
	}()
	const flags = os.O_RDWR | os.O_CREATE | os.O_EXCL
	fd, is, err := l.dir.open(spareMaking, flags, l.opts.Perm)
	if errors.Is(err, os.ErrExist) { // its removal failed
		if err = l.disk.Remove(l.dir.fd, plainName(spareMaking)); err == nil {
			fd, is, err = l.dir.open(spareMaking, flags, l.opts.Perm)
		}
	}
	if err != nil {
		return err
	}
	l.given = is.Mode & vfs.PermMask
	defer func() {
		if fd >= 0 {
			l.disk.Close(fd)
		}
	}()
	size, at := int64(l.opts.SegmentSize), int64(0)
	// Zeros find out whatever error this has.
	if d, ok := l.disk.(vfs.Allocator); roomAlone && ok && d.Allocate(fd, 0, size, true) == nil {
		at = size
	}
	if at == 0 {
		err = l.writeZeros(fd, size)
	} else {
		err = l.syncFile(fd)
	}
	if err != nil {
		return err
	}
	closing := fd
	fd = -1
	if err := l.disk.Close(closing); err != nil { // Windows renames no open file
		return err
	}
	return l.disk.Rename(l.dir.fd, plainName(spareMaking), plainName(spareFile))
}

// writeZeros fills a new file, makes that durable, and notes how long it took without the pauses.
func (l *Log) writeZeros(fd int, size int64) error {
	zeros := make([]byte, min(size, groundChunk))
	took := time.Duration(0)
	for at := int64(0); at < size; {
		l.awaitFilled(at, size)
		start := time.Now()
		for end := min(at+groundStep, size); at < end; at += int64(len(zeros)) {
			if err := l.writeAt(fd, zeros[:min(int64(len(zeros)), size-at)], at); err != nil {
				return err
			}
			select {
			case <-l.closing:
				l.mu.Lock()
				sealed := l.sealed // nothing waits for a spare file any more
				l.mu.Unlock()
				if sealed {
					return ErrClosed
				}
			default:
			}
		}
		if err := l.syncFile(fd); err != nil {
			return err
		}
		took += time.Since(start)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.zeros == 0 || took < l.zeros {
		l.zeros = took
	}
	return nil
}

// awaitFilled waits for a pause, or until the current segment is so full that the zeros from at on are
// due. They begin at its half, and are there when it is full to seven eighths. It does not wait while
// a call needs the spare file.
func (l *Log) awaitFilled(at, size int64) {
	l.nextZeros.Store(size/2 + at*3/8)
	pause := time.NewTimer(groundPause)
	defer pause.Stop()
	for l.wanted.Load() == 0 && l.filled.Load() < l.nextZeros.Load() {
		select {
		case <-l.closing:
			return
		case <-pause.C:
			return
		case <-l.hurry:
		}
	}
}

// hurryZeros wakes what waits in awaitFilled, so that it looks again.
func (l *Log) hurryZeros() {
	select {
	case l.hurry <- struct{}{}:
	default: // it is told already
	}
}

// roomAloneLocked reports whether the next segment gets its room without zeros. A sync in such room
// changes metadata: it takes 1.5 to 3 times as long where it has few bytes. With many bytes a sync,
// to write them twice takes longer than that. So both are compared: the syncs of this segment, and
// the fastest that as many zeros were written. On ext4 and xfs, with a journal and without, room
// alone was faster where the syncs took less than 1.1 to 1.7 times as long.
func (l *Log) roomAloneLocked(s *segment) bool {
	zeros := float64(l.zeros) * float64(s.end-headerSize) / float64(s.size)
	return float64(s.took) <= 1.5*zeros
}

// openSpare opens the spare file, and makes it where there is none of the right size. One that
// was a segment may permit more than new files are to.
func (l *Log) openSpare() (fd int, err error) {
	for made := false; ; made = true {
		fd, is, err := l.dir.open(spareFile, os.O_RDWR, 0)
		if err == nil {
			if is.Size == int64(l.opts.SegmentSize) && is.Mode&vfs.PermMask&^(uint32(l.opts.Perm)|l.given) == 0 {
				return fd, nil
			}
			l.disk.Close(fd)
			if err := l.disk.Remove(l.dir.fd, plainName(spareFile)); err != nil {
				return -1, l.problem("prepare", spareFile, false, err)
			}
		} else if !errors.Is(err, os.ErrNotExist) || made {
			return -1, l.problem("open", spareFile, false, err)
		}
		if err := l.prepare(false); err != nil {
			return -1, l.problem("prepare", spareFile, false, err)
		}
	}
}

// begin makes the spare file the segment whose records begin at first. When it returns nil
// that is durable. What came before must be: the new segment says so. Only the leader calls
// it.
func (l *Log) begin(first, low uint64) (s *segment, err error) {
	l.wanted.Add(1)
	defer l.wanted.Add(-1)
	l.hurryZeros()
	l.spare.Lock()
	defer l.spare.Unlock()
	fd, err := l.openSpare()
	if err != nil {
		return nil, err
	}
	s = &segment{header: header{id: l.id, size: uint32(l.opts.SegmentSize), epoch: l.epoch + 1, first: first, low: low, begun: time.Now()},
		next: first, end: headerSize, synced: headerSize, fd: -1}
	s.name = segmentName(s.epoch)
	err = l.writeAt(fd, s.encode(), 0)
	if err == nil {
		err = l.syncFile(fd)
	}
	if closed := l.disk.Close(fd); err == nil {
		err = closed
	}
	if err != nil { // after a failed sync this file is not to be trusted
		_ = l.disk.Remove(l.dir.fd, plainName(spareFile))
		return nil, l.problem("begin", s.name, false, err)
	}
	since := l.dir.names.Losses(l.dir.key)
	if err := l.disk.Rename(l.dir.fd, plainName(spareFile), plainName(s.name)); err != nil {
		return nil, l.problem("begin", s.name, false, err)
	}
	l.epoch = s.epoch
	if s.fd, _, err = l.dir.open(s.name, os.O_RDWR, 0); err == nil {
		if err = l.dir.sync(since); err != nil {
			l.disk.Close(s.fd)
		}
	}
	if err != nil { // the name may be there after a crash, or not
		return nil, l.problem("begin", s.name, true, err)
	}
	return s, nil
}

// drop removes segments that have left the log. It keeps one as the spare file: its bytes
// have older epochs than what will be written there. They must be void already by what is
// durable, since a crash may bring back any of them. More spare files would save zeros later, but
// TruncateBefore must give room back to the disk.
func (l *Log) drop(segments []*segment) error {
	if len(segments) == 0 {
		return nil
	}
	l.wanted.Add(1)
	defer l.wanted.Add(-1)
	l.hurryZeros()
	l.spare.Lock()
	defer l.spare.Unlock()
	var errs []error
	_, err := l.disk.Stat(l.dir.fd, plainName(spareFile))
	recycle := errors.Is(err, os.ErrNotExist)
	for _, s := range segments {
		l.mu.Lock()
		pinned := s.pins > 0
		l.mu.Unlock()
		if recycle && !pinned && s.size == uint32(l.opts.SegmentSize) {
			err = l.disk.Rename(l.dir.fd, plainName(s.name), plainName(spareFile))
			recycle = err != nil
		} else {
			err = l.disk.Remove(l.dir.fd, plainName(s.name))
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("wal: remove %s: %w", filepath.Join(l.dir.path, s.name), err))
		}
	}
	// Before a new header is written into the recycled file: else a crash could bring
	// back its old name with the new header.
	if err := l.dir.sync(l.dir.names.Now()); err != nil {
		errs = append(errs, l.problem("sync", "", true, err))
	}
	return errors.Join(errs...)
}

// problem makes an error of a call on a file of the log. A final one is every later
// call's.
func (l *Log) problem(op, name string, final bool, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := &Error{Op: op, Path: filepath.Join(l.dir.path, name), Durable: l.durable.Load(), AtRisk: l.waitsLocked() + l.unsynced, Final: final, Err: err}
	var inner *Error
	if errors.As(err, &inner) {
		return err
	}
	if (l.failing == nil || final && !l.failing.Final) && !errors.Is(err, ErrClosed) {
		l.counts.Errors++
		l.failures.Add(e)
		l.failing = e
	}
	if final && l.final == nil {
		l.final = e
		l.growLocked()
	}
	return e
}

// writeAt writes all of p.
func (l *Log) writeAt(fd int, p []byte, at int64) error {
	for len(p) > 0 {
		var n int
		err := sys.Uninterrupted(func() (err error) {
			n, err = l.disk.WriteAt(fd, p, at)
			return err
		})
		if err == nil && n <= 0 {
			err = io.ErrShortWrite
		}
		if err != nil {
			return err
		}
		p, at = p[n:], at+int64(n)
	}
	return nil
}

// syncFile is fdatasync(2). A sync that a signal interrupted is a failed one: what it has
// reported is not reported again.
func (l *Log) syncFile(fd int) error { return l.disk.Datasync(fd) }
