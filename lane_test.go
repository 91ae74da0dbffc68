package holdfast

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// openLane returns a Writer to a file in memory, and a Lane of it. Where owners
// take no lock, this Lane's owner takes none from the second record on.
func openLane(t *testing.T, p Policy) (*Writer, *Lane, *memory) {
	t.Helper()
	file := &memory{}
	w, err := New(file, p)
	if err != nil {
		t.Fatal(err)
	}
	if lanesWantBarrier && sys.RegisterBarrier() == nil {
		w.mu.Lock()
		w.registered = true
		w.barrier.Store(true)
		w.mu.Unlock()
	}
	return w, w.Lane(), file
}

// rounds is how often two goroutines are let loose on each other. With one P each
// round takes some turns of the scheduler, of 10 ms.
func rounds() int {
	if testing.Short() || runtime.GOMAXPROCS(0) == 1 {
		return 200
	}
	return 2_000
}

// spins is for how many turns a goroutine waits for another before it lets others run.
const spins = 4096

// meet lets two goroutines do something at about the same time, one of them a bit
// later than the other.
func meet(one, other func()) {
	var ready atomic.Int32
	run := func(f func()) {
		late := rand.IntN(1000)
		ready.Add(1)
		for turns := 0; ready.Load() < 2; turns++ {
			if turns > spins {
				runtime.Gosched()
			}
		}
		pause(late)
		f()
	}
	var group sync.WaitGroup
	group.Go(func() { run(one) })
	run(other)
	group.Wait()
}

// numbered is what the nth byte of a file is in these tests.
func numbered(n int) byte { return byte(n % 251) }

func checkNumbered(t *testing.T, data []byte, want int) {
	t.Helper()
	if len(data) != want {
		t.Fatalf("the file holds %d bytes, but %d were accepted", len(data), want)
	}
	for i, c := range data {
		if c != numbered(i) {
			t.Fatalf("byte %d of %d is %d, want %d", i, want, c, numbered(i))
		}
	}
}

// writeNumbered gives the lane the next byte, mostly by WriteByte.
func (l *Lane) writeNumbered(n int) error {
	if n%5 == 3 {
		_, err := l.Write([]byte{numbered(n)})
		return err
	}
	return l.WriteByte(numbered(n))
}

// TestCloseBesideALanesOwnerLosesNothing closes while the owner writes: what was
// accepted is in the file, and nothing else.
func TestCloseBesideALanesOwnerLosesNothing(t *testing.T) {
	for range rounds() {
		w, l, file := openLane(t, Buffered(64*KiB))
		accepted := 0
		meet(func() {
			for {
				if err := l.writeNumbered(accepted); err != nil {
					if !errors.Is(err, ErrClosed) {
						t.Error(err)
					}
					return
				}
				accepted++
			}
		}, func() {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		})
		checkNumbered(t, file.Bytes(), accepted)
		if err := l.WriteByte(0); !errors.Is(err, ErrClosed) {
			t.Fatalf("WriteByte after Close = %v", err)
		}
	}
}

