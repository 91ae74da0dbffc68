package wal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"
)

// The sizes of a reader's reads: where it looks for one record, and where it reads in order.
const (
	readLeast = 4 << 10
	readMost  = 256 << 10
)

// keptCursors is the most readers that a log keeps for Read, and keptFiles the most descriptors.
const (
	keptCursors = 4
	keptFiles   = 32
)

// Read returns the record of an index. Under sync=group and sync=each it returns only durable
// records, so that no reader sees a record that a crash can take back. Otherwise it returns every
// accepted record, and first writes the records in memory to the kernel. For an index that the log
// does not have it returns [ErrNotFound]. The caller owns the slice. Reading in order is faster
// than at random.
func (l *Log) Read(index uint64) ([]byte, error) {
	if err := l.flushFor(index); err != nil {
		return nil, err
	}
	c := l.takeCursor(index)
	defer l.keepCursor(c)
	for {
		end, err := c.resume(index)
		if err != nil {
			return nil, err
		}
		if index >= end {
			return nil, fmt.Errorf("%w: %d", ErrNotFound, index)
		}
		data, err := c.one()
		if c.cuts != l.cuts.Load() {
			continue // TruncateAfter may have removed it
		}
		if err != nil {
			return nil, err
		}
		c.next++
		return bytes.Clone(data), nil
	}
}

// flushFor writes the records in memory up to an index to the kernel, if readers may see them.
func (l *Log) flushFor(index uint64) error {
	if l.opts.Policy.Sync.Waits() {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if index = min(index, l.last); l.final != nil || l.isClosing || index <= l.flushed {
		return nil
	}
	return l.advanceLocked(background, index, false)
}

// takeCursor returns a cursor for Read: the one that has read the record before, or the one that
// was not used for longest, or a new one.
func (l *Log) takeCursor(index uint64) *cursor {
	l.cursorsLock.Lock()
	defer l.cursorsLock.Unlock()
	at := slices.IndexFunc(l.cursors, func(c *cursor) bool { return c.next == index })
	if at < 0 && len(l.cursors) == keptCursors {
		at = 0
	}
	if at < 0 {
		return l.newCursor(index)
	}
	c := l.cursors[at]
	l.cursors = slices.Delete(l.cursors, at, at+1)
	return c
}

// keepCursor keeps a cursor for the next Read. Its segment is not pinned meanwhile.
func (l *Log) keepCursor(c *cursor) {
	c.rest()
	l.cursorsLock.Lock()
	defer l.cursorsLock.Unlock()
	if len(l.cursors) < keptCursors && cap(c.buf) <= readMost {
		l.cursors = append(l.cursors, c)
	}
}

// Records returns the records from an index on, up to the end of the log when the iterator arrives
// there. See Read for the records that a reader sees. Data is valid until the next step. An error
// is the last step: ErrNotFound if the log begins after from, or if TruncateBefore or TruncateAfter
// removed the next record; a DamageError; ErrClosed. After TruncateAfter has returned, no record
// that it removed is returned. Records that TruncateBefore removes may still be returned.
func (l *Log) Records(from uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if err := l.flushFor(math.MaxUint64); err != nil {
			yield(Record{}, err)
			return
		}
		l.read(background, false, from, yield)
	}
}

// Follow is Records that waits for new records, until the Log is closed or ctx ends, whose cause is
// the last error. Records in memory come when the policy has written them.
func (l *Log) Follow(ctx context.Context, from uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) { l.read(ctx, true, from, yield) }
}

// A cursor is the position of a reader.
type cursor struct {
	log    *Log
	next   uint64
	epoch  uint64   // the epoch of the log's head at the last look: TruncateAfter begins a larger one
	in     *segment // nil: none yet
	pinned bool     // in is pinned; else the cursor rests
	limit  uint64   // the index after the last record of in
	cuts   int64    // the log's cuts at the last look
	at     int64    // the offset of a frame, at or before next
	index  uint64   // the first record at that offset
	last   int64    // the offset of the frame before it
	have   frame    // the last frame; its body is valid until the next one is read
	behind int      // number of have's records before data
	data   []byte   // the rest of have's body, from that record on
	window
}

