package wal

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"sort"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// The names of a log's files. A segment is named by its epoch in 16 hexadecimal digits.
const (
	segmentSuffix = ".wal"
	spareFile     = "spare"     // the next segment: full size, synced
	spareMaking   = "spare.tmp" // the spare file while it is written
)

func segmentName(epoch uint64) string { return fmt.Sprintf("%016x%s", epoch, segmentSuffix) }

// plainName converts a file name of this package, which needs no check.
func plainName(name string) sys.Name { return sys.Name(name + "\x00") }

// A header begins a segment.
type header struct {
	id    [16]byte // the log's
	size  uint32   // of the segment with its header
	epoch uint64   // larger than the epoch of each earlier segment
	first uint64   // the index of its first record
	low   uint64   // the log's first index when the segment began
	// begun is the time at which the segment began: the last record of the segment before it was
	// appended no later. It is zero if not known.
	begun time.Time
	stamp uint32  // begun, as it stands in the header
	key   [8]byte // the segment's, random: see secret
	prior link    // the segment whose records end where this one's begin; zero: none
}

// A link names a segment.
type link struct {
	epoch uint64
	key   [8]byte
}

func (h *header) link() link { return link{h.epoch, h.key} }

func (h *header) encode() []byte {
	b := make([]byte, headerUsed)
	copy(b, magic)
	binary.LittleEndian.PutUint32(b[8:], version)
	binary.LittleEndian.PutUint32(b[12:], h.size)
	copy(b[16:], h.id[:])
	binary.LittleEndian.PutUint64(b[32:], h.epoch)
	binary.LittleEndian.PutUint64(b[40:], h.first)
	binary.LittleEndian.PutUint64(b[48:], h.low)
	binary.LittleEndian.PutUint32(b[56:], h.stamp)
	copy(b[64:], h.key[:])
	binary.LittleEndian.PutUint64(b[72:], h.prior.epoch)
	copy(b[80:], h.prior.key[:])
	binary.LittleEndian.PutUint32(b[92:], crc32.Checksum(b[:92], castagnoli()))
	return b
}

// page is the first page of a new segment. It leaves nothing of a recycled file's old bytes there.
func (h *header) page() []byte {
	b := make([]byte, headerSize)
	copy(b, h.encode())
	copy(b[copyAt:], b[:headerUsed])
	return b
}

// A note is written by Close beside the header: the last frames and their mark may be lost
// together, with one block of the disk.
type note struct {
	durable uint32 // the segment was durable up to here when the note was written
	low     uint64 // the log's first index
}

const noteUsed = 16

func (n note) encode(k secret) []byte {
	b := make([]byte, noteUsed)
	binary.LittleEndian.PutUint32(b[4:], n.durable)
	binary.LittleEndian.PutUint64(b[8:], n.low)
	binary.LittleEndian.PutUint32(b, crc32.Update(k.seed, castagnoli(), b[4:]))
	return b
}

func (n *note) decode(b []byte, k secret) {
	if len(b) >= noteUsed && binary.LittleEndian.Uint32(b) == crc32.Update(k.seed, castagnoli(), b[4:noteUsed]) {
		n.durable, n.low = binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint64(b[8:])
	}
}

// A segment is a file of the log. Its records are next-first, from first on. They end where the
// first record of the next segment begins, even if the file holds more.
type segment struct {
	header
	secret
	name string

	// The Log's mu guards these.
	next   uint64
	end    int64   // the end of its last frame
	places []place // some frames, in order
	pins   int     // number of calls that use its file: it is not recycled
	gone   bool    // the log no longer has it
	readFD int     // for readers; -1: none is open
	used   uint64  // the last use of readFD: see Log.uses

	// Only the leader uses these.
	fd       int           // open in the current segment; else -1
	inode    uint64        // of the file that fd has
	synced   int64         // the offset up to which it is durable
	sent     int64         // the offset up to which its writeback has begun: see startWriteback
	marked   bool          // its last frame is the mark of Close: it moves no index
	note     note          // the one that is on the disk
	seal     link          // the segment whose header's copy is on the disk
	prepared bool          // a goroutine makes the spare file for the next segment
	took     time.Duration // the total time of its syncs
}

// A place is where a frame begins.
type place struct {
	index uint32 // of its first record, counted from the segment's
	at    uint32
}

// A placeIndex decides which places a log remembers. While there are few it remembers one each 4
// KiB, so that a Read looks at few frames. When there are many it forgets every second one, and
// doubles the distance: the memory is bounded.
type placeIndex struct {
	distance int64
	count    int
}

const (
	leastDistance = 4 << 10
	mostPlaces    = 1 << 19 // 4 MiB of memory
)

// note appends the place of a frame to the new places of a segment, if it is far enough from the
// last one.
func (x *placeIndex) note(s *segment, to []place, index uint64, at int64) []place {
	last := int64(0)
	if n := len(to); n > 0 {
		last = int64(to[n-1].at)
	} else if n := len(s.places); n > 0 {
		last = int64(s.places[n-1].at)
	}
	if at-last < max(x.distance, leastDistance) {
		return to
	}
	return append(to, place{uint32(index - s.first), uint32(at)})
}

