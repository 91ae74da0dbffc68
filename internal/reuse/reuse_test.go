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
	if m.Again(2*First) != nil {
		t.Error("there is memory that was not made")
	}
	made := m.Make(2 * First)
	made[0] = 'x'
	again := m.Again(First) // while it is in use, so nothing has collected it
	if len(again) != 2*First || unsafe.SliceData(again) != unsafe.SliceData(made) {
		t.Errorf("%d bytes, and not those of before", len(again))
	}
	if m.Again(2*First+1) != nil {
		t.Error("there is more than was made")
	}
	m.Leave(made)
	runtime.KeepAlive(made)
	made, again = nil, nil
	runtime.GC()
	if m.Again(2*First) != nil {
		t.Error("it was not collected")
	}
}

// TestFirstMemoryIsForAll: one that is left is for whoever comes next.
func TestFirstMemoryIsForAll(t *testing.T) {
	if racetest.Enabled {
		t.Skip("under the race detector a sync.Pool drops some of what it is given")
	}
	var a, b Memory
	a.Leave(a.Make(First))
	if allocated := racetest.Least(0, func() float64 {
		return testing.AllocsPerRun(1000, func() {
			for _, m := range []*Memory{&a, &b} {
				memory := m.Again(First)
				if memory == nil {
					memory = m.Make(First)
				}
				m.Leave(memory)
			}
		})
	}); allocated != 0 {
		t.Errorf("%v allocations, want none", allocated)
	}
}
