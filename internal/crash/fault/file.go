// Package fault models the failures and crashes of files. Its [File] lives
// in memory at two levels: the kernel (what Write took) and the disk (what a Sync that
// returned nil covers). It fails, stalls and fills up where its [Fault] values say so.
//
// A [Disk] is whole file systems of such files, with directories and links, and takes
// the system calls of a program that writes many files.
//
// A [Source] is read, and gives less than it is asked for, nothing, or an error.
//
// It knows nothing of its users. It is for tests and for proofs only.
//
// Start with [New], [NewDisk] or [NewSource]. [File.ProcessCrash] and [File.PowerCut], or a Disk's,
// return the state after a crash at this moment. [File.Calls] and [File.Violations] return how it
// was used. Everything is a function of the faults, the calls and the seed of the random source. It
// reads the time with time.Now and waits with time.Sleep, so that under testing/synctest a delay
// costs nothing.
package fault

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// An Op is one of the three calls that a file takes.
type Op int

// The calls.
const (
	Write Op = iota
	Sync
	Close
)

// String returns the name of the call.
func (op Op) String() string { return [...]string{"write", "sync", "close"}[op] }

// All, as the Take of a Fault, lets Write take everything it is given.
const All = -1

// A Fault changes what some calls of one kind do. The zero Fault lets every
// Write take nothing and return 0, nil.
type Fault struct {
	Op    Op
	First int           // the first call that it hits, counted from 1; 0 is 1
	Times int           // how many calls in a row it hits; 0 is all that follow
	Err   error         // the call's error, wrapped in an *Error; nil is success
	Take  int           // of a Write: how many bytes it takes at most, or All
	Delay time.Duration // how long the call takes before it has any effect
	Full  bool          // of a Write: what it takes fills the disk, until SetRoom
}

// hits reports whether the fault changes the nth call of op.
func (x Fault) hits(op Op, n int) bool {
	first := max(1, x.First)
	return x.Op == op && n >= first && (x.Times == 0 || n < first+x.Times)
}

// An Error is a failed call's error. Each call has a value of its own, so that a test can ask
// whether this very failure was reported.
type Error struct {
	Op  Op
	N   int // the number of the call within its kind, from 1
	Err error
}

func (e *Error) Error() string { return fmt.Sprintf("%v %d: %v", e.Op, e.N, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// A Call is one call as the file saw it.
type Call struct {
	Op         Op
	N          int   // its number within its kind, from 1
	From, To   int64 // Write: the bytes it took; Sync: what it made stable, or lost
	Len        int   // Write: how many bytes it was given
	Start, End time.Time
	Err        error
}

// Unlimited is the room of a file that never fills up.
const Unlimited = -1

// span is a range of offsets.
type span struct{ from, to int64 }

// A File is a file in memory. Any goroutine may call any method at any time;
// what a writer of files must not do is recorded as a violation.
type File struct {
	mu       sync.Mutex
	kernel   []byte // all that Write took
	stable   int64  // kernel[:stable] is on the disk, except lost
	lost     []span // bytes that a failed sync dropped: never on the disk
	room     int64
	sector   int64
	faults   []Fault
	started  [3]int
	inFlight [3]int
	calls    []Call
	wrong    []string
	watch    func(Call)
}

// New returns an empty file with unlimited room that has these faults.
func New(faults ...Fault) *File {
	return &File{room: Unlimited, sector: 512, faults: faults}
}

// Add adds a fault. The calls it counts are all calls since New.
func (f *File) Add(x Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, x)
}

// Mend takes away all faults. Calls in flight keep theirs.
func (f *File) Mend() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = nil
}

// SetRoom sets how many bytes the file may hold in all, or Unlimited. A Write
// takes what fits and returns ENOSPC if that is not all.
func (f *File) SetRoom(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.room = n
}

// SetSector sets how many bytes reach the disk as one: 512 unless set.
func (f *File) SetSector(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sector = n
}

// Watch has fn called twice for each call. The first time is when the call starts,
// with End zero and before it has any effect. The second is when its effect is there,
// before it returns. The function may call any method of the file but Write, Sync and
// Close.
func (f *File) Watch(fn func(Call)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watch = fn
}

// Write takes p, or as much as the faults and the room let it.
func (f *File) Write(p []byte) (int, error) {
	given := bytes.Clone(p)
	c, x := f.start(Write, len(p))
	time.Sleep(x.Delay)
	if !bytes.Equal(given, p) {
		f.violation("write %d: its bytes changed while it was in flight", c.N)
	}
	f.finish(&c, func() {
		n := f.fit(len(given), x.Take)
		if x.Full {
			f.room, x.Take = int64(len(f.kernel)+n), All
		}
		c.From = int64(len(f.kernel))
		f.kernel = append(f.kernel, given[:n]...)
		c.To = int64(len(f.kernel))
		if x.Err == nil && n < len(given) && (x.Take == All || n < x.Take) {
			x.Err = syscall.ENOSPC
		}
		c.Err = wrap(c, x.Err)
	})
	return int(c.To - c.From), c.Err
}

