package probe

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func TestFreshPagesAreFaultsOneByOne(t *testing.T) {
	const pages = 1000
	size := os.Getpagesize()
	memory, err := MapFresh(pages * size)
	if err != nil {
		t.Fatal(err)
	}
	before, err := ProcessUsage()
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(memory); i += size {
		if memory[i] != 0 {
			t.Fatalf("byte %d is %d", i, memory[i])
		}
		memory[i] = 1
	}
	after, err := ProcessUsage()
	if err != nil {
		t.Fatal(err)
	}
	if faults := after.MinorFaults - before.MinorFaults; faults < pages {
		t.Errorf("%d pages were touched with %d faults", pages, faults)
	}
	if err := Unmap(memory); err != nil {
		t.Error(err)
	}
}

func TestBellWakesOnceForEachRing(t *testing.T) {
	there, err := NewBell()
	if err != nil {
		t.Fatal(err)
	}
	back, err := NewBell()
	if err != nil {
		t.Fatal(err)
	}
	const rings = 100
	failed := make(chan error, 1)
	go func() {
		var err error
		for range rings {
			if err = there.Wait(); err != nil {
				break
			}
			if err = back.Ring(); err != nil {
				break
			}
		}
		failed <- err
	}()
	for range rings {
		if err := there.Ring(); err != nil {
			t.Fatal(err)
		}
		if err := back.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-failed; err != nil {
		t.Error(err)
	}
	for _, b := range []*Bell{there, back} {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if b.Ring() == nil || b.Wait() == nil {
			t.Error("a closed bell rings")
		}
	}
}

func TestPinnedThreadMayRunOnOneCPU(t *testing.T) {
	type pinned struct {
		cpus int
		err  error
	}
	found := make(chan pinned)
	go func() {
		runtime.LockOSThread() // and the thread ends with the goroutine
		var p pinned
		if p.err = PinThread(); p.err == nil {
			var may unix.CPUSet
			p.err = unix.SchedGetaffinity(0, &may)
			p.cpus = may.Count()
		}
		found <- p
	}()
	if p := <-found; p.err != nil || p.cpus != 1 {
		t.Errorf("%d CPUs, %v", p.cpus, p.err)
	}
}

// That the calls go to the kernel is checked where they are counted: by a tracer, or
// the study.
func TestEmptyCallsReturn(t *testing.T) {
	for _, calls := range []func(int) error{EmptyCalls, EmptyScheduledCalls} {
		if err := calls(10); err != nil {
			t.Error(err)
		}
	}
}
