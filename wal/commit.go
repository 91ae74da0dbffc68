package wal

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A batch is the common work of its calls (see [commit.Group]). It writes all records accepted
// before it, after the rest of a failed write.
type batch struct {
	sync  bool   // also sync
	cut   func() // a step after the sync, of TruncateAfter or Close; called with the lock
	index uint64 // the last record that the batch writes; 0: not known yet
}

// background is the context of calls without one: they never give up.
var background = context.Background()

// advance returns when the records up to an index are durable, or, without sync, when the kernel
// has them. It is called with the lock and returns without it. The caller may hold each or
// exclusive, for which no leader waits.
func (l *Log) advance(ctx context.Context, index uint64, sync bool) (err error) {
	reached := func() bool { return l.durable.Load() >= index || !sync && l.flushed >= index }
	for err == nil && !reached() {
		switch {
		case l.endedLocked() != nil:
			err = l.endedLocked()
		case index > l.last: // TruncateAfter has removed it
			err = ErrNotFound
		case ctx.Err() != nil:
			err = context.Cause(ctx)
		default:
			if err = l.join(ctx, batch{sync: sync, index: index}); err == nil && l.durable.Load() >= index {
				return nil // without the lock, for which hundreds of calls would queue
			}
			l.mu.Lock()
		}
	}
	defer l.mu.Unlock()
	switch {
	case reached():
		l.noteLocked(err)
		return nil
	case l.final != nil:
		return l.final
	}
	return l.returnedLocked(err)
}

// advanceLocked is advance that returns with the lock.
func (l *Log) advanceLocked(ctx context.Context, index uint64, sync bool) error {
	defer l.mu.Lock()
	return l.advance(ctx, index, sync)
}

// join makes a batch, or waits for the batch at work if that has the wanted record. It is called
// with the lock and returns without it.
func (l *Log) join(ctx context.Context, want batch) error {
	has := func(at *batch) bool { return want.index > 0 && at.index >= want.index && (at.sync || !want.sync) }
	if b := l.group.JoinCurrent(has); b != nil {
		return l.group.Do(ctx, b)
	}
	b := l.group.Join()
	b.Work.sync = b.Work.sync || want.sync
	if want.cut != nil {
		b.Work.cut = want.cut
	}
	if !want.sync || l.opts.Policy.Sync.Mode != holdfast.SyncGroup || l.isClosing {
		l.group.Hurry()
	}
	return l.group.Do(ctx, b)
}

// moveLocked makes a batch for a call that returns the batch's error.
func (l *Log) moveLocked(want batch) error {
	err := l.join(background, want)
	l.mu.Lock()
	return l.returnedLocked(err)
}

// moveInBackgroundLocked makes a batch in a background goroutine: the next call returns its error.
func (l *Log) moveInBackgroundLocked(sync bool) {
	err := l.join(background, batch{sync: sync})
	l.mu.Lock()
	l.noteLocked(err)
}

// endedLocked returns the error that ended all writing, or nil.
func (l *Log) endedLocked() error {
	if l.final == nil && l.sealed {
		return ErrClosed
	}
	return l.final
}

// lead makes a batch. It releases the lock, and waits for nothing except the disk and the spare
// file. After a failed write the kernel's bytes are synced all the same: other calls of the batch
// may need no more, and a sync may be due.
func (l *Log) lead(b *batch) error {
	defer l.settleLocked()
	err := l.endedLocked()
	for rest := true; rest && err == nil; {
		if rest = l.written < len(l.out); !rest { // else the rest of a failed write goes first
			l.takeLocked(b)
		}
		low := l.first
		l.mu.Unlock()
		err = l.writeOut(b.sync && !rest, low)
		l.mu.Lock()
	}
	if s := l.head; b.sync && s.synced < s.end && l.endedLocked() == nil {
		l.mu.Unlock()
		err = cmp.Or(l.syncSegment(s), err)
		l.mu.Lock()
	}
	if err == nil && b.cut != nil {
		b.cut()
	}
	return err
}

