package wal

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"crypto/rand"

	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A dirState holds the segments that load found in a directory.
type dirState struct {
	Recovery
	live   []*segment // in order; the log appends to the last one
	void   []*segment // segments without a live record
	places placeIndex
	tail   tailState
}

// A tailState describes the end of the last segment.
type tailState struct {
	proven int64 // up to here a later frame says that the segment was durable
	torn   int64 // bytes of incomplete frames
	dirty  bool  // bytes after the end look like a frame of the segment
}

// A recordFunc is called with each record in order, or with damage. On false the walk ends. With a
// nil recordFunc the walk's error is the first damage.
type recordFunc func(r Record, damage *DamageError) bool

func (each recordFunc) damaged(d *DamageError) error {
	switch {
	case each == nil:
		return d
	case !each(Record{}, d):
		return errStopped
	}
	return nil
}

// recoverChunk is the size of the reads of Open and Scan. More than the size of a CPU's cache is
// slower.
const recoverChunk = 256 << 10

// A frame that is not whole, in a log that may be open, is read this often, with a pause each time.
const (
	liveTries = 4
	livePause = 5 * time.Millisecond
)

// errStopped ends a walk.
var errStopped = errors.New("stopped")

// load reads and checks the segments of a log. It gives each the records from an index on, and the damage,
// in the order of their indices.
func load(dir *directory, segments []*found, from uint64, each recordFunc) (st dirState, err error) {
	// A segment is void if a later one begins at or before its first record: TruncateAfter cut it.
	var live []*found
	for _, s := range segments {
		kept := len(live)
		for s.known && kept > 0 && (!live[kept-1].known || live[kept-1].first >= s.first) {
			kept--
		}
		later := live[kept:]
		live = live[:kept]
		for _, v := range later {
			switch {
			case !v.known:
				live = append(live, v)
			case !v.missing:
				st.void = append(st.void, v.segment)
			}
		}
		live = append(live, s)
	}
	last := len(live) - 1
	for last >= 0 && !live[last].known {
		last--
	}
	st.First = 1
	whole, low, counted := true, uint64(1), Recovery{}
	if last >= 0 {
		// The last segment has the newest mark of the log's first index.
		w := walk{dir: dir, state: &st, low: live[last].low, resumes: each != nil, each: func(_ Record, d *DamageError) bool {
			whole = whole && d == nil
			return true
		}}
		if err := w.segment(live[last], math.MaxUint64, true); err != nil {
			return st, err
		}
		low, counted = w.low, st.Recovery
		for last > 0 && live[0].known && live[1].known && live[1].first <= low {
			if !live[0].missing {
				st.void = append(st.void, live[0].segment)
			}
			live, last = live[1:], last-1
		}
	}
	st.Recovery = Recovery{First: low}
	next := low
	for i, s := range live {
		if s.known && !s.missing {
			st.live = append(st.live, s.segment)
		}
		if d := s.damage(dir, live[:i], next, low); d != nil {
			if err := each.damaged(d); err != nil {
				return st, err
			}
		}
		if !s.known || s.missing {
			continue
		}
		st.Segments++
		w := walk{dir: dir, state: &st, low: low, from: from, resumes: each != nil, each: each}
		limit := uint64(math.MaxUint64)
		if i < last {
			limit = live[i+1+slices.IndexFunc(live[i+1:], func(s *found) bool { return s.known })].first
		}
		if i == last && each == nil && whole && low == s.low { // the first walk of it counted the same
			st.Records, st.Bytes, st.Torn = st.Records+counted.Records, st.Bytes+counted.Bytes, counted.Torn
		} else if s.next = limit; limit <= from {
			next = limit
			continue
		} else if err := w.segment(s, limit, i == last || !live[i+1].known); err != nil {
			return st, err
		}
		next = max(next, s.next)
		if s.size > 0 && s.has < int64(s.size) && !w.damaged {
			reason := fmt.Sprintf("it has %d bytes of %d", s.has, s.size)
			if err := each.damaged(&DamageError{filepath.Join(dir.path, s.name), s.has, s.next, reason}); err != nil {
				return st, err
			}
		}
	}
	st.Last = max(next, low) - 1
	return st, nil
}

