package fault

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A DiskOp is one of the calls that a [Disk] takes.
type DiskOp int

// The calls. AnyDiskOp is for a [DiskFault] that hits all of them.
const (
	AnyDiskOp DiskOp = iota - 1
	DiskOpenDir
	DiskOpen
	DiskWrite
	DiskTruncate
	DiskSync
	DiskDatasync
	DiskSyncAll
	DiskClose
	DiskRename
	DiskRemove
	DiskStat
	DiskStatFD
	DiskStatPath
	DiskChmod
	DiskChown
	DiskMkdir
	DiskResolve
	DiskOpenForNames
	DiskReadNames
	DiskLock      // LockShared and Unlock too
	DiskAttribute // all calls of extended attributes
	DiskRead
	diskOps // how many there are
)

var diskOpNames = [diskOps]string{
	"opendir", "open", "write", "truncate", "sync", "datasync", "syncall", "close", "rename", "remove",
	"stat", "statfd", "statpath", "chmod", "chown", "mkdir", "resolve",
	"openfornames", "readnames", "lock", "attribute", "read",
}

// String returns the name of the call.
func (op DiskOp) String() string {
	if op == AnyDiskOp {
		return "any"
	}
	return diskOpNames[op]
}

// DiskOps returns all calls, for tests that let each of them fail.
func DiskOps() []DiskOp {
	var all []DiskOp
	for op := range diskOps {
		all = append(all, op)
	}
	return all
}

// A DiskFault changes what some calls do. A call that it fails has no effect, with
// three exceptions: a Write takes Take bytes, a Sync loses what it covers, and a Close
// closes. As with [Fault], a Write takes nothing unless Take says so.
type DiskFault struct {
	Op DiskOp
	// Path is a glob as in path.Match, of the path that the call names or that its
	// descriptor was opened by; "" is any. One without a slash is of the last element.
	Path  string
	First int           // the first call that it hits among the matching calls since Add, from 1; 0 is 1
	Times int           // how many calls in a row it hits; 0 is all that follow
	Err   error         // the call's error, wrapped in a *DiskError; nil is success
	Take  int           // of a Write: how many bytes it takes at most, or All
	Delay time.Duration // how long the call takes before it has any effect
	Stops bool          // of a sync that it fails: the file system stops, and each later sync there fails too
}

// An armedFault is a fault and how many calls matched it so far.
type armedFault struct {
	DiskFault
	seen int
}

// matches reports whether a fault or a denial for pattern is meant for p.
func matches(pattern, p string) bool {
	if pattern == "" {
		return true
	}
	if !strings.Contains(pattern, "/") {
		p = path.Base(p)
	} else {
		pattern = path.Join("/", pattern)
	}
	ok, err := path.Match(pattern, p)
	return ok && err == nil
}

// hits counts a call that matches, and reports whether the fault changes it.
func (x *armedFault) hits(c DiskCall) bool {
	if x.Op != AnyDiskOp && x.Op != c.Op {
		return false
	}
	if !matches(x.Path, c.Path) && (c.To == "" || !matches(x.Path, c.To)) {
		return false
	}
	x.seen++
	first := max(1, x.First)
	return x.seen >= first && (x.Times == 0 || x.seen < first+x.Times)
}

// A DiskCall is one call as the disk saw it. Paths are absolute.
type DiskCall struct {
	Op         DiskOp
	N          int    // its number within its kind, from 1
	FD         int    // the descriptor that it was given or returned; -1 is none
	Path, To   string // To: of a Rename
	Len        int    // Write: how many bytes it was given
	Bytes      int    // Write: how many it took
	Start, End time.Time
	Err        error
}

// A DiskError is a failed call's error. Each call has a value of its own, so that a test can
// ask whether this very failure was reported.
type DiskError struct {
	Op   DiskOp
	N    int
	Path string
	Err  error
}

func (e *DiskError) Error() string { return fmt.Sprintf("%v %d of %s: %v", e.Op, e.N, e.Path, e.Err) }
func (e *DiskError) Unwrap() error { return e.Err }

// A Disk is file systems in memory, with the calls that they take of a process. It has two levels,
// the kernel (what the calls did) and the disk (what survives: see [Disk.PowerCut]). It fails,
// stalls and fills up where its faults say so.
//
// The working directory is the root. Permissions are kept, with a umask of 022, and
// not judged: use [Disk.Deny]. A descriptor's number is never used again.
//
// Any goroutine may call any method at any time; what a user of files must not do
// is recorded as a violation.
type Disk struct {
	mu          sync.Mutex
	root        *inode
	devices     []*device
	inodes      uint64              // how many were made
	descriptors map[int]*descriptor // all there ever were
	lastFD      int
	limit       int // of descriptors; 0 is none
	promised    int // of descriptors; 0 is none
	reserved    int // descriptors open and being opened
	mostOpen    int
	room        int64
	used        int64  // bytes of all files that have a name or a descriptor
	owner       uint32 // of new files
	foreign     int64  // dirty bytes of other programs; less than 0: not known
	sector      int64
	faults      []*armedFault
	denied      []denial
	started     [diskOps]int
	calls       []DiskCall
	wrong       []string
	watch       func(DiskCall)
	mostFiles   int // of an image: room for those of the next
}

