package wal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sort"
)

// readChunk is the size of a reader's reads.
const readChunk = 64 << 10

// Read returns the record of an index. Under sync=group and sync=each it returns only durable
// records, so that no reader sees a record that a crash can take back. Otherwise it returns every
// accepted record, and first writes the records in memory to the kernel. For an index that the log
// does not have it returns [ErrNotFound]. The caller owns the slice.
func (l *Log) Read(index uint64) ([]byte, error) {
	for r, err := range l.Records(index) {
		return bytes.Clone(r.Data), err
	}
	return nil, fmt.Errorf("%w: %d", ErrNotFound, index)
}

// Records returns the records from an index on, up to the end of the log when the iterator arrives
// there. See Read for the records that a reader sees. Data is valid until the next step. An error
// is the last step: ErrNotFound if the log begins after from, or if TruncateBefore or TruncateAfter
// removed the next record; a DamageError; ErrClosed. After TruncateAfter has returned, no record
// that it removed is returned. Records that TruncateBefore removes may still be returned.
func (l *Log) Records(from uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		l.mu.Lock()
		var err error
		if !l.opts.Policy.Sync.Waits() && l.final == nil && !l.isClosing {
			err = l.advanceLocked(background, l.last, false)
		}
		l.mu.Unlock()
		if err != nil {
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
	log   *Log
	next  uint64
	epoch uint64   // the epoch of the log's head at the last look: TruncateAfter begins a larger one
	in    *segment // pinned; nil: none yet
	limit uint64   // the index after the last record of in
	cuts  int64    // the log's cuts at the last look
	at    int64    // the offset of a frame, at or before next
	last  int64    // the offset of the frame before it
	window
}

func (l *Log) read(ctx context.Context, follow bool, from uint64, yield func(Record, error) bool) {
	c := &cursor{log: l, next: from, window: window{disk: l.disk, fd: -1, chunk: readChunk}}
	defer c.leave()
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
		end = l.flushed + 1
		if l.opts.Policy.Sync.Waits() {
			end = l.durable.Load() + 1
		}
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

// step returns the frame with the next record.
func (c *cursor) step() (f frame, err error) {
	for c.in == nil || c.next >= c.limit {
		if err := c.enter(); err != nil {
			return f, err
		}
	}
	for {
		f, end, ok, err := c.frame(c.at)
		if err != nil {
			return f, &Error{Op: "read", Path: c.path(), Durable: c.log.Durable(), Err: err}
		}
		if !ok || f.index > c.next {
			return f, &DamageError{c.path(), c.at, c.next, "its checksum is wrong"}
		}
		c.last, c.at = c.at, end
		if f.next() > c.next {
			return f, nil
		}
	}
}

func (c *cursor) path() string { return filepath.Join(c.log.dir.path, c.in.name) }

// enter opens the segment with the next record, or extends the limit of the open one.
func (c *cursor) enter() error {
	l := c.log
	l.mu.Lock()
	if err := c.checkLocked(); err != nil {
		l.mu.Unlock()
		return err
	}
	s := l.segments[max(0, sort.Search(len(l.segments), func(i int) bool { return l.segments[i].first > c.next })-1)]
	if s == c.in {
		c.limit, c.size = s.next, s.end
		l.mu.Unlock()
		return nil
	}
	s.pins++ // the file of a pinned segment is not recycled
	l.background.Add(1)
	limit, size, at := s.next, s.end, s.place(c.next)
	l.mu.Unlock()
	c.leave()
	fd, _, err := l.dir.open(s.name, os.O_RDONLY, 0)
	l.background.Done()
	c.in, c.limit, c.at = s, limit, at
	c.window = window{disk: l.disk, fd: fd, size: size, chunk: readChunk, secret: s.secret}
	if err == nil {
		return nil
	}
	c.fd = -1
	l.mu.Lock()
	gone := s.gone
	l.mu.Unlock()
	if gone && errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: %d", ErrNotFound, c.next)
	}
	return &Error{Op: "open", Path: c.path(), Durable: l.Durable(), Err: err}
}

// leave closes and unpins the cursor's segment.
func (c *cursor) leave() {
	if c.in == nil {
		return
	}
	if c.fd >= 0 {
		_ = c.disk.Close(c.fd) // it was only read
		c.fd = -1
	}
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	c.in.pins--
	c.in = nil
}

// place returns the offset of a frame at or before the one with index.
func (s *segment) place(index uint64) int64 {
	i := sort.Search(len(s.table), func(i int) bool { return s.table[i].index > index })
	if i == 0 {
		return headerSize
	}
	return s.table[i-1].at
}