func (l *Log) newCursor(next uint64) *cursor {
	return &cursor{log: l, next: next, window: window{disk: l.disk, fd: -1, chunk: readLeast, most: readMost}}
}

// rest unpins the cursor's segment, and keeps what was read of it.
func (c *cursor) rest() {
	if c.pinned {
		c.log.unpin(c.in)
		c.pinned = false
	}
}

// resume makes a cursor ready for Read of an index, and returns the index after the last record
// that readers may see.
func (c *cursor) resume(index uint64) (end uint64, err error) {
	l := c.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.in != nil && (c.cuts != l.cuts.Load() || !c.pinned && (c.in.gone || c.in.readFD != c.fd)) {
		if c.pinned {
			l.unpinLocked(c.in)
		}
		c.in, c.pinned = nil, false
	}
	switch {
	case c.in == nil:
		c.limit, c.have = 0, frame{}
	case !c.pinned:
		c.in.pins++
		c.pinned = true
	}
	switch {
	case c.in != nil && c.have.index <= index && index < c.have.next():
	case c.in != nil && c.in.first <= index && index < c.in.next:
		if index != c.index {
			if at, first := c.in.before(index); index < c.index || at > c.at {
				c.at, c.index = at, first
			}
		}
	default:
		c.limit = 0
	}
	c.next, c.epoch = index, 0
	if c.limit > 0 {
		c.epoch = l.head.epoch
	}
	if err := c.checkLocked(); err != nil {
		return 0, err
	}
	return l.visibleLocked(), nil
}

// one returns the next record.
func (c *cursor) one() ([]byte, error) {
	if err := c.reach(); err != nil {
		return nil, err
	}
	f := c.have
	if c.next < f.index || c.next >= f.next() {
		var err error
		if f, err = c.step(); err != nil {
			return nil, err
		}
		c.have, c.behind, c.data = f, 0, f.body[4*f.count:]
	}
	k := int(c.next - f.index)
	if k < c.behind {
		c.behind, c.data = 0, f.body[4*f.count:]
	}
	for ; c.behind < k; c.behind++ {
		c.data = c.data[binary.LittleEndian.Uint32(f.body[4*c.behind:]):]
	}
	return c.data[:binary.LittleEndian.Uint32(f.body[4*k:])], nil
}

func (l *Log) read(ctx context.Context, follow bool, from uint64, yield func(Record, error) bool) {
	c := l.newCursor(from)
	defer c.rest()
	for {
		end, err := c.await(ctx, follow)
		if err != nil {
			yield(Record{}, err)
			return
		}
		if c.next >= end {
			return
		}
		for c.next < end {
			f, err := c.step()
			if err != nil {
				yield(Record{}, err)
				return
			}
			for r := range f.records() {
				if c.cuts != l.cuts.Load() { // the rest of the frame may be removed by now
					end = c.next
				}
				// The frame may have records after the cut of a TruncateAfter.
				if r.Index == c.next && r.Index < min(end, c.limit) {
					c.next++
					if !yield(r, nil) {
						return
					}
				}
			}
			if c.next < f.next() { // end was the log's end before a cut
				c.at = c.last
			}
		}
	}
}

// await returns the index after the last record that readers may see. With follow it waits until
// that is greater than next.
func (c *cursor) await(ctx context.Context, follow bool) (end uint64, err error) {
	l := c.log
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		if err := c.checkLocked(); err != nil {
			return 0, err
		}
		end = l.visibleLocked()
		if !follow || end > c.next {
			return end, nil
		}
		if l.final != nil {
			return 0, l.final
		}
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if l.grown == nil {
			l.grown = make(chan struct{})
		}
		grown := l.grown
		l.mu.Unlock()
		select {
		case <-grown:
		case <-ctx.Done():
		case <-l.closing:
		}
		l.mu.Lock()
	}
}

// visibleLocked returns the index after the last record that readers may see.
func (l *Log) visibleLocked() uint64 {
	if l.opts.Policy.Sync.Waits() {
		return l.durable.Load() + 1
	}
	return l.flushed + 1
}