// fit returns how many of n bytes are taken.
func (f *File) fit(n, take int) int {
	if take != All {
		n = min(n, take)
	}
	if f.room != Unlimited {
		n = int(min(int64(n), max(0, f.room-int64(len(f.kernel)))))
	}
	return n
}

// Sync moves all that was written before it started to the disk. If it fails,
// just these bytes are lost: the disk never has them, and the next Sync returns
// nil all the same, as kernels do.
func (f *File) Sync() error {
	c, x := f.start(Sync, 0)
	time.Sleep(x.Delay)
	f.finish(&c, func() {
		c.From = min(f.stable, c.To)
		c.Err = wrap(c, x.Err)
		if c.Err != nil && c.From < c.To {
			f.lost = append(f.lost, span{c.From, c.To})
		}
		f.stable = max(f.stable, c.To)
	})
	return c.Err
}

// Close ends the file's use. It neither moves nor loses any byte, also when it
// fails.
func (f *File) Close() error {
	c, x := f.start(Close, 0)
	time.Sleep(x.Delay)
	f.finish(&c, func() { c.Err = wrap(c, x.Err) })
	return c.Err
}

func wrap(c Call, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: c.Op, N: c.N, Err: err}
}

// start counts a call in, judges whether it is allowed, and sums up its faults.
func (f *File) start(op Op, length int) (Call, Fault) {
	f.mu.Lock()
	f.started[op]++
	f.inFlight[op]++
	c := Call{Op: op, N: f.started[op], Len: length, Start: time.Now(), To: int64(len(f.kernel))}
	f.judgeLocked(c)
	x := f.faultLocked(op, c.N)
	watch := f.watch
	f.mu.Unlock()
	if watch != nil {
		watch(c)
	}
	return c, x
}

// faultLocked joins the faults that hit the nth call of op: delays add up, the
// first error and the smallest take win.
func (f *File) faultLocked(op Op, n int) Fault {
	sum := Fault{Take: All}
	for _, x := range f.faults {
		if !x.hits(op, n) {
			continue
		}
		sum.Delay += x.Delay
		sum.Full = sum.Full || x.Full
		if sum.Err == nil {
			sum.Err = x.Err
		}
		if x.Take != All && (sum.Take == All || x.Take < sum.Take) {
			sum.Take = x.Take
		}
	}
	if f.started[Close] > 1 || (op != Close && f.started[Close] > 0) {
		return Fault{Err: os.ErrClosed}
	}
	return sum
}

// judgeLocked records what the writer of a file must not do.
func (f *File) judgeLocked(c Call) {
	switch {
	case c.Op == Close && c.N > 1:
		f.violationLocked("close %d: the file is closed", c.N)
	case c.Op == Close && f.inFlight[Write]+f.inFlight[Sync] > 0:
		f.violationLocked("close with %d writes and %d syncs in flight", f.inFlight[Write], f.inFlight[Sync])
	case c.Op != Close && f.started[Close] > 0:
		f.violationLocked("%v %d: the file is closed", c.Op, c.N)
	case f.inFlight[c.Op] > 1:
		f.violationLocked("%v %d: %d of them at once", c.Op, c.N, f.inFlight[c.Op])
	case c.Op == Write && c.Len == 0:
		f.violationLocked("write %d: of no bytes", c.N)
	case c.Op == Sync && f.failedSyncLocked():
		f.violationLocked("sync %d: after a failed sync", c.N)
	}
}

func (f *File) failedSyncLocked() bool {
	return slices.ContainsFunc(f.calls, func(c Call) bool { return c.Op == Sync && c.Err != nil })
}

// finish lets the call have its effect and counts it out.
func (f *File) finish(c *Call, effect func()) {
	f.mu.Lock()
	effect()
	c.End = time.Now()
	f.calls = append(f.calls, *c)
	watch := f.watch
	f.mu.Unlock()
	if watch != nil {
		watch(*c)
	}
	f.mu.Lock()
	f.inFlight[c.Op]--
	f.mu.Unlock()
}

func (f *File) violation(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.violationLocked(format, args...)
}

func (f *File) violationLocked(format string, args ...any) {
	f.wrong = append(f.wrong, fmt.Sprintf(format, args...))
}

// Violations returns what the file's user did and must not do:
//   - a call after Close or beside Close
//   - two Writes or two Syncs at once
//   - a Write of nothing
//   - a Sync after a failed one
//   - a change to the bytes of a Write in flight
func (f *File) Violations() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.wrong)
}

// Calls returns the calls that have had their effect, in that order.
func (f *File) Calls() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// Count returns how many calls of a kind were started.
func (f *File) Count(op Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.started[op]
}

// Size returns how many bytes Write took so far.
func (f *File) Size() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return int64(len(f.kernel))
}