// takeLocked moves the pending frames to out, for the leader to write.
func (l *Log) takeLocked(b *batch) {
	b.index = l.last
	l.out, l.pending, l.written = l.pending, l.out[:0], 0
	if cap(l.pending) > max(l.limit, int(l.opts.SegmentSize)) { // of a batch that had a segment of its own
		l.pending = nil
	}
	l.flushTimer.Set(false) // the next record starts it
	if b.sync {
		l.syncTimer.Set(false)
		l.age.Turn(int64(l.last))
	}
	l.room.Broadcast()
}

// writeOut writes the frames in out. Only the leader calls it.
func (l *Log) writeOut(durably bool, low uint64) error {
	for l.written < len(l.out) {
		s := l.head
		rest := l.out[l.written:]
		n := fit(rest, int64(s.size)-s.end)
		if n == 0 {
			if err := l.rotate(rest, low); err != nil {
				return err
			}
			continue
		}
		// Before frames go to the next segment, this one must be durable: see begin.
		if err := l.write(s, rest[:n], durably || n < len(rest)); err != nil {
			return err
		}
	}
	return nil
}

// fit returns the number of bytes in the whole frames that fit into room.
func fit(frames []byte, room int64) (n int) {
	for n < len(frames) {
		size := int(frameSize(int(binary.LittleEndian.Uint32(frames[n+4:]))))
		if int64(n+size) > room {
			break
		}
		n += size
	}
	return n
}

// write writes whole frames to a segment, durably if asked and if the system has a call for it.
func (l *Log) write(s *segment, frames []byte, durably bool) (err error) {
	next, low, marked := s.next, uint64(0), s.marked
	var begins []place
	for at := 0; at < len(frames); {
		f := frames[at:]
		index, count := binary.LittleEndian.Uint64(f[16:]), binary.LittleEndian.Uint32(f[12:])
		marked = false
		if count == 0 {
			low = binary.LittleEndian.Uint64(f[frameHeader:])
			marked = low <= l.lowWritten
		} else {
			begins = l.places.note(s, begins, index, s.end+int64(at))
		}
		next = index + uint64(count)
		at += int(s.finish(f, s.synced))
	}
	did, took := false, time.Duration(0)
	// A durable write covers these bytes only, so earlier bytes must be durable already.
	if w, ok := l.disk.(durableWriter); ok && durably && !l.noDsync && s.synced == s.end {
		did, err = l.writeDurably(w, s, frames)
	}
	if !did && err == nil {
		start := time.Now()
		err = l.writeAt(s.fd, frames, s.end)
		took = time.Since(start)
		if err != nil {
			return l.problem("write", s.name, false, err)
		}
	}
	if err != nil {
		return l.problem("sync", s.name, true, err)
	}
	l.startWriteback(s, s.end+int64(len(frames)))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.places.add(s, begins, l.segments)
	l.lowWritten = max(l.lowWritten, low)
	l.written += len(frames)
	s.end += int64(len(frames))
	if l.filled.Store(s.end); s.end >= l.nextZeros.Load() {
		l.hurryZeros()
	}
	s.next, s.marked = next, marked
	l.flushed = next - 1
	l.unsynced += int64(len(frames))
	l.failing = nil
	l.counts.Flushes++
	if did {
		s.synced = s.end
		l.durable.Store(l.flushed)
		l.unsynced, l.lowDurable = 0, l.lowWritten
		l.age.Durable(int64(l.flushed))
	} else {
		l.counts.Flush.Add(took)
	}
	l.growLocked()
	if s.end > int64(s.size)/2 && !s.prepared && !l.isClosing {
		s.prepared = true
		l.background.Add(1)
		go l.prepareInBackground(l.roomAloneLocked(s))
	}
	return nil
}

// startWriteback starts to write what a sync does not wait for yet, in steps: the sync at the
// segment's end then waits for little. The tail stays: the next frames change its last page.
func (l *Log) startWriteback(s *segment, end int64) {
	const step = 1 << 20
	from := max(s.synced, s.sent)
	if end -= headerSize; end < from+step {
		return
	}
	if d, ok := l.disk.(writebacker); ok {
		_ = d.Writeback(s.fd, from, end-from) // the sync returns the error
	}
	s.sent = end
}