// A found is a segment that load found, or one that another segment's seal names.
type found struct {
	*segment
	has     int64  // the size of its file
	fault   string // of its header, or ""
	known   bool   // its header is known: from the page, or from the seal of the segment before
	missing bool   // it has no file
}

// damage returns what is wrong with a segment itself, or with its place behind the earlier ones.
// Next is the index behind the whole records of these.
func (s *found) damage(dir *directory, earlier []*found, next, low uint64) *DamageError {
	d := &DamageError{Path: filepath.Join(dir.path, s.name), Index: next, Reason: s.fault}
	if s.known {
		d.Index = max(low, s.first)
	}
	if s.fault != "" {
		return d
	}
	if len(earlier) == 0 {
		if s.first <= low {
			return nil
		}
		d.Index, d.Reason = low, fmt.Sprintf("the segment before it is missing, with records %d to %d", low, s.first-1)
		return d
	}
	switch p := earlier[len(earlier)-1]; {
	case p.known && s.prior != p.link():
		d.Index, d.Reason = min(next, s.first), fmt.Sprintf("the segment before it, %s, is missing", segmentName(s.prior.epoch))
	case p.known && p.seal.epoch == s.epoch && p.seal != s.link():
		d.Reason = "another segment of this name is missing"
	default:
		return nil
	}
	return d
}

// headers returns the segments of a directory in the order of their epochs.
func headers(dir *directory) (all []*found, err error) {
	var entries []sys.DirEntry
	buf := make([]byte, 16<<10)
	for {
		had := len(entries)
		if entries, err = dir.disk.ReadNames(dir.fd, buf, entries); err != nil {
			return nil, fmt.Errorf("wal: list directory %s: %w", dir.path, err)
		}
		if len(entries) == had {
			break
		}
	}
	for _, e := range entries {
		name := e.Name.String()
		epoch, err := strconv.ParseUint(strings.TrimSuffix(name, segmentSuffix), 16, 64)
		if err == nil && segmentName(epoch) == name {
			all = append(all, &found{segment: &segment{name: name, header: header{epoch: epoch}, fd: -1, readFD: -1}})
		}
	}
	byEpoch := func(a, b *found) int { return cmp.Compare(a.epoch, b.epoch) }
	slices.SortFunc(all, byEpoch)
	var id *found // the first whose header is known
	var seals []header
	truncated := false
	listed := all
	all = all[:0]
	for _, s := range listed {
		page, err := s.readPage(dir)
		if dir.live && errors.Is(err, os.ErrNotExist) {
			// TruncateBefore has removed it, and those before it: the log begins behind it.
			all, seals, truncated = all[:0], nil, true
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, s)
		if s.known && id == nil {
			id = s
		}
		if s.known && s.id != id.id {
			s.known, s.fault = false, "it belongs to another log than "+id.name
		}
		var next header
		if next.decode(page[min(sealAt, len(page)):]) == "" && (!s.known || next.id == s.id) && next.epoch > s.epoch {
			seals = append(seals, next)
			s.seal = next.link()
		}
	}
	if i := slices.IndexFunc(all, func(s *found) bool { return s.known }); truncated && i >= 0 {
		// The segments' own marks may be older than that.
		for _, s := range all[i:] {
			if s.known {
				s.low = max(s.low, all[i].first)
			}
		}
	}
	for _, h := range seals { // in the order of epochs: a segment's own seal follows it
		i, exists := slices.BinarySearchFunc(all, h.epoch, func(s *found, epoch uint64) int { return cmp.Compare(s.epoch, epoch) })
		switch {
		case exists && !all[i].known && (id == nil || h.id == id.id):
			fault := all[i].fault
			page, err := all[i].readPage(dir)
			if err != nil {
				return nil, err
			}
			n := newSegment(h)
			all[i].fault = fault
			n.seal = all[i].seal
			n.note.decode(page[min(noteAt, len(page)):], n.secret)
			all[i].segment, all[i].known = n, true
		case !exists && id != nil && h.id == id.id && !(dir.live && dir.has(segmentName(h.epoch))): // else it was begun meanwhile
			s := &found{segment: newSegment(h), known: true, missing: true}
			s.fault = fmt.Sprintf("it is missing, with the records from %d on", h.first)
			all = slices.Insert(all, i, s)
		}
	}
	return all, nil
}