// A denial is an error for all calls that name a path.
type denial struct {
	pattern string
	err     error
}

// NewDisk returns a disk with an empty root directory and unlimited room that has
// these faults.
func NewDisk(faults ...DiskFault) *Disk {
	d := &Disk{descriptors: map[int]*descriptor{}, lastFD: 2, room: Unlimited, sector: 512, owner: user}
	d.root = d.newDeviceLocked()
	d.root.up = d.root
	for _, x := range faults {
		d.Add(x)
	}
	return d
}

// Add adds a fault. The calls it counts are those from now on.
func (d *Disk) Add(x DiskFault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = append(d.faults, &armedFault{DiskFault: x})
}

// Mend takes away all faults and denials. Calls in flight keep theirs.
func (d *Disk) Mend() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults, d.denied = nil, nil
}

// Deny has all calls that name a path, but Stat, StatPath and Resolve, return err if the path
// matches a glob as in [DiskFault]. With nil they work again.
func (d *Disk) Deny(glob string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.denied = slices.DeleteFunc(d.denied, func(x denial) bool { return x.pattern == glob })
	if err != nil {
		d.denied = append(d.denied, denial{glob, err})
	}
}

// Watch has fn called twice for each call. The first time is when the call starts,
// with End zero and before it has any effect. The second is when its effect is there,
// before it returns. The function may call any method of the disk; if it makes calls,
// it is called for these too.
func (d *Disk) Watch(fn func(DiskCall)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.watch = fn
}

// Calls returns the calls that have had their effect, in that order.
func (d *Disk) Calls() []DiskCall {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.calls)
}

// Count returns how many calls of a kind, or AnyDiskOp, were started.
func (d *Disk) Count(op DiskOp) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for o, started := range d.started {
		if op == AnyDiskOp || op == DiskOp(o) {
			n += started
		}
	}
	return n
}

// Violations returns the forbidden calls of the disk's user:
//   - a call on a closed descriptor, or during its Close
//   - a second sync of a descriptor after a failed one
//   - a Write of nothing
//   - two Writes to one file at once, by any descriptors
//   - a change to the bytes of a Write in flight
//   - more descriptors than SetCap allows
func (d *Disk) Violations() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.wrong)
}

func (d *Disk) violationLocked(c DiskCall, format string, args ...any) {
	d.wrong = append(d.wrong, fmt.Sprintf("%v %d of %s: ", c.Op, c.N, c.Path)+fmt.Sprintf(format, args...))
}

// do makes one call: it counts it in, judges it by before, takes the time that its
// faults say, and lets it have its effect. Both are called with the lock. If before
// fails, that is all.
func (d *Disk) do(c *DiskCall, before func() error, effect func(x DiskFault) error) error {
	d.mu.Lock()
	d.started[c.Op]++
	c.N, c.Start = d.started[c.Op], time.Now()
	err := before()
	opens := err == nil && (c.Op == DiskOpen || c.Op == DiskOpenDir || c.Op == DiskOpenForNames)
	if opens {
		err = d.reserveLocked(*c)
		opens = err == nil
	}
	x := d.faultLocked(*c)
	d.unlockAndReport(*c)
	if x.Delay > 0 {
		time.Sleep(x.Delay)
	}
	d.mu.Lock()
	if err == nil {
		err = effect(x)
	}
	if opens && err != nil {
		d.reserved--
	}
	c.Err = wrapDisk(*c, err)
	c.End = time.Now()
	d.calls = append(d.calls, *c)
	d.unlockAndReport(*c)
	return c.Err
}

// reserveLocked counts a descriptor that is about to be opened.
func (d *Disk) reserveLocked(c DiskCall) error {
	if d.limit > 0 && d.reserved >= d.limit {
		return syscall.EMFILE
	}
	d.reserved++
	d.mostOpen = max(d.mostOpen, d.reserved)
	if d.promised > 0 && d.reserved > d.promised {
		d.violationLocked(c, "%d descriptors, of %d", d.reserved, d.promised)
	}
	return nil
}

// unlockAndReport unlocks and then calls the watch function.
func (d *Disk) unlockAndReport(c DiskCall) {
	watch := d.watch
	d.mu.Unlock()
	if watch != nil {
		watch(c)
	}
}

func wrapDisk(c DiskCall, err error) error {
	if err == nil {
		return nil
	}
	return &DiskError{Op: c.Op, N: c.N, Path: c.Path, Err: err}
}

// faultLocked joins the faults that hit a call: delays add up, the first error
// and the smallest take win.
func (d *Disk) faultLocked(c DiskCall) DiskFault {
	sum := DiskFault{Take: All}
	for _, x := range d.faults {
		if !x.hits(c) {
			continue
		}
		sum.Delay += x.Delay
		if sum.Err == nil {
			sum.Err = x.Err
		}
		if x.Take != All && (sum.Take == All || x.Take < sum.Take) {
			sum.Take = x.Take
		}
	}
	return sum
}

// deniedLocked returns the error that one of these paths is denied with.
func (d *Disk) deniedLocked(paths ...string) error {
	for _, x := range d.denied {
		for _, p := range paths {
			if matches(x.pattern, p) {
				return x.err
			}
		}
	}
	return nil
}
