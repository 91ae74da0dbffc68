package bufpool

import (
	"runtime"
	"testing"
)

func TestSizeIsAPowerOfTwo(t *testing.T) {
	check := func(n, want int) {
		t.Helper()
		if got := Size(n); got != want {
			t.Errorf("Size(%d) = %d, want %d", n, got, want)
		}
	}
	check(0, Least)
	check(1, Least)
	check(Least, Least)
	check(Least+1, 2*Least)
	check(64<<10, 64<<10)
	check(64<<10+1, 128<<10)
}

// TestABlockIsUsedAgain puts blocks and gets them, of sizes that have a pool and of one that has none. Under the race detector
// a pool drops some of its buffers, so the test puts many.
func TestABlockIsUsedAgain(t *testing.T) {
	again := false
	for range 100 {
		Put(make([]byte, 4*Least))
		again = again || len(Get(4*Least)) == 4*Least
	}
	if !again {
		t.Error("of 100 blocks none was used again")
	}
	Put(nil)
	Put(make([]byte, 3*Least))
	for _, size := range []int{3 * Least, 2 * Least} {
		if b := Get(size); b != nil {
			t.Errorf("Get(%d) returned %d bytes, of a size that was never put", size, len(b))
		}
	}
	Put(make([]byte, 8*Least))
	runtime.GC()
	runtime.GC() // a pool keeps what it has for one more
	if Get(8*Least) != nil {
		t.Error("a block is kept from the garbage collector")
	}
}
