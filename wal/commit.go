package wal

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/joinwindow"
)

// commit is the state of group commit, as that of a [holdfast.Writer]. One goroutine at a
// time leads: it writes what has been accepted by then, syncs, and wakes the goroutines that
// this covered. Whoever comes meanwhile waits for the next batch. The Log's mu guards it.
type commit struct {
	leading bool
	// batch numbers the one that will cover what is accepted now. The finished ones are
	// counted in done, which is also read without mu. The calls that wait for batch,
	// besides its leader, are counted in joined.
	batch  int64
	done   atomic.Int64
	joined int
	// covered[b&1] wakes the waiters of batch b, and outcome[b&1] is its error: batch b+2
	// starts after b is done. Wait returns without mu: see unlocked.
	covered [2]sync.Cond
	outcome [2]error
	join    joinwindow.Window
}

// unlocked is a lock for a Cond whose Wait gives it up and does not take it again. The waiters of a
// batch are mostly done when they wake: hundreds of them would queue for a lock that they do not need.
type unlocked struct{ *sync.Mutex }

func (unlocked) Lock() {}

// background is the context of calls without one: they wait to the end.
var background = context.Background()

func (c *commit) wakeAll() {
	c.covered[0].Broadcast()
	c.covered[1].Broadcast()
}

// advanceLocked returns when the records up to an index are durable, or with no sync when
// the kernel has them. The call leads or joins a batch.
func (l *Log) advanceLocked(ctx context.Context, index uint64, sync bool) error {
	defer l.mu.Lock()
	return l.advance(ctx, index, sync)
}

// advance is advanceLocked that returns without mu.
func (l *Log) advance(ctx context.Context, index uint64, sync bool) error {
	c := &l.commit
	joined := int64(-1) // the batch that counts us
	locked := true
	defer func() {
		if !locked {
			return
		}
		if joined == c.batch {
			c.joined--
		}
		if !c.leading { // a goroutine that was woken to lead, and need not
			c.covered[c.batch&1].Signal()
		}
		l.mu.Unlock()
	}()
	reached := func() bool { return l.durable.Load() >= index || !sync && l.flushed >= index }
	for !reached() {
		switch {
		case l.final != nil:
			return l.final
		case l.sealed:
			return ErrClosed
		case index > l.last: // TruncateAfter has removed it
			return ErrNotFound
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case c.leading:
		case ctx.Done() == nil:
			if joined == c.batch {
				c.joined--
				joined = -1
			}
			if err := l.leadLocked(sync); err != nil {
				return err
			}
			continue
		default:
			// The end of ctx ends this wait, and not the sync: others wait for it too.
			c.leading = true
			l.background.Go(func() {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.leadLocked(sync) // its batch reports the error
			})
		}
		mine := c.batch
		if joined != mine {
			joined = mine
			c.joined++
			c.join.Arrived(c.joined + 1)
		}
		c.covered[mine&1].Wait()
		if locked = c.done.Load() <= mine || l.durable.Load() < index; !locked {
			return nil // the leader of the batch has woken one to lead the next
		}
		l.mu.Lock()
		if c.done.Load() > mine && !reached() && c.outcome[mine&1] != nil {
			return c.outcome[mine&1]
		}
	}
	return nil
}

// leadLocked moves one batch.
func (l *Log) leadLocked(sync bool) (err error) {
	c := &l.commit
	c.leading = true
	if sync && l.opts.Policy.Sync.Mode == holdfast.SyncGroup && !l.isClosing {
		c.join.Await(&l.mu, func() int { return c.joined + 1 }, l.closing)
	}
	mine, size := c.batch, c.joined+1
	c.batch++
	c.joined = 0
	if l.written == len(l.out) { // else the rest of a failed write goes first
		l.out, l.pending, l.written = l.pending, l.out[:0], 0
		l.flushTimer.Set(false)
		if sync {
			l.syncTimer.Set(false)
			l.age.Turn(int64(l.last))
		}
		l.room.Broadcast()
	}
	defer func() {
		c.leading = false
		c.outcome[mine&1] = err
		c.done.Add(1)
		c.join.Finished(size, c.joined)
		next := &c.covered[c.batch&1]
		// Without the lock: the first to wake may need it while others are woken.
		l.mu.Unlock()
		c.covered[mine&1].Broadcast()
		next.Signal() // to lead: this goroutine may go away
		l.mu.Lock()
		if l.final != nil {
			c.wakeAll()
		}
		l.room.Broadcast()
		l.syncBytesLocked()
	}()
	if l.final != nil {
		return l.final
	}
	low := l.first
	l.mu.Unlock()
	defer l.mu.Lock()
	return l.move(sync, low)
}

// move writes what is in out, and syncs. Only the leader calls it.
func (l *Log) move(sync bool, low uint64) error {
	for l.written < len(l.out) {
		s := l.head
		rest := l.out[l.written:]
		n := fit(rest, int64(s.size)-s.end)
		if n == 0 {
			if err := l.rotate(binary.LittleEndian.Uint64(rest[16:]), low); err != nil {
				return err
			}
			continue
		}
		// What follows in a next segment must find this one durable: see begin.
		if err := l.write(s, rest[:n], sync || n < len(rest)); err != nil {
			return err
		}
	}
	if s := l.head; sync && s.synced < s.end {
		return l.syncSegment(s)
	}
	return nil
}