// add adds new places to a segment, one of the log's.
func (x *placeIndex) add(s *segment, places []place, all []*segment) {
	s.places = append(s.places, places...)
	if x.count += len(places); x.count <= mostPlaces {
		return
	}
	x.distance, x.count = 2*max(x.distance, leastDistance), 0
	for _, s := range all {
		var kept []place
		for i := 0; i < len(s.places); i += 2 {
			kept = append(kept, s.places[i])
		}
		s.places = kept
		x.count += len(kept)
	}
}

// before returns the offset of a frame at or before the one with index, and its first record.
func (s *segment) before(index uint64) (at int64, first uint64) {
	i := sort.Search(len(s.places), func(i int) bool { return s.first+uint64(s.places[i].index) > index })
	if i == 0 {
		return headerSize, s.first
	}
	return int64(s.places[i-1].at), s.first + uint64(s.places[i-1].index)
}

// groundChunk is the size of a write of zeros to a new file. Larger writes make larger folios in
// the page cache, and then each append costs 3 to 6 % more (Linux 6.18, ext4: 1 MiB against 64
// KiB).
const groundChunk = 64 << 10

// Zeros are written in steps, each synced: otherwise the syncs of appends wait for all of them. A
// step waits until the current segment has filled in proportion, but no longer than a pause.
const (
	groundStep  = 1 << 20
	groundPause = 20 * time.Millisecond
)

