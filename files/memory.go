package files

import (
	"math/bits"
)

// streamMemory is the blocks of memory in which bytes gather. Their sizes are powers of
// two from leastBlock on, and the largest is the policy's Buffer. All blocks together, in
// use or free, never take more than limit.
type streamMemory struct {
	largest int64 // the most that a stream's bytes may take before they are flushed
	limit   int64
	used    int64 // by blocks in use
	spare   int64 // by blocks in free
	free    []*block
}

// leastBlock is small against the rest of a stream's memory, and holds some lines.
const leastBlock = 512

// A block is memory in which bytes of one stream gather.
type block struct {
	bytes []byte // of a capacity that no append exceeds
	next  *block // in its list of free ones
}

// buffer is the bytes that are accepted and not in the kernel. A flush moves wait to flight.
type buffer struct {
	wait   *block // the bytes that gather
	flight *block // is being written, or was when a write failed or was given up; belongs to the busy call
	begun  int    // bytes of flight that are written
	before int    // bytes of the flight before: the next wait is made as large at once, and does not grow by copies
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

// putLocked copies data behind the bytes that wait, or returns false if that takes
// more memory than there is.
func (m *streamMemory) putLocked(to *buffer, data []byte) bool {
	if to.wait == nil || len(to.wait.bytes)+len(data) > cap(to.wait.bytes) {
		n, old := len(data), to.wait
		if old != nil {
			n += len(old.bytes)
		}
		b := m.takeLocked(int64(max(n, to.before)))
		if b == nil {
			b = m.takeLocked(int64(n))
		}
		if b == nil {
			return false
		}
		if old != nil {
			b.bytes = append(b.bytes, old.bytes...)
			m.giveLocked(old)
		}
		to.wait = b
	}
	to.wait.bytes = append(to.wait.bytes, data...)
	return true
}