// readPage reads a segment's header, and the note and the seal beside it.
func (s *found) readPage(dir *directory) (page []byte, err error) {
	fd, is, err := dir.open(s.name, os.O_RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("wal: open %s: %w", filepath.Join(dir.path, s.name), err)
	}
	defer dir.disk.Close(fd)
	s.has = is.Size
	w := window{disk: dir.disk, fd: fd, size: is.Size, chunk: headerSize}
	page, err = w.bytes(0, headerSize)
	if err != nil {
		return nil, fmt.Errorf("wal: read %s: %w", filepath.Join(dir.path, s.name), err)
	}
	var h, again header
	s.fault = h.decode(page)
	s.known = s.fault == ""
	if !s.known && again.decode(page[min(copyAt, len(page)):]) == "" {
		h, s.known = again, true
	}
	if s.known && h.epoch != s.epoch {
		s.known, s.fault = false, "its header is that of "+segmentName(h.epoch)
	}
	if s.known {
		s.segment = newSegment(h)
		s.note.decode(page[min(noteAt, len(page)):], s.secret)
	}
	return page, nil
}

// A walk reads the frames of segments in order.
type walk struct {
	dir     *directory
	state   *dirState
	low     uint64 // the log's first index; a mark raises it
	each    recordFunc
	from    uint64 // the first index that is wanted
	resumes bool   // it continues behind damage
	damaged bool
	window
}

// segment reads one segment up to the record before limit. An incomplete frame before that is
// damage, except in the last segment, where it may be the torn end of bytes that were not durable:
// see lookBehind.
func (w *walk) segment(s *found, limit uint64, last bool) (err error) {
	w.state.places.count -= len(s.places)
	s.next, s.end, s.places, s.marked = s.first, headerSize, nil, false
	if s.missing {
		return nil
	}
	path := filepath.Join(w.dir.path, s.name)
	fd, _, err := w.dir.open(s.name, os.O_RDONLY, 0)
	if w.dir.live && errors.Is(err, os.ErrNotExist) {
		return nil // TruncateBefore has removed it
	}
	if err != nil {
		return fmt.Errorf("wal: open %s: %w", path, err)
	}
	defer w.dir.disk.Close(fd)
	w.window = window{disk: w.dir.disk, fd: fd, size: int64(s.size), chunk: recoverChunk, secret: s.secret}
	proven, low := max(headerSize, int64(s.note.durable)), max(s.low, s.note.low)
	if last {
		w.low = max(w.low, low)
	}
	for try := 1; s.next < limit; {
		f, end, ok, err := w.frame(s.end, 0)
		if err != nil {
			return fmt.Errorf("wal: read %s: %w", path, err)
		}
		if (!ok || f.index != s.next) && w.dir.live && try < liveTries {
			try++
			time.Sleep(livePause) // it may be written just now
			w.buf = w.buf[:0]
			continue
		}
		if try = 1; !ok || f.index != s.next {
			if w.dir.live && !w.dir.has(s.name) {
				return nil
			}
			behind, err := w.lookBehind(s.segment, w.resumes)
			if err != nil {
				return fmt.Errorf("wal: read %s: %w", path, err)
			}
			if last && !behind.durable && int64(s.note.durable) <= s.end {
				w.state.tail = tailState{proven, behind.torn, behind.dirty}
				w.state.Torn = behind.torn
				return nil
			}
			reason := "what was durable is not whole"
			if !last {
				reason = fmt.Sprintf("the next segment begins with record %d", limit)
			}
			w.damaged = true
			if err := w.each.damaged(&DamageError{path, s.end, s.next, reason}); err != nil {
				return err
			}
			if behind.at == 0 {
				return nil
			}
			s.end, s.next = behind.at, behind.index
			continue
		}
		proven = max(proven, int64(f.durable))
		s.marked = false
		if f.count == 0 {
			said := min(binary.LittleEndian.Uint64(f.body), s.next)
			s.marked = said <= low
			low = max(low, said)
			w.low = max(w.low, low)
		} else {
			if new := w.state.places.note(s.segment, nil, f.index, s.end); len(new) > 0 {
				w.state.places.add(s.segment, new, w.state.live)
			}
		}
		for r := range f.records() {
			if r.Index < max(w.low, w.from) || r.Index >= limit {
				continue
			}
			w.state.Records++
			w.state.Bytes += int64(len(r.Data))
			if w.each != nil && !w.each(r, nil) {
				return errStopped
			}
		}
		s.end, s.next = end, min(f.next(), limit)
	}
	return nil
}