// prepare makes the spare file: its full size, full of zeros and synced. So a write to it changes no
// metadata, which makes its sync cheap, and never finds the disk full. With roomAlone it only
// allocates the size, where the system can: see roomAloneLocked.
func (l *Log) prepare(size int64, roomAlone bool) (err error) {
	defer func() {
		if err != nil {
			_ = l.disk.Remove(l.dir.fd, plainName(spareMaking)) // the next call begins anew
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
	at := int64(0)
	// If it fails, writing zeros finds the same error, or works.
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
	if err := l.disk.Close(closing); err != nil { // Windows can't rename an open file
		return err
	}
	return l.disk.Rename(l.dir.fd, plainName(spareMaking), plainName(spareFile))
}

// writeZeros fills a new file with zeros, syncs it, and records the time without the pauses.
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
				sealed := l.sealed // no call waits for a spare file any more
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
	if size == int64(l.opts.SegmentSize) && (l.zeros == 0 || took < l.zeros) {
		l.zeros = took
	}
	return nil
}

// awaitFilled waits for a pause, or until the current segment is full enough for the zeros from at
// on. Zeros begin when it is half full and are complete when it is seven eighths full. awaitFilled
// does not wait while a call needs the spare file.
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

// hurryZeros makes awaitFilled check its conditions again.
func (l *Log) hurryZeros() {
	select {
	case l.hurry <- struct{}{}:
	default: // a signal is pending already
	}
}

// roomAloneLocked reports whether the next segment is allocated without zeros. A sync in an
// allocated segment changes metadata: it takes 1.5 to 3 times as long if it has few bytes. If it
// has many, writing them twice takes longer than that. So the times are compared: of this segment's
// syncs, and of writing the same number of zeros at the best speed seen. On ext4 and xfs, with a
// journal and without, allocation was faster if the syncs took less than 1.1 to 1.7 times as long.
// Where no Append waits for a sync, zeros only take the disk's time.
func (l *Log) roomAloneLocked(s *segment) bool {
	if !l.opts.Policy.Sync.Waits() {
		return true
	}
	zeros := float64(l.zeros) * float64(s.end-headerSize) / float64(l.opts.SegmentSize)
	return float64(s.took) <= 1.5*zeros
}

// openSpare opens the spare file, or makes it if there is none of the right size. A recycled
// segment is not used if its permissions are wider than a new file's.
func (l *Log) openSpare(size int64) (fd int, err error) {
	for made := false; ; made = true {
		fd, is, err := l.dir.open(spareFile, os.O_RDWR, 0)
		if err == nil {
			if is.Size == size && is.Mode&vfs.PermMask&^(uint32(l.opts.Perm)|l.given) == 0 {
				return fd, nil
			}
			l.disk.Close(fd)
			if err := l.disk.Remove(l.dir.fd, plainName(spareFile)); err != nil {
				return -1, l.problem("prepare", spareFile, false, err)
			}
		} else if !errors.Is(err, os.ErrNotExist) || made {
			return -1, l.problem("open", spareFile, false, err)
		}
		// A large batch is not written twice.
		if err := l.prepare(size, size > int64(l.opts.SegmentSize) || !l.opts.Policy.Sync.Waits()); err != nil {
			return -1, l.problem("prepare", spareFile, false, err)
		}
	}
}

// begin turns the spare file into a segment of a size, whose records begin at first. On nil the segment is
// durable. All earlier records must be durable already: the new segment says so. Only the leader
// calls it.
func (l *Log) begin(first, low uint64, size int64) (s *segment, err error) {
	l.wanted.Add(1)
	defer l.wanted.Add(-1)
	l.hurryZeros()
	l.spare.Lock()
	defer l.spare.Unlock()
	fd, err := l.openSpare(size)
	if err != nil {
		return nil, err
	}
	before := l.pinBefore(first)
	defer l.unpin(before)
	h := header{id: l.id, size: uint32(size), epoch: l.epoch + 1, first: first, low: low, begun: time.Now()}
	if sec := h.begun.Unix() + 1; sec > 0 && sec <= math.MaxUint32 { // rounded up: no record seems older than it is
		h.stamp = uint32(sec)
	}
	if before != nil {
		h.prior = before.link()
	}
	_, err = rand.Read(h.key[:])
	if err == nil {
		err = l.writeAt(fd, h.page(), 0)
	}
	if err == nil {
		err = l.syncFile(fd)
	}
	if closed := l.disk.Close(fd); err == nil {
		err = closed
	}
	s = newSegment(h)
	if err != nil { // after a failed sync the file can't be trusted
		_ = l.disk.Remove(l.dir.fd, plainName(spareFile))
		return nil, l.problem("begin", s.name, false, err)
	}
	since := l.dir.names.Losses(l.dir.key)
	if err := l.disk.Rename(l.dir.fd, plainName(spareFile), plainName(s.name)); err != nil {
		return nil, l.problem("begin", s.name, false, err)
	}
	l.epoch = s.epoch
	var is sys.Stat
	if s.fd, is, err = l.dir.open(s.name, os.O_RDWR, 0); err != nil {
		return nil, l.problem("begin", s.name, true, err)
	}
	s.inode = is.Inode
	// It is not known whether the name survives a crash.
	if err = l.dir.sync(since); err == nil && before != nil {
		// A seal is an overwrite, which needs disk space where the file system copies on write. For
		// want of it the log goes on without the seal: Open writes the last segment's. The segment is not
		// removed again: if the seal were on the disk, Open would miss it.
		if err = l.seal(before, &h); isFull(err) {
			err = nil
		}
	}
	if err != nil {
		l.disk.Close(s.fd)
		return nil, l.problem("begin", s.name, true, err)
	}
	return s, nil
}

func newSegment(h header) *segment {
	return &segment{header: h, secret: secretOf(h.id, h.key), name: segmentName(h.epoch), next: h.first, end: headerSize, synced: headerSize, fd: -1, readFD: -1}
}

// pinBefore returns the segment whose records a new one ends, or nil. It is not recycled until
// unpin.
func (l *Log) pinBefore(first uint64) (before *segment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.segments {
		if s.first < first {
			before = s
		}
	}
	if before != nil {
		before.pins++
	}
	return before
}

// unpin ends the use of a segment's file.
func (l *Log) unpin(s *segment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s != nil {
		l.unpinLocked(s)
	}
}

func (l *Log) unpinLocked(s *segment) {
	if s.pins--; s.pins == 0 && (s.gone || l.released) {
		l.closeReadLocked(s)
	}
}

// seal writes the header of the next segment into the page of a segment's header, durably: if the
// next one is lost, Open notices, and knows which records it had.
func (l *Log) seal(s *segment, next *header) error {
	if err := l.writePart(s, next.encode(), sealAt); err != nil {
		return err
	}
	s.seal = next.link()
	return nil
}

// writePart writes a part of a header's page durably. All other bytes of the segment are durable.
func (l *Log) writePart(s *segment, p []byte, at int64) (err error) {
	fd := s.fd
	if fd < 0 {
		if fd, _, err = l.dir.open(s.name, os.O_RDWR, 0); err != nil {
			return err
		}
		defer l.disk.Close(fd)
	}
	if err := l.writeAt(fd, p, at); err != nil {
		return err
	}
	return l.syncFile(fd)
}

// isFull reports whether an error is a full disk or quota.
func isFull(err error) bool { return retry.Is(err, syscall.ENOSPC, syscall.EDQUOT) }

// drop removes segments that the log no longer has. It keeps one as the spare file: its frames have
// older epochs than the new ones. Durable records must already make these segments void, because a
// crash may bring back any of them. More spare files would save zeros later, but TruncateBefore
// must free disk space.
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
		if !pinned {
			l.closeReadLocked(s)
		}
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
	// Before a new header is written into the recycled file: otherwise a crash could bring back its
	// old name with the new header.
	if err := l.dir.sync(l.dir.names.Now()); err != nil {
		errs = append(errs, l.problem("sync", "", true, err))
	}
	return errors.Join(errs...)
}

// problem returns the Error of a failed call on a file of the log. A final one is returned by every
// later call.
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

// syncFile is fdatasync(2). It does not repeat a sync that a signal interrupted: the kernel reports
// an error once, and a second sync would report success.
func (l *Log) syncFile(fd int) error {
	defer l.watchSync()()
	return l.disk.Datasync(fd)
}

// watchSync begins the watch for Options.OnSlowSync. The caller calls its result when the sync ends.
func (l *Log) watchSync() (end func()) {
	return l.slow.Begin(holdfast.SlowSync{Path: l.dir.path, Since: time.Now()})
}
