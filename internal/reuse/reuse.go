// Package reuse keeps memory for its next use, but not from the garbage collector.
package reuse

import (
	"sync"
	"unsafe"
	"weak"
)

// First is the size of the memory that all Memories share: it comes back to the next that asks.
const First = 1024

var first sync.Pool // of *[First]byte

// A Memory gives the memory again that it has made last, unless that was collected. Its user
// guards it. The zero Memory has made none.
type Memory struct {
	last weak.Pointer[byte]
	size int
}

// Again returns memory of size bytes that was left, or the last that Make has made, if that has as
// many. It may hold any bytes. It is nil if there is none: Again allocates nothing.
func (m *Memory) Again(size int) []byte {
	if p := m.last.Value(); p != nil && m.size >= size {
		return unsafe.Slice(p, m.size)
	}
	if size == First {
		if p, _ := first.Get().(*[First]byte); p != nil {
			return p[:]
		}
	}
	return nil
}

// Make makes memory of size bytes.
func (m *Memory) Make(size int) []byte {
	made := make([]byte, size)
	if size != First {
		m.last, m.size = weak.Make(&made[0]), size
	}
	return made
}

// Leave ends the use of what these have returned.
func (m *Memory) Leave(memory []byte) {
	if len(memory) == First {
		first.Put((*[First]byte)(memory))
	}
}
