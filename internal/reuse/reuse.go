// Package reuse keeps memory for its next use, but not from the garbage collector.
package reuse

import (
	"sync"
	"unsafe"
	"weak"
)

// First is the size of the memory that all Memories share: it comes back to the next that asks.
const First = 1024

var first = sync.Pool{New: func() any { return new([First]byte) }}

// A Memory gives the memory again that it has given last, unless that was collected. Its user
// guards it. The zero Memory has given none.
type Memory struct {
	last weak.Pointer[byte]
	size int
}

// Take returns memory of size bytes, or the last, if that has more. It may hold any bytes.
func (m *Memory) Take(size int) []byte {
	if p := m.last.Value(); p != nil && m.size >= size {
		return unsafe.Slice(p, m.size)
	}
	if size == First {
		return first.Get().(*[First]byte)[:]
	}
	taken := make([]byte, size)
	m.last, m.size = weak.Make(&taken[0]), size
	return taken
}

// Leave ends the use of what Take has returned.
func (m *Memory) Leave(taken []byte) {
	if len(taken) == First {
		first.Put((*[First]byte)(taken))
	}
}
