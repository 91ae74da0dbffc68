package wal

import (
	"cmp"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
)

// TruncateBefore removes the records before an index, which becomes the first. On nil the removal
// is durable, under every policy. Whole segments are recycled; other records keep their disk space
// until then. An index beyond Last+1 leaves the log empty, and the next record has that index; no
// index is above math.MaxInt64.
//
// After an error or a crash during the call, the next Open finds all of these records, none, or the
// ones from the start of a segment on.
func (l *Log) TruncateBefore(index uint64) error {
	if index > mostIndex+1 {
		return fmt.Errorf("wal: truncate before %d; the largest index is %d", index, uint64(mostIndex))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refusalLocked(); err != nil {
		return err
	}
	if index > l.last+1 {
		if err := l.aloneLocked(); err != nil {
			return err
		}
		defer l.othersLocked()
		return l.cutLocked(max(index, l.last+1), max(index, l.last+1))
	}
	for l.exclusive {
		l.room.Wait()
	}
	if index = min(index, l.last+1); index > l.first { // a TruncateAfter may have come first
		l.first = index
		l.pending = appendFrame(l.pending, l.last+1, nil, index)
	}
	// The mark must be durable before files are removed: a crash may bring back any of the files.
	for l.lowDurable < min(index, l.first) { // a TruncateAfter may have begun the log again
		switch {
		case l.final != nil:
			return l.final
		case l.sealed:
			return ErrClosed
		case l.exclusive:
			l.room.Wait()
		case l.written == len(l.out) && len(l.pending) == 0 && l.lowWritten < index:
			l.pending = appendFrame(l.pending, l.last+1, nil, l.first)
		default:
			if err := l.moveLocked(batch{sync: true}); err != nil {
				return err
			}
		}
	}
	if l.sealed {
		return ErrClosed
	}
	gone := l.forgetLocked(0)
	l.background.Add(1)
	l.mu.Unlock()
	defer l.mu.Lock()
	defer l.background.Done()
	return l.drop(gone)
}

// FirstWithin returns the index from which the log is within a size and an age. The size is the sum
// of its segments, without the spare file. A segment is within the age if one of its records is
// younger. A bound of 0 or less is none. FirstWithin removes nothing: give TruncateBefore this
// index, or a smaller one if records are still needed.
//
// It counts whole segments, and never drops the one that the log appends to. The age of a segment
// counts from the beginning of the next one: by a monotonic clock since Open, before that by the
// system's clock.
func (l *Log) FirstWithin(size holdfast.Size, age time.Duration) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := int64(0)
	for _, s := range l.segments {
		kept += int64(s.size)
	}
	first := l.first
	for i, s := range l.segments[:len(l.segments)-1] {
		next := l.segments[i+1]
		old := age > 0 && !next.begun.IsZero() && time.Since(next.begun) > age
		if !old && (size <= 0 || kept <= int64(size)) {
			break
		}
		kept -= int64(s.size)
		first = next.first
	}
	return first
}

// TruncateAfter removes the records after an index, which becomes the last: First-1 empties the
// log. An empty log takes any smaller index too, and the next record follows it. On nil the removal
// is durable, under every policy; records accepted before the call are written first. The removed
// indices are used again. On an error, Last tells whether the records were removed: they are, if
// only the removal of old files failed. After a Final error only the next Open tells.
func (l *Log) TruncateAfter(index uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.aloneLocked(); err != nil {
		return err
	}
	defer l.othersLocked()
	if index == l.last { // nothing to remove; the last record becomes durable as after a cut
		return l.advanceLocked(background, index, true)
	}
	if l.first > l.last && index < l.last { // the log is empty
		return l.cutLocked(index+1, index+1)
	}
	if index > l.last || index+1 < l.first {
		return fmt.Errorf("%w: truncate after %d, of %d to %d", ErrNotFound, index, l.first, l.last)
	}
	return l.cutLocked(index+1, l.first)
}

// aloneLocked waits until no other call truncates. Then no record is accepted until othersLocked.
func (l *Log) aloneLocked() error {
	for l.exclusive {
		l.room.Wait()
	}
	if err := l.refusalLocked(); err != nil {
		return err
	}
	l.exclusive = true
	return nil
}

func (l *Log) othersLocked() {
	l.exclusive = false
	l.room.Broadcast()
}

// cutLocked makes next the log's next index and low the least index of its records. It does so by a
// new segment: the earlier segments end where the new one begins.
func (l *Log) cutLocked(next, low uint64) error {
	var gone []*segment
	var failed error // only the cut failed: the other calls of the batch succeed
	err := l.moveLocked(batch{sync: true, cut: func() {
		l.mu.Unlock()
		s, err := l.begin(next, low, int64(l.opts.SegmentSize))
		l.mu.Lock()
		if failed = err; err != nil {
			return
		}
		l.first = s.low
		l.cuts.Add(1)
		l.last, l.flushed = next-1, next-1
		l.durable.Store(next - 1)
		l.enterLocked(s)
		l.lowWritten, l.lowDurable = s.low, s.low // s.low may be smaller
		gone = l.forgetLocked(next)
		l.growLocked()
	}})
	if err = cmp.Or(err, failed); err != nil {
		return err
	}
	l.mu.Unlock()
	defer l.mu.Lock()
	return l.drop(gone)
}

// forgetLocked removes segments without a live record from the log's list: the ones before first,
// and with cut also the ones after it, except the head.
func (l *Log) forgetLocked(cut uint64) (gone []*segment) {
	var kept []*segment
	for i, s := range l.segments {
		live := s == l.head || l.segments[i+1].first > l.first
		if cut > 0 && s != l.head {
			live = s.first < cut && cut > l.first && live
			s.next = min(s.next, cut)
		}
		if live {
			kept = append(kept, s)
		} else {
			s.gone = true
			l.places.count -= len(s.places)
			gone = append(gone, s)
		}
	}
	l.segments = kept
	return gone
}
