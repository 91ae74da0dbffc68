package reuse

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/holdfast-go/holdfast/internal/racetest"
)

// TestMemoryIsTheSameUntilItIsCollected takes memory again after it was left.
func TestMemoryIsTheSameUntilItIsCollected(t *testing.T) {
	var m Memory
	taken := m.Take(2 * First)
	taken[0] = 'x'
	at := uintptr(unsafe.Pointer(&taken[0])) // keeps nothing
	again := m.Take(First)                   // while it is in use, so nothing has collected it
	if uintptr(unsafe.Pointer(&again[0])) != at || len(again) != 2*First || again[0] != 'x' {
		t.Errorf("%d bytes, and not those of before", len(again))
	}
	if more := m.Take(3 * First); len(more) != 3*First || more[0] != 0 {
		t.Errorf("%d bytes, want more than before", len(more))
	}
	m.Leave(taken)
	runtime.GC()
	if fresh := m.Take(2 * First); len(fresh) != 2*First || fresh[0] != 0 {
		t.Errorf("%d bytes, of what was collected", len(fresh))
	}
	runtime.KeepAlive(again)
}

// TestFirstMemoryIsForAll: one that is left is for whoever comes next.
func TestFirstMemoryIsForAll(t *testing.T) {
	var a, b Memory
	if allocated := racetest.Least(0, func() float64 {
		return testing.AllocsPerRun(1000, func() {
			for _, m := range []*Memory{&a, &b} {
				taken := m.Take(First)
				if len(taken) != First {
					t.Fatalf("%d bytes", len(taken))
				}
				m.Leave(taken)
			}
		})
	}); allocated != 0 && !racetest.Enabled {
		t.Errorf("%v allocations, want none", allocated)
	}
}