// checkLocked returns the error that ends the cursor, or nil.
func (c *cursor) checkLocked() error {
	l := c.log
	c.cuts = l.cuts.Load()
	if l.isClosing {
		return ErrClosed
	}
	cut := false
	for i := len(l.segments) - 1; i >= 0 && c.epoch > 0 && l.segments[i].epoch > c.epoch; i-- {
		cut = cut || l.segments[i].first < c.next
	}
	if c.epoch != l.head.epoch {
		c.epoch, c.limit = l.head.epoch, 0 // TruncateAfter may have ended its segment before the limit
	}
	if cut || c.next < l.first || c.next > l.last+1 {
		return fmt.Errorf("%w: %d, of %d to %d", ErrNotFound, c.next, l.first, l.last)
	}
	return nil
}

// reach goes to the segment with the next record.
func (c *cursor) reach() error {
	for c.in == nil || c.next >= c.limit {
		if err := c.enter(); err != nil {
			return err
		}
	}
	return nil
}

// step returns the frame with the next record.
func (c *cursor) step() (f frame, err error) {
	if err := c.reach(); err != nil {
		return f, err
	}
	for {
		f, end, ok, err := c.frame(c.at, c.next)
		if err != nil {
			return f, &Error{Op: "read", Path: c.path(), Durable: c.log.Durable(), Err: err}
		}
		if !ok || f.index > c.next {
			return f, &DamageError{c.path(), c.at, c.next, "its checksum is wrong"}
		}
		c.last, c.at, c.index = c.at, end, f.next()
		if f.next() > c.next {
			return f, nil
		}
	}
}

func (c *cursor) path() string { return filepath.Join(c.log.dir.path, c.in.name) }

// enter goes to the segment with the next record, or extends the limit of the one that it is in.
func (c *cursor) enter() error {
	l := c.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := c.checkLocked(); err != nil {
		return err
	}
	s := l.segments[max(0, sort.Search(len(l.segments), func(i int) bool { return l.segments[i].first > c.next })-1)]
	if s == c.in {
		c.limit, c.size = s.next, s.end
		return nil
	}
	if c.pinned {
		l.unpinLocked(c.in)
	}
	s.pins++ // the file of a pinned segment is not recycled
	c.in, c.pinned = nil, false
	limit := s.next
	at, first := s.before(c.next)
	if err := l.openReadLocked(s); err != nil {
		l.unpinLocked(s)
		if s.gone && errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%w: %d", ErrNotFound, c.next)
		}
		return &Error{Op: "open", Path: filepath.Join(l.dir.path, s.name), Durable: l.Durable(), Err: err}
	}
	c.in, c.pinned, c.limit, c.at, c.index = s, true, limit, at, first
	c.fd, c.size, c.secret, c.buf, c.have = s.readFD, s.end, s.secret, c.buf[:0], frame{}
	return nil
}

// openReadLocked opens a pinned segment for readers, and closes the one that was not used for
// longest if many are open.
func (l *Log) openReadLocked(s *segment) error {
	l.uses++
	if s.used = l.uses; s.readFD >= 0 {
		return nil
	}
	if l.reading >= keptFiles {
		var oldest *segment
		for _, o := range l.segments {
			if o.readFD >= 0 && o.pins == 0 && (oldest == nil || o.used < oldest.used) {
				oldest = o
			}
		}
		if oldest != nil {
			l.closeReadLocked(oldest)
		}
	}
	l.background.Add(1)
	l.mu.Unlock()
	fd, _, err := l.dir.open(s.name, os.O_RDONLY, 0)
	l.background.Done()
	l.mu.Lock()
	switch {
	case err != nil:
		return err
	case s.readFD >= 0: // another reader was faster
		_ = l.disk.Close(fd)
	default:
		s.readFD = fd
		l.reading++
	}
	return nil
}

// closeReadLocked closes the descriptor that readers have used, if there is one.
func (l *Log) closeReadLocked(s *segment) {
	if s.readFD >= 0 {
		_ = l.disk.Close(s.readFD) // it was only read
		s.readFD = -1
		l.reading--
	}
}