// TestNoTickOverlooksALanesOwner has the flush by time come while the owner writes
// some bytes. It finds nothing else to do, so its clock stops. For what is left in
// the lane after that a clock must run.
func TestNoTickOverlooksALanesOwner(t *testing.T) {
	w, l, file := openLane(t, Policy{Buffer: 64 * KiB, FlushEvery: time.Hour, Sync: Sync{Mode: SyncNever}})
	accepted := 0
	write := func() {
		if err := l.writeNumbered(accepted); err != nil {
			t.Error(err)
		}
		accepted++
	}
	for range 10 * rounds() {
		write() // starts the clock
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		meet(func() {
			for range 1 + rand.IntN(3) {
				write()
			}
		}, func() {
			w.flusher.due = true
			w.background.Add(1)
			w.runFlusher()
		})
		if held := l.n.Load() - l.taken; held > 0 && !w.flushTimer.Running() {
			t.Fatalf("%d bytes are in the lane and no clock runs", held)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	checkNumbered(t, file.Bytes(), accepted)
}

// TestFailureReachesTheLanesOwnerAtOnce notes a failure while the owner writes and
// others merge what it wrote. The first byte after that is refused, and no refused
// byte is in the file.
func TestFailureReachesTheLanesOwnerAtOnce(t *testing.T) {
	w, l, file := openLane(t, Buffered(64*KiB))
	accepted := 0
	for round := range rounds() {
		var noted atomic.Bool
		meet(func() {
			for {
				late := noted.Load()
				if err := l.writeNumbered(accepted); err != nil {
					return
				}
				accepted++
				if late {
					t.Fatalf("round %d: a byte was accepted after a failure that no call had reported", round)
				}
			}
		}, func() {
			w.mu.Lock()
			w.noteLocked(&WriteError{Err: syscall.EIO})
			w.mu.Unlock()
			noted.Store(true)
			for range 20 {
				w.tryMerge(l)
			}
		})
		if t.Failed() {
			return
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	checkNumbered(t, file.Bytes(), accepted)
}

// TestFlushCoversWhatALanesOwnerHasSaidIsWritten flushes while the owner writes.
func TestFlushCoversWhatALanesOwnerHasSaidIsWritten(t *testing.T) {
	for _, flush := range []func(w *Writer) error{(*Writer).Flush, (*Writer).Sync} {
		w, l, file := openLane(t, Buffered(64*KiB))
		var accepted atomic.Int64
		done := make(chan struct{})
		var group sync.WaitGroup
		group.Go(func() {
			defer close(done)
			for n := range 500 * rounds() {
				if err := l.writeNumbered(n); err != nil {
					t.Error(err)
				}
				accepted.Store(int64(n + 1))
			}
		})
		for running := true; running; {
			select {
			case <-done:
				running = false
			default:
			}
			said := accepted.Load()
			if err := flush(w); err != nil {
				t.Fatal(err)
			}
			if got := w.Flushed(); got < said {
				t.Fatalf("%d bytes are flushed, %d were accepted before", got, said)
			}
		}
		group.Wait()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		checkNumbered(t, file.Bytes(), int(accepted.Load()))
	}
}

// TestLanesOwnerGoesWithoutTheLock fails where nobody ever takes the fast way.
func TestLanesOwnerGoesWithoutTheLock(t *testing.T) {
	w, l, file := openLane(t, Buffered(64*KiB))
	defer w.Close()
	if err := l.WriteByte(numbered(0)); err != nil {
		t.Fatal(err)
	}
	if lanesWantBarrier && l.byteLimit != l.limit {
		t.Skip("no membarrier: WriteByte brings a fence of its own")
	}
	w.mu.Lock()
	for n := 1; n < 100; n++ {
		if err := l.writeNumbered(n); err != nil { // would wait for ever
			t.Fatal(err)
		}
	}
	w.mu.Unlock()
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	checkNumbered(t, bytes.Clone(file.Bytes()), 100)
}

// TestLaneWithoutAFence has the kernel refuse the barrier.
func TestLaneWithoutAFence(t *testing.T) {
	file := &memory{}
	w, err := New(file, Buffered(64*KiB))
	if err != nil {
		t.Fatal(err)
	}
	w.registered = true // and so is never asked for
	l := w.Lane()
	for n := range 5000 {
		if err := l.writeNumbered(n); err != nil {
			t.Fatal(err)
		}
	}
	if lanesWantBarrier && l.byteLimit == l.limit {
		t.Error("WriteByte leans on a fence that is not there")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	checkNumbered(t, file.Bytes(), 5000)
}

// TestOwnerAndTheEndOfTheLimitSeeEachOther has an owner put one byte at the moment when
// the limit is taken down, again and again. If the limit still stood for the owner, the
// call that revoked it must see the byte. Without the fence the byte may still be on
// its way to the cache.
func TestOwnerAndTheEndOfTheLimitSeeEachOther(t *testing.T) {
	checkLimitAndOwner(t, int64(100*rounds()), func() {})
}

// checkLimitAndOwner calls prepare when it has made each Writer. It makes so many trials, and more
// until the owner once met a limit that stood. On a busy machine each meeting takes long, and it
// gives up after some seconds.
func checkLimitAndOwner(t *testing.T, enough int64, prepare func()) {
	t.Helper()
	if runtime.GOMAXPROCS(0) == 1 {
		t.Skip("the two must run at the same time")
	}
	fenced := false // and so is the second Writer, whether the kernel lets it or not
	for name, put := range map[string]func(l *Lane) error{
		"WriteByte": func(l *Lane) error { return l.WriteByte('x') },
		"Write":     func(l *Lane) error { _, err := l.Write([]byte("x")); return err },
	} {
		// No block fills: a flush in the background would open the limit again.
		w, l, file := openLane(t, Buffered(4*MiB))
		fenced = fenced || w.barrier.Load()
		prepare()
		var arrived atomic.Int64
		together := func(meeting int64) {
			arrived.Add(1)
			for turns := 0; arrived.Load() < 2*meeting; turns++ {
				if turns > spins {
					runtime.Gosched()
				}
			}
		}
		trials, start := int64(math.MaxInt64), time.Now() // the owner sets trials between two meetings
		var seen int32
		late := 0 // by how much the owner comes later than the other; it goes to where they tie
		var group sync.WaitGroup
		group.Go(func() {
			for i := int64(0); i < trials; i++ {
				together(3*i + 1) // the owner's way is open
				w.mu.Lock()
				together(3*i + 2)
				pause(max(0, -late))
				w.openLanesLocked(false, w.trouble)
				seen = l.n.Load()
				w.mu.Unlock()
				together(3*i + 3)
			}
		})
		missed, fast := 0, 0
		for i := int64(0); i < trials; i++ {
			if err := l.openFast(fenced); err != nil {
				t.Fatal(err)
			}
			before := l.n.Load()
			together(3*i + 1)
			together(3*i + 2)
			pause(max(0, late))
			if err := put(l); err != nil {
				t.Fatal(err)
			}
			if i+1 >= enough && fast > 0 || time.Since(start) > 5*time.Second {
				trials = i + 1
			}
			together(3*i + 3)
			if l.n.Load() == before+1 && l.sure == 0 { // settle would have merged it, and begin counts it as sure
				fast++
				late++
				if seen == before {
					missed++
				}
			} else {
				late--
			}
		}
		group.Wait()
		if missed > 0 {
			t.Errorf("%s: %d of %d bytes were accepted by a limit that was taken down, and not seen", name, missed, trials)
		}
		if fast == 0 {
			t.Logf("%s: the owner never met a limit that stood; the machine is too busy", name)
			if err := l.openFast(fenced); err != nil {
				t.Fatal(err)
			}
			before := l.n.Load()
			if err := put(l); err != nil || l.n.Load() != before+1 || l.sure != 0 {
				t.Errorf("%s: alone, the owner meets no limit that stands, %v", name, err)
			}
			trials++
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if file.Len() < int(trials) {
			t.Errorf("%s: the file holds %d bytes of %d", name, file.Len(), trials)
		}
	}
}

// openFast has the lane's next bytes go the fast way, by a limit that the fence is for
// if fenced.
func (l *Lane) openFast(fenced bool) error {
	for open := false; !open || l.n.Load() == 0 || int(l.n.Load()) > l.size-2; open = true {
		if open {
			if err := l.WriteByte('y'); err != nil {
				return err
			}
		}
		l.w.mu.Lock()
		l.w.barrier.Store(fenced)
		l.admittedLocked()
		l.w.openLocked()
		l.sure = 0
		l.w.mu.Unlock()
	}
	return nil
}

// pause passes about so many turns of some cycles, without touching memory.
func pause(turns int) {
	for range turns {
	}
}

// TestAByteThatIsRefusedIsNotMergedBefore: a failure is noted, and others merge, between what
// WriteByte puts and its decision.
func TestAByteThatIsRefusedIsNotMergedBefore(t *testing.T) {
	w, l, file := openLane(t, Buffered(64*KiB))
	if err := l.WriteByte('a'); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	w.noteLocked(&WriteError{Err: syscall.EIO})
	w.mu.Unlock()
	n := l.n.Load()
	l.buf[n] = 'b'
	l.n.Store(n + 1)
	w.tryMerge(l)
	if err := l.writeByteSlow(); !errors.Is(err, syscall.EIO) {
		t.Errorf("WriteByte = %v, want EIO", err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if got := file.String(); got != "a" {
		t.Errorf("the file holds %q, want what was accepted", got)
	}
}