// fit returns how many bytes of whole frames fit into a room.
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

// write writes whole frames to a segment, if it can durably.
func (l *Log) write(s *segment, frames []byte, durably bool) (err error) {
	next, low, marked := s.next, uint64(0), s.marked
	var begins []position
	for at := 0; at < len(frames); {
		f := frames[at:]
		index, count := binary.LittleEndian.Uint64(f[16:]), binary.LittleEndian.Uint32(f[24:])
		marked = false
		if count == 0 {
			low = binary.LittleEndian.Uint64(f[frameHeader:])
			marked = low <= l.lowWritten
		} else {
			begins = s.note(begins, position{index, s.end + int64(at)})
		}
		next = index + uint64(count)
		at += int(finish(f, l.seed, s.epoch, s.synced))
	}
	did, took := false, time.Duration(0)
	// A sync of these bytes alone would leave earlier ones that are not durable.
	if w, ok := l.disk.(durableWriter); ok && durably && !l.noDsync && s.synced == s.end && !s.partial {
		did, err = l.writeDurably(w, s, frames)
	}
	if !did && err == nil {
		start := time.Now()
		err = l.writeAt(s.fd, frames, s.end)
		took = time.Since(start)
		if s.partial = s.partial || err != nil; err != nil {
			return l.problem("write", s.name, false, err)
		}
	}
	if err != nil {
		return l.problem("sync", s.name, true, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.table = append(s.table, begins...)
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

// writeDurably reports whether the frames are written and durable. If not, and err is nil,
// the system has no such call.
func (l *Log) writeDurably(w durableWriter, s *segment, frames []byte) (did bool, err error) {
	start, at := time.Now(), s.end
	for len(frames) > 0 {
		n, err := w.WriteAtDurably(s.fd, frames, at)
		if errors.Is(err, errors.ErrUnsupported) && at == s.end {
			l.noDsync = true
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
	if err := l.named(s); err != nil {
		return false, err
	}
	l.took(time.Since(start))
	return true, nil
}

// named returns an error if the current segment has lost its name: such a file accepts writes and
// syncs, and no Open finds it.
func (l *Log) named(s *segment) error {
	is, err := l.disk.StatFD(s.fd)
	if err == nil && is.Links == 0 {
		err = holdfast.ErrUnlinked
	}
	return err
}

func (l *Log) took(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.commit.join.Took(d)
	l.counts.Synced(d)
	l.head.took += d
}

// syncSegment makes what was written to the current segment durable.
func (l *Log) syncSegment(s *segment) error {
	start := time.Now()
	err := l.syncFile(s.fd)
	if err == nil {
		err = l.named(s)
	}
	if err != nil {
		return l.problem("sync", s.name, true, err)
	}
	l.took(time.Since(start))
	l.mu.Lock()
	defer l.mu.Unlock()
	s.synced, s.partial = s.end, false
	l.durable.Store(s.next - 1)
	l.unsynced, l.lowDurable = 0, l.lowWritten
	l.age.Durable(int64(s.next - 1))
	l.growLocked()
	return nil
}

// rotate begins a segment, whose first record will be first. Only the leader calls it.
func (l *Log) rotate(first, low uint64) error {
	old := l.head
	if old.synced < old.end {
		if err := l.syncSegment(old); err != nil {
			return err
		}
	}
	s, err := l.begin(first, min(low, first))
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enterLocked(s)
	return nil
}

// enterLocked makes a segment the current one. All of the one before is durable, so a
// failure to close it loses nothing.
func (l *Log) enterLocked(s *segment) {
	if l.head != nil && l.head.fd >= 0 {
		_ = l.disk.Close(l.head.fd)
		l.head.fd = -1
	}
	l.segments, l.head = append(l.segments, s), s
	l.lowWritten, l.lowDurable = max(l.lowWritten, s.low), max(l.lowDurable, s.low)
}

// growLocked wakes the readers that wait for more.
func (l *Log) growLocked() {
	if l.grown != nil {
		close(l.grown)
		l.grown = nil
	}
}

// finish completes a frame of appendFrame, and returns its size.
func finish(b []byte, seed uint32, epoch uint64, durable int64) int64 {
	body := int(binary.LittleEndian.Uint32(b[4:]))
	binary.LittleEndian.PutUint64(b[8:], epoch)
	binary.LittleEndian.PutUint32(b[28:], uint32(durable))
	binary.LittleEndian.PutUint32(b, crc32.Update(seed, castagnoli(), b[4:frameHeader+body]))
	return frameSize(body)
}

// prepareInBackground makes a spare file if there is none. A failure is left to the segment
// that needs it, which tries again.
func (l *Log) prepareInBackground(roomAlone bool) {
	defer l.background.Done()
	l.spare.Lock()
	defer l.spare.Unlock()
	if _, err := l.disk.Stat(l.dir.fd, plainName(spareFile)); errors.Is(err, os.ErrNotExist) {
		_ = l.prepare(roomAlone)
	}
}
