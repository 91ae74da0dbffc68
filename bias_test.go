package holdfast

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// needLoans skips where the lock is never lent.
func needLoans(t *testing.T) {
	t.Helper()
	if stackRegion() == 0 {
		t.Skip("the lock is lent on linux/amd64 alone, and not under the race detector")
	}
	if err := sys.RegisterBarrier(); err != nil {
		t.Skipf("membarrier: %v", err)
	}
}

// guarded is a number behind a lock that is lent as soon as it may be.
type guarded struct {
	mu    biasedLock
	n     int
	lent  int // how often the owner entered
	loans int
}

// add adds 1 as Write does, and asks for a loan now and then.
func (g *guarded) add(i int) {
	alone := g.mu.enter()
	if alone == nil {
		g.mu.Lock()
	}
	g.n++
	switch {
	case alone != nil && i%1000 != 0:
		g.lent++
		alone.leave()
		return
	case alone != nil:
		g.mu.lockFrom(alone)
	}
	if i%100 == 0 {
		g.mu.lendLocked(stackRegion(), true)
		if g.mu.loan.Load() != nil {
			g.loans++
		}
	}
	g.mu.Unlock()
}

// deeper calls f from a larger stack, which moves it.
func deeper(levels int, f func()) {
	var frame [512]byte
	if levels > 0 {
		deeper(levels-1, f)
	} else {
		f()
	}
	runtime.KeepAlive(&frame)
}

// TestLoanKeepsOthersOut has goroutines take the lock and each other's loans in
// turn, with stacks that grow, shrink and are used again: not one addition is
// lost.
func TestLoanKeepsOthersOut(t *testing.T) {
	needLoans(t)
	const goroutines, turns = 8, 200_000
	g := guarded{}
	g.mu.patience = 1
	g.mu.barrier.Store(true)
	var group sync.WaitGroup
	for k := range goroutines {
		group.Go(func() {
			for i := 1; i <= turns; i++ {
				switch {
				case i%(5000+k) == 0:
					deeper(40, func() { g.add(i) })
				case i%20_000 == 0:
					var child sync.WaitGroup // a goroutine on a stack that was used before
					child.Go(func() { g.add(i) })
					child.Wait()
					runtime.GC()
				default:
					g.add(i)
				}
			}
		})
	}
	group.Wait()
	if g.n != goroutines*turns {
		t.Errorf("%d additions, want %d", g.n, goroutines*turns)
	}
}

// TestLoanIsForOneGoroutine lends the lock and looks who gets in.
func TestLoanIsForOneGoroutine(t *testing.T) {
	needLoans(t)
	g := guarded{}
	g.mu.patience = 1
	g.mu.barrier.Store(true)
	for i := range 2000 {
		g.add(i)
	}
	if g.loans == 0 || g.lent == 0 {
		t.Fatalf("%d loans, used %d times, to a goroutine that was alone", g.loans, g.lent)
	}
	var group sync.WaitGroup
	group.Go(func() {
		if g.mu.enter() != nil {
			t.Error("another goroutine entered on the loan")
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.mu.loan.Load() != nil {
			t.Error("another goroutine has the lock and the loan stands")
		}
	})
	group.Wait()
}

// TestOwnerInsideKeepsTheLockFromOthers holds the owner between enter and leave.
func TestOwnerInsideKeepsTheLockFromOthers(t *testing.T) {
	needLoans(t)
	var mu biasedLock
	mu.patience = 1
	mu.barrier.Store(true)
	mu.Lock()
	mu.lendLocked(stackRegion(), true)
	mu.Unlock()
	alone := mu.enter()
	if alone == nil {
		t.Skip("this frame's stack region is not the one that was lent: no loan to test")
	}
	got := make(chan bool)
	go func() {
		mu.Lock()
		got <- true
		mu.Unlock()
	}()
	for range 1000 {
		runtime.Gosched()
		select {
		case <-got:
			t.Fatal("the lock was taken while the owner was inside")
		default:
		}
	}
	alone.leave()
	<-got
}

// TestYoungWriterIsLentTheLock writes no more than some KiB.
func TestYoungWriterIsLentTheLock(t *testing.T) {
	needLoans(t)
	synctest.Test(t, func(t *testing.T) {
		w, err := New(&memory{}, Buffered(64*KiB))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 * tryoutSize / 4 {
			if _, err := w.Write([]byte("four")); err != nil {
				t.Fatal(err)
			}
		}
		if w.mu.loan.Load() == nil {
			t.Errorf("no loan after %d bytes", w.pos)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if w.mu.loan.Load() != nil || w.mu.paused != nil {
			t.Error("a loan after Close")
		}
	})
}

// memory is a file that keeps what it is given.
type memory struct{ bytes.Buffer }

func (m *memory) Sync() error  { return nil }
func (m *memory) Close() error { return nil }

// TestLentWriterKeepsRecordsWholeAndInOrder has one goroutine write all the time,
// so that it is lent the lock, and another take it back by Writes and Stats.
func TestLentWriterKeepsRecordsWholeAndInOrder(t *testing.T) {
	needLoans(t)
	const records, others = 1_000_000, 2_000
	file := &memory{}
	w, err := New(file, Buffered(4*KiB))
	if err != nil {
		t.Fatal(err)
	}
	write := func(who, n uint64) {
		var record [16]byte
		binary.LittleEndian.PutUint64(record[:], who)
		binary.LittleEndian.PutUint64(record[8:], n)
		if _, err := w.Write(record[:]); err != nil {
			t.Error(err)
		}
	}
	done := make(chan struct{})
	loans := 0
	var group sync.WaitGroup
	group.Go(func() {
		defer close(done)
		for n := range uint64(records) {
			write(0, n)
			if w.mu.loan.Load() != nil {
				loans++
			}
		}
	})
	group.Go(func() {
		for n := range uint64(others) {
			write(1, n)
			for range 200 {
				runtime.Gosched()
			}
			w.Stats()
		}
	})
	<-done
	group.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if loans == 0 {
		t.Error("the lock was never lent")
	}
	next := [2]uint64{}
	for b := file.Bytes(); len(b) > 0; b = b[16:] {
		who, n := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		if who > 1 || n != next[who] {
			t.Fatalf("record %d of %d after %d and %d records", n, who, next[0], next[1])
		}
		next[who]++
	}
	if next != [2]uint64{records, others} {
		t.Errorf("%d records in the file", next)
	}
}
