// Package bufpool keeps unused blocks of memory for their next use, until the garbage collector
// takes them.
package bufpool

import (
	"math/bits"
	"sync"
	"unsafe"
)

// Least is the size of the smallest block.
const Least = 1024

// blocks holds the blocks of each power of two bytes, by their first byte.
var blocks [bits.UintSize]sync.Pool

// Size returns the size of the smallest block of at least n bytes: a power of two.
func Size(n int) int { return 1 << bits.Len(uint(max(n, Least)-1)) }

// Get returns a block of size bytes that Put kept, or nil: it allocates nothing. The block may hold
// any bytes.
func Get(size int) []byte {
	if size&(size-1) != 0 {
		return nil
	}
	if p, _ := blocks[bits.Len(uint(size))].Get().(*byte); p != nil {
		return unsafe.Slice(p, size)
	}
	return nil
}

// Put keeps an unused block. A block whose size is no power of two is left to the garbage
// collector.
func Put(block []byte) {
	if n := len(block); n >= Least && n&(n-1) == 0 {
		blocks[bits.Len(uint(n))].Put(unsafe.SliceData(block))
	}
}