// writeDurably writes the frames and syncs them in one call, and reports whether it did. With
// (false, nil) the system has no such call, or the disk is full.
func (l *Log) writeDurably(w durableWriter, s *segment, frames []byte) (did bool, err error) {
	start, at := time.Now(), s.end
	defer l.watchSync()()
	for len(frames) > 0 {
		n, err := w.WriteAtDurably(s.fd, frames, at)
		if errors.Is(err, errors.ErrUnsupported) && at == s.end {
			l.noDsync = true
			return false, nil
		}
		if isFull(err) && n <= 0 {
			// An overwrite needs disk space where the file system copies on write. All of these bytes
			// are written again, and synced by a call of its own, so it is known which of the two fails.
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if n <= 0 {
			return false, errors.New("the system wrote nothing")
		}
		frames, at = frames[n:], at+int64(n)
	}
	if err := l.checkLinked(s); err != nil {
		return false, err
	}
	l.took(time.Since(start))
	return true, nil
}

// checkLinked returns ErrUnlinked if the segment has lost its name: such a file accepts writes and
// syncs, and no Open finds it. It asks for the name, because some file systems (NFS, FUSE) rename a
// file that is removed while it is open.
func (l *Log) checkLinked(s *segment) error {
	is, err := l.disk.Stat(l.dir.fd, plainName(s.name))
	if errors.Is(err, os.ErrNotExist) || err == nil && is.Inode != s.inode {
		return holdfast.ErrUnlinked
	}
	return err
}

func (l *Log) took(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.group.Took(d)
	l.counts.Synced(d)
	l.head.took += d
}

// syncSegment makes all bytes written to the current segment durable.
func (l *Log) syncSegment(s *segment) error {
	start := time.Now()
	err := l.syncFile(s.fd)
	if err == nil {
		err = l.checkLinked(s)
	}
	if err != nil {
		return l.problem("sync", s.name, true, err)
	}
	l.took(time.Since(start))
	l.mu.Lock()
	defer l.mu.Unlock()
	s.synced = s.end
	l.durable.Store(s.next - 1)
	l.unsynced, l.lowDurable = 0, l.lowWritten
	l.age.Durable(int64(s.next - 1))
	l.growLocked()
	return nil
}

// rotate begins a segment with the record first. Only the leader calls it.
func (l *Log) rotate(frames []byte, low uint64) error {
	old := l.head
	if old.synced < old.end {
		if err := l.syncSegment(old); err != nil {
			return err
		}
	}
	first := binary.LittleEndian.Uint64(frames[16:])
	room := (frameSize(int(binary.LittleEndian.Uint32(frames[4:]))) + headerSize - 1) / headerSize * headerSize
	s, err := l.begin(first, min(low, first), max(int64(l.opts.SegmentSize), headerSize+room))
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enterLocked(s)
	return nil
}

// enterLocked makes a segment the current one. The one before is durable as a whole, so a failure
// to close it loses nothing.
func (l *Log) enterLocked(s *segment) {
	if l.head != nil && l.head.fd >= 0 {
		_ = l.disk.Close(l.head.fd)
		l.head.fd = -1
	}
	l.segments, l.head = append(l.segments, s), s
	l.lowWritten, l.lowDurable = max(l.lowWritten, s.low), max(l.lowDurable, s.low)
}

// growLocked wakes the readers that wait for new records.
func (l *Log) growLocked() {
	if l.grown != nil {
		close(l.grown)
		l.grown = nil
	}
}

// prepareInBackground makes a spare file if there is none. It drops a failure: the segment that
// needs the file tries again.
func (l *Log) prepareInBackground(roomAlone bool) {
	defer l.background.Done()
	l.spare.Lock()
	defer l.spare.Unlock()
	if _, err := l.disk.Stat(l.dir.fd, plainName(spareFile)); errors.Is(err, os.ErrNotExist) {
		_ = l.prepare(int64(l.opts.SegmentSize), roomAlone)
	}
}
