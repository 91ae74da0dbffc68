package holdfast

import (
	"context"
	"fmt"
	"math/bits"
)

// streamMemory is the blocks of memory in which bytes gather, of sizes that are
// powers of two from leastBlock on, and the largest just the policy's Buffer. All
// blocks together, in use or free, never take more than limit.
type streamMemory struct {
	largest int64 // what a stream's bytes may take at most before they are flushed
	limit   int64
	used    int64 // by blocks in use
	spare   int64 // by blocks in free
	free    []*block
	most    int64 // the most that used ever was
}

// leastBlock is small against what a stream takes besides, and holds some lines.
const leastBlock = 512

// A block is memory in which bytes of one stream gather.
type block struct {
	bytes []byte // of a capacity that no append exceeds
	next  *block // in its list of free ones
}

func (m *streamMemory) init(buffer, limit int64) {
	m.limit = limit
	m.largest = min(buffer, limit)
	m.free = make([]*block, m.class(m.largest)+1)
}

// class returns which of the sizes holds n bytes.
func (m *streamMemory) class(n int64) int {
	return bits.Len64(uint64(max(n-1, 0) / leastBlock))
}

func (m *streamMemory) size(class int) int64 {
	return min(leastBlock<<class, m.largest)
}

// takeLocked returns an empty block for n bytes, at most largest, or nil if the
// memory is used up.
func (m *streamMemory) takeLocked(n int64) *block {
	class := m.class(n)
	size := m.size(class)
	b := m.free[class]
	switch {
	case b != nil:
		m.free[class], b.next = b.next, nil
		m.spare -= size
	case m.used+size > m.limit:
		return nil
	default:
		m.trimLocked(m.limit - m.used - size)
		b = &block{bytes: make([]byte, 0, size)}
	}
	m.used += size
	m.most = max(m.most, m.used)
	return b
}

// giveLocked takes a block back.
func (m *streamMemory) giveLocked(b *block) {
	size := int64(cap(b.bytes))
	class := m.class(size)
	b.bytes = b.bytes[:0]
	b.next, m.free[class] = m.free[class], b
	m.used -= size
	m.spare += size
}

// trimLocked lets go of free blocks until they take at most n bytes.
func (m *streamMemory) trimLocked(n int64) {
	for class := range m.free {
		for m.spare > n && m.free[class] != nil {
			m.free[class] = m.free[class].next
			m.spare -= m.size(class)
		}
	}
}

// putLocked copies data into the stream's memory, or returns false if that takes
// more memory than there is.
func (t *streams) putLocked(s *stream, data []byte) bool {
	if s.wait == nil || len(s.wait.bytes)+len(data) > cap(s.wait.bytes) {
		if !t.growLocked(s, len(data)) {
			return false
		}
	}
	s.wait.bytes = append(s.wait.bytes, data...)
	s.accepted += int64(len(data))
	return true
}

// growLocked makes room for n bytes behind those that wait.
func (t *streams) growLocked(s *stream, n int) bool {
	old := s.wait
	if old != nil {
		n += len(old.bytes)
	}
	b := t.memory.takeLocked(int64(n))
	if b == nil {
		return false
	}
	if old != nil {
		b.bytes = append(b.bytes, old.bytes...)
		t.memory.giveLocked(old)
	}
	s.wait = b
	return true
}

// makeRoomLocked does one step towards free memory: it flushes the stream whose
// bytes have waited longest, or waits for a flush under way. If all memory is held
// by streams that can't be flushed it says so, even if others try them again: one of
// them is on its way all the time.
func (t *streams) makeRoomLocked(ctx context.Context) error {
	t.counts.waits++
	if s := t.waiting.idleLocked(); s != nil {
		t.flushBehindLocked(ctx, s) // if it fails, the stream tells it, and is no more among the waiting
		return context.Cause(ctx)
	}
	s := t.stuck.idleLocked()
	if t.hopes > 0 || t.flights > 0 && s == nil {
		return t.awaitLocked(ctx, &t.ended)
	}
	if s == nil {
		return nil
	}
	if err := t.flushBehindLocked(ctx, s); err != nil {
		return fmt.Errorf("the memory of %v is full, and what waits can't be written; see the first: %w", Size(t.memory.limit), err)
	}
	return nil
}