// A lookResult describes the bytes after an incomplete frame.
type lookResult struct {
	durable bool   // a later frame's header says that this place was durable before that frame was written
	dirty   bool   // a frame of the segment may stand there
	torn    int64  // the length from the place to the end of the last such frame
	at      int64  // the offset of the first whole frame, or 0
	index   uint64 // the index of that frame
}

// lookBehind looks for frames after an incomplete one.
//
// They separate a torn end from damage. A crash may keep any of the sectors written since the last
// sync, so a whole frame after an incomplete one alone proves nothing. But each frame's header
// holds the offset up to which the segment was durable when the frame was written. If that offset
// is beyond the incomplete frame, its bytes were on the disk and are gone: damage. The header has
// its own checksum, so its time does not depend on the bytes.
//
// With whole it also looks for the first whole frame, to continue there. It checks the bodies of at
// most as many bytes as the segment has.
func (w *walk) lookBehind(s *segment, whole bool) (behind lookResult, err error) {
	place, checked := s.end, int64(0)
	for at := place; at+frameHeader <= w.size; {
		b, err := w.bytes(at, frameHeader)
		if err != nil {
			return behind, err
		}
		if len(b) < frameHeader {
			break
		}
		skip := 0
		for skip+frameHeader <= len(b) && binary.LittleEndian.Uint32(b[skip+8:]) != w.tag {
			skip += frameAlign
		}
		if at += int64(skip); skip+frameHeader > len(b) {
			continue
		}
		behind.dirty = behind.dirty || at > place
		var f frame
		body, ok := f.decode(b[skip:], w.secret, at, w.size)
		if !ok {
			at += frameAlign
			continue
		}
		size := frameSize(body)
		behind.torn = max(behind.torn, at+size-place)
		if at > place && f.index >= s.next {
			behind.durable = behind.durable || int64(f.durable) > place
			if whole && behind.at == 0 && checked+size <= w.size {
				checked += size
				f, _, ok, err := w.frame(at, 0)
				if err != nil {
					return behind, err
				}
				if ok {
					behind.at, behind.index = at, f.index
				}
			}
		}
		if behind.durable && (behind.at > 0 || !whole) {
			break
		}
		at += frameAlign
	}
	return behind, nil
}

// recover opens the directory, and continues the log in it or begins a new one.
func (l *Log) recover(path string) (found Recovery, err error) {
	since := durable.NameSyncsOf(l.disk).Now()
	l.dir, err = openDirectory(l.disk, path, lockExclusive, l.opts.Perm)
	made := errors.Is(err, os.ErrNotExist)
	if made {
		if err := makeDirectory(l.disk, path, l.opts.Perm); err != nil {
			return found, err
		}
		l.dir, err = openDirectory(l.disk, path, lockExclusive, l.opts.Perm)
	}
	if err != nil {
		return found, err
	}
	segments, err := headers(&l.dir)
	if err != nil {
		return found, err
	}
	if n := len(segments); n > 0 && !segments[n-1].missing {
		l.dropRefused(segments[n-1].name)
	}
	st, err := load(&l.dir, segments, 0, nil)
	var damage *DamageError
	var aside []string
	if l.opts.Repair && errors.As(err, &damage) {
		if aside, err = l.repair(segments); err != nil {
			return found, err
		}
		_ = l.dir.close() // an open directory lists its names once
		if l.dir, err = openDirectory(l.disk, path, lockExclusive, l.opts.Perm); err == nil {
			segments, err = headers(&l.dir)
		}
		if err == nil {
			st, err = load(&l.dir, segments, 0, nil)
		}
	}
	if err != nil {
		return found, err
	}
	st.Damage, st.Aside = damage, aside
	// After a failed sync of the directory, the spare file may still have the name of a segment on
	// the disk. A new header in it would damage that segment.
	for _, name := range []string{spareMaking, spareFile} {
		if err := l.disk.Remove(l.dir.fd, plainName(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return found, fmt.Errorf("wal: remove %s: %w", filepath.Join(path, name), err)
		}
	}
	last := st.Last
	if len(st.live) == 0 {
		// Sync the parent also if the directory exists: its maker may have died before the name was
		// durable, or have seen that sync fail.
		if !made {
			since = 0
		}
		if err := l.dir.syncAbove(since); err != nil && (made || !errors.Is(err, os.ErrPermission)) {
			return found, fmt.Errorf("wal: make directory %s durable: %w; it has no record: remove it, and open the log again", path, err)
		}
		if _, err := rand.Read(l.id[:]); err != nil {
			return found, fmt.Errorf("wal: %w", err)
		}
		st.First, last = 1, 0
		s, err := l.begin(1, 1, int64(l.opts.SegmentSize))
		if err != nil {
			return found, err
		}
		l.enterLocked(s)
	} else {
		head := st.live[len(st.live)-1]
		l.id, l.epoch = head.id, head.epoch
		if err := l.continueIn(&st, head); err != nil {
			return found, err
		}
	}
	st.Last = max(last, st.First-1)
	l.first, l.last, l.flushed = st.First, st.Last, st.Last
	l.durable.Store(st.Last)
	l.lowWritten, l.lowDurable = st.First, st.First
	return st.Recovery, l.drop(append(st.void, l.forgetLocked(0)...))
}

// continueIn makes the found records durable, and continues in the last segment or in a new one.
func (l *Log) continueIn(st *dirState, head *segment) (err error) {
	var is sys.Stat
	if head.fd, is, err = l.dir.open(head.name, os.O_RDWR, 0); err != nil {
		return fmt.Errorf("wal: open %s: %w", filepath.Join(l.dir.path, head.name), err)
	}
	head.inode = is.Inode
	l.segments, l.head, l.places = st.live, head, st.places
	// Records that no frame proves durable may be in the page cache only, also after a failed sync
	// in another process. So they are written again.
	if err := l.restore(head.fd, head, st.tail.proven); err != nil {
		return l.problem("restore", head.name, false, err)
	}
	if err := l.syncFile(head.fd); err != nil {
		return l.problem("sync", head.name, true, err)
	}
	head.synced = head.end
	// A crash may have come between the beginning of a segment and its seal. A segment without a frame
	// is replaced below, because nothing proves that its name is durable: a seal of it could be all
	// that a crash leaves.
	if n := len(st.live); n > 1 && head.end > headerSize && st.live[n-2].seal != head.link() {
		if err := l.seal(st.live[n-2], &head.header); err != nil {
			return l.problem("seal", st.live[n-2].name, false, err)
		}
	}
	// Never append before stale frames: a new frame could end where one begins, and recovery would
	// accept it. Nor to a segment without a frame.
	if !st.tail.dirty && head.end > headerSize {
		return nil
	}
	s, err := l.begin(max(head.next, st.First), st.First, int64(l.opts.SegmentSize))
	if err != nil {
		return err
	}
	l.enterLocked(s)
	if s.first == head.first { // head had no record
		l.segments = slices.DeleteFunc(l.segments, func(s *segment) bool { return s == head })
		st.void = append(st.void, head)
	}
	return nil
}

// dropRefused lets what the disk has refused of the last segment be read from the disk, not from the page cache. On ext4 it would
// not help to write that again: see [sys.Disk.DropRefused].
func (l *Log) dropRefused(name string) {
	d, ok := l.disk.(vfs.PageCache)
	if !ok {
		return
	}
	fd, _, err := l.dir.open(name, os.O_RDWR, 0)
	if err != nil {
		return // the reader says so
	}
	_ = l.disk.Datasync(fd) // of a failure the reader finds what it has left
	d.DropRefused(fd, 0)
	_ = l.disk.Close(fd)
}

// restore writes the frames of a segment from an offset on again.
func (l *Log) restore(fd int, s *segment, from int64) error {
	w := window{disk: l.disk, fd: fd, size: int64(s.size), chunk: recoverChunk}
	for at := from; at < s.end; {
		b, err := w.bytes(at, 1)
		if err == nil && len(b) == 0 {
			err = io.ErrUnexpectedEOF // another program cut it meanwhile
		}
		if err == nil {
			b = b[:min(int64(len(b)), s.end-at)]
			err = l.writeAt(fd, b, at)
		}
		if err != nil {
			return err
		}
		at += int64(len(b))
	}
	return nil
}

// makeDirectory makes a log's directory. Users who may read its files may enter it.
func makeDirectory(d disk, path string, perm fs.FileMode) error {
	name, err := sys.NewName(path)
	if err != nil {
		return fmt.Errorf("wal: %q: %w", path, err)
	}
	if err := d.Mkdir(name, uint32(perm|perm&0o444>>2)); err != nil && !errors.Is(err, os.ErrExist) {
		return ofDirectory("make", path, err)
	}
	return nil
}

// Scan reads and checks a whole log that is not open, and changes nothing. It calls each with every
// whole record in order and with each damaged place, after which it continues. The call has a
// Record or a DamageError. Data is valid during the call. Scan ends early if each returns false.
// The Recovery counts the records read.
func Scan(dir string, each func(r Record, damage *DamageError) bool) (Recovery, error) {
	return scan(sys.Disk{}, dir, each)
}

func scan(d disk, path string, each func(Record, *DamageError) bool) (Recovery, error) {
	return scanFrom(d, path, lockShared, 0, each)
}

// ScanOpen is Scan of a log that may be open, in this or another process, and begins with the record
// of an index. It reads the log as it is at the time: what is being written then is no damage, and
// records that are being removed may be among the ones that it gives.
func ScanOpen(dir string, from uint64, each func(r Record, damage *DamageError) bool) (Recovery, error) {
	return scanFrom(sys.Disk{}, dir, lockNone, from, each)
}

func scanFrom(d disk, path string, mode lockMode, from uint64, each func(Record, *DamageError) bool) (Recovery, error) {
	dir, segments, err := list(d, path, mode)
	for try := 1; mode == lockNone && try < liveTries && (err != nil || slices.ContainsFunc(segments, func(s *found) bool { return s.fault != "" })); try++ {
		dir.close()
		time.Sleep(livePause) // a segment was begun or removed meanwhile
		dir, segments, err = list(d, path, mode)
	}
	if err != nil {
		return Recovery{}, err
	}
	defer dir.close()
	st, err := load(&dir, segments, from, each)
	if errors.Is(err, errStopped) {
		err = nil
	}
	return st.Recovery, err
}

// list opens a log's directory and returns its segments.
func list(d disk, path string, mode lockMode) (dir directory, segments []*found, err error) {
	if dir, err = openDirectory(d, path, mode, 0); err != nil {
		return dir, nil, err
	}
	if segments, err = headers(&dir); err != nil {
		dir.close()
		dir.fd, dir.lock = -1, -1
	}
	return dir, segments, err
}

// decode returns the fault of a header, or "".
func (h *header) decode(b []byte) string {
	switch {
	case len(b) < headerUsed:
		return "the file is shorter than a segment's header"
	case string(b[:8]) != magic:
		return "it does not begin as a segment of a log"
	case binary.LittleEndian.Uint32(b[92:]) != crc32.Checksum(b[:92], castagnoli()):
		return "the checksum of its header is wrong"
	case binary.LittleEndian.Uint32(b[8:]) != version:
		return "it was written by another version of this package"
	}
	copy(h.id[:], b[16:])
	h.size = binary.LittleEndian.Uint32(b[12:])
	h.epoch = binary.LittleEndian.Uint64(b[32:])
	h.first = binary.LittleEndian.Uint64(b[40:])
	h.low = binary.LittleEndian.Uint64(b[48:])
	if h.stamp = binary.LittleEndian.Uint32(b[56:]); h.stamp > 0 {
		h.begun = time.Unix(int64(h.stamp), 0)
	}
	copy(h.key[:], b[64:])
	h.prior.epoch = binary.LittleEndian.Uint64(b[72:])
	copy(h.prior.key[:], b[80:])
	if h.size < leastSegment || h.size > largest || h.epoch == 0 || h.first == 0 || h.low > h.first {
		return "its header has impossible values"
	}
	return ""
}
