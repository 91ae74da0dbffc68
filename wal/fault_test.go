//go:build go1.25

package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// TestFaultMatrix lets each call that a run makes of the disk fail once, or from then on. It
// compares the log afterwards with the acknowledged records.
func TestFaultMatrix(t *testing.T) {
	isolate.Once(t, isolate.Ordinary)
	policies := []holdfast.Policy{holdfast.Durable(), holdfast.Buffered(2 * holdfast.KiB)}
	every := 1
	if testing.Short() || isolate.RaceEnabled {
		every = 17
	}
	for _, p := range policies {
		onSystems(t, p.String(), func(t *testing.T, under func(*fault.Disk) disk) {
			for _, op := range fault.DiskOps() {
				calls := faulty(t, p, under, nil).Count(op)
				for n := 1 + int(op)%every; n <= calls; n += every {
					x := fault.DiskFault{Op: op, First: n, Times: 1, Err: syscall.EIO}
					faulty(t, p, under, &x)
					x.Times = 0
					faulty(t, p, under, &x)
					switch op {
					case fault.DiskDatasync, fault.DiskSync: // a full disk is found as late as here where it copies on write
						faulty(t, p, under, &fault.DiskFault{Op: op, First: n, Times: 1, Err: syscall.ENOSPC})
					case fault.DiskWrite:
						faulty(t, p, under, &fault.DiskFault{Op: op, First: n, Times: 2, Err: syscall.ENOSPC, Take: 13})
						faulty(t, p, under, &fault.DiskFault{Op: op, First: n, Times: 3, Take: 5})
						faulty(t, p, under, &fault.DiskFault{Op: op, First: n, Times: 1, Err: syscall.EINTR})
					}
				}
			}
		})
	}
}

func faulty(t *testing.T, p holdfast.Policy, under func(*fault.Disk) disk, x *fault.DiskFault) *fault.Disk {
	t.Helper()
	m, d := newModel(t), newDisk(t, nil)
	if x != nil {
		d.Add(*x)
	}
	r, n := rand.New(rand.NewPCG(3, 3)), 0
	l, _, err := open(under(d), "/log", Options{Policy: p, SegmentSize: leastSegment})
	if err != nil {
		if x == nil || !errors.Is(err, x.Err) || !strings.Contains(err.Error(), "wal: ") {
			t.Fatalf("%+v: open: %v", x, err)
		}
		if l, _, err = open(newDisk(t, d.PowerCut(r)), "/log", Options{SegmentSize: leastSegment}); err != nil {
			t.Fatalf("%+v: open once more: %v", x, err)
		}
		l.Close()
		return d
	}
	failed := errors.New("no call has failed")
	for i := range 40 {
		before := m.last()
		err := m.step(l, r, &n)
		if err == nil {
			continue
		}
		if x == nil || x.Err != nil && !errors.Is(err, x.Err) || !strings.Contains(err.Error(), "wal: ") {
			t.Fatalf("%+v: step %d: %v", x, i, err)
		}
		failed = err
		if m.before > 0 || m.after != nil || m.reset > 0 {
			break // either is there
		}
		if l.Last() == before { // the batch was not accepted
			first, durable := m.first, m.durable
			m.cutTo(first, before)
			m.durable = durable
		}
		var e *Error
		if errors.As(err, &e) && e.Final {
			if _, again := l.Append([]byte("x")); !errors.Is(again, e) {
				t.Fatalf("%+v: after %v: %v", x, err, again)
			}
			break
		}
	}
	err = l.Close()
	if again := l.Close(); fmt.Sprint(again) != fmt.Sprint(err) {
		t.Fatalf("%+v: Close = %v, and then %v", x, err, again)
	}
	if err != nil && (x == nil || !strings.Contains(err.Error(), "wal: ")) {
		t.Fatalf("%+v: Close = %v", x, err)
	}
	if err == nil && failed.Error() == "no call has failed" && p.Sync.Mode != holdfast.SyncNever {
		m.acknowledged(m.last())
	}
	if v := d.Violations(); len(v) > 0 {
		t.Fatalf("%+v: %v", x, v)
	}
	if d.Open() != 0 {
		t.Fatalf("%+v: %d descriptors are open", x, d.Open())
	}
	for range 3 {
		if err := m.judge(d.PowerCut(r)); err != nil {
			t.Fatalf("%+v, which failed with %v: %v", x, failed, err)
		}
	}
	// Open makes the records that it finds durable, also records that the kernel shows after a sync
	// that has lost them.
	d.Mend()
	l, found, err := open(under(d), "/log", Options{Policy: p, SegmentSize: leastSegment})
	if err != nil {
		t.Fatalf("%+v, which failed with %v: open: %v", x, failed, err)
	}
	defer l.Close()
	got, err := recordsOf(l, found.First)
	if err == nil {
		err = m.judgeRecords(found.First, got)
	}
	m.cutTo(found.First, found.Last)
	if err == nil {
		m.accept([][]byte{[]byte("later")})
		if _, err = l.Append([]byte("later")); err == nil {
			err = l.Wait(background, l.Last())
			m.acknowledged(l.Last())
		}
	}
	for range 3 {
		err = errors.Join(err, m.judge(d.PowerCut(r)))
	}
	if err != nil {
		t.Fatalf("%+v, which failed with %v: opened: %v", x, failed, err)
	}
	return d
}

// TestASpareFileMayHaveASegmentsNameOnTheDisk: the directory's sync failed when a segment became the spare file. The next
// segment must not be written to it.
func TestASpareFileMayHaveASegmentsNameOnTheDisk(t *testing.T) {
	d := newDisk(t, nil)
	fill := func(l *Log, segments int) {
		t.Helper()
		for n := l.head.epoch; l.head.epoch < n+uint64(segments); {
			if _, err := l.Append(make([]byte, 900)); err != nil {
				t.Fatal(err)
			}
		}
	}
	l, _, err := open(d, "/log", small)
	if err != nil {
		t.Fatal(err)
	}
	fill(l, 2)
	l.background.Wait() // a spare file is made
	if err := removeSpare(l); err != nil {
		t.Fatal(err)
	}
	d.Add(fault.DiskFault{Op: fault.DiskSync, Err: syscall.EIO})
	if err := l.TruncateBefore(l.Last()); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	l.Close()
	d.Mend()
	if l, _, err = open(d, "/log", small); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	fill(l, 2)
	for seed := range uint64(40) {
		left := newDisk(t, d.PowerCut(rand.New(rand.NewPCG(seed, 0))))
		again, found, err := open(left, "/log", small)
		if err != nil || found.Last != l.Last() {
			t.Fatalf("%+v, want the last %d: %v", found, l.Last(), err)
		}
		again.Close()
	}
}

// removeSpare has the next segment that leaves the log become the spare file.
func removeSpare(l *Log) error {
	l.spare.Lock()
	defer l.spare.Unlock()
	if err := l.disk.Remove(l.dir.fd, plainName(spareFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return l.dir.sync(l.dir.names.Now())
}

// TestTruncationIsDurableBesideAppendsThatAreNot: another goroutine may write the mark without a sync.
func TestTruncationIsDurableBesideAppendsThatAreNot(t *testing.T) {
	d := newDisk(t, nil)
	l, _, err := open(noDsync{d}, "/log", Options{Policy: holdfast.Unbuffered(), SegmentSize: leastSegment})
	if err != nil {
		t.Fatal(err)
	}
	d.Add(fault.DiskFault{Op: fault.DiskWrite, Take: fault.All, Delay: 100 * time.Microsecond})
	var all sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := l.Append(make([]byte, 700)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	r := rand.New(rand.NewPCG(7, 7))
	for range 60 {
		first := l.Last() + 1
		for l.Last() < first+2 && l.Err() == nil {
			runtime.Gosched()
		}
		if err := l.TruncateBefore(first); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			left, found, err := open(newDisk(t, d.PowerCut(r)), "/log", small)
			if err != nil || found.First != first {
				t.Fatalf("after TruncateBefore(%d) a power cut leaves %+v, %v", first, found, err)
			}
			left.Close()
		}
	}
	close(stop)
	all.Wait()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestALogsDirectoryIsDurable with the first record that is, also where another made it, who died before its name was.
func TestALogsDirectoryIsDurable(t *testing.T) {
	for _, there := range []bool{false, true} {
		d := fault.NewDisk()
		if there {
			if err := d.Mkdir(plainName("/new"), 0o777); err != nil {
				t.Fatal(err)
			}
		}
		l, _, err := open(d, "/new", small)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Append([]byte("kept")); err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(40) {
			if image := d.PowerCut(rand.New(rand.NewPCG(seed, 0))); !bytes.Contains(image.Files["/new/"+segmentName(1)], []byte("kept")) {
				t.Fatalf("was there: %v; a power cut leaves %q in %v", there, image.Files, image.Dirs)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestADiskThatIsFullLosesNothingAndGoesOn fills the disk when a segment is needed, and in the middle of preparing it.
func TestADiskThatIsFullLosesNothingAndGoesOn(t *testing.T) {
	for _, room := range []int64{100, leastSegment - 1} {
		fullDisk(t, room)
	}
}

func fullDisk(t *testing.T, room int64) {
	d := newDisk(t, nil)
	l, _, err := open(d, "/log", Options{Policy: holdfast.Durable(), SegmentSize: leastSegment})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	used := d.Used()
	d.SetRoom(used + room)
	record := bytes.Repeat([]byte("r"), 1000)
	var last uint64
	for err == nil {
		last, err = l.Append(record)
	}
	var e *Error
	if !errors.Is(err, syscall.ENOSPC) || !errors.As(err, &e) || e.Final || last != l.Last() || l.Durable() != last-1 {
		t.Fatalf("Append = %d, %v; last %d, durable %d", last, err, l.Last(), l.Durable())
	}
	if again, err := l.Append(record); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("Append = %d, %v", again, err)
	}
	l.background.Wait()
	if d.Used() != used {
		t.Fatalf("what was prepared takes %d bytes of a full disk", d.Used()-used)
	}
	d.SetRoom(fault.Unlimited)
	if err := l.Wait(background, last); err != nil || l.Durable() < last {
		t.Fatal(err, l.Durable())
	}
	if _, err := l.Append(record); err != nil {
		t.Fatal(err)
	}
	got, err := recordsOf(l, 1)
	if err != nil || uint64(len(got)) != l.Last() {
		t.Fatal(len(got), err)
	}
}

// TestZerosAreLeftOutWhereTheyTakeLonger compares how long the syncs of a segment take with how long
// its zeros took.
func TestZerosAreLeftOutWhereTheyTakeLonger(t *testing.T) {
	check := func(what string, sync time.Duration, allocate error, want bool) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			d := newDisk(t, nil)
			if allocate != nil {
				d.Add(fault.DiskFault{Op: fault.DiskTruncate, Err: allocate})
			}
			d.Add(fault.DiskFault{Op: fault.DiskDatasync, Times: 1, Delay: 8 * time.Second}) // of the first ground
			l, _, err := open(allocating{d}, "/log", Options{Policy: holdfast.Durable(), SegmentSize: 64 * holdfast.KiB})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			d.Mend()
			if allocate != nil {
				d.Add(fault.DiskFault{Op: fault.DiskTruncate, Err: allocate})
			}
			d.Add(fault.DiskFault{Op: fault.DiskWrite, Path: segmentName(1), Take: fault.All, Delay: sync})
			writes := d.Count(fault.DiskWrite)
			const size = 20 << 10
			for range 2 { // the second is beyond the half
				if _, err := l.Append(make([]byte, size)); err != nil {
					t.Fatal(err)
				}
			}
			l.background.Wait()
			is, err := d.Stat(l.dir.fd, plainName(spareFile))
			if got := d.Count(fault.DiskWrite) == writes+2; got != want || err != nil || is.Size != 64<<10 {
				t.Errorf("%s: room alone: %v, want %v; %d bytes, %v", what, got, want, is.Size, err)
			}
		})
	}
	// 40 KiB of zeros take 5 s.
	check("syncs of 7.4 s", 3700*time.Millisecond, nil, true)
	check("syncs of 7.8 s", 3900*time.Millisecond, nil, false)
	check("no such call", time.Second, errors.ErrUnsupported, false)
	check("a full disk", time.Second, syscall.ENOSPC, false)
}

// writingBack is a disk that records where writeback was started.
type writingBack struct {
	allocating
	ends *[]int64
	t    *testing.T
}

func (d writingBack) Writeback(_ int, at, n int64) error {
	from := int64(headerSize)
	if had := len(*d.ends); had > 0 {
		from = (*d.ends)[had-1]
	}
	if at != from || n < 1<<20 {
		d.t.Errorf("writeback of %d bytes at %d, want at least 1 MiB at %d", n, at, from)
	}
	*d.ends = append(*d.ends, at+n)
	return syscall.EIO // the sync says so, if it matters
}

// TestWhereNoAppendWaitsForASyncTheGroundHasNoZeros, and the disk gets a segment's bytes before the sync at its end.
func TestWhereNoAppendWaitsForASyncTheGroundHasNoZeros(t *testing.T) {
	check := func(policy holdfast.Policy, waits bool) {
		t.Helper()
		d, ends := newDisk(t, nil), []int64{}
		l, _, err := open(writingBack{allocating{d}, &ends, t}, "/log", Options{Policy: policy, SegmentSize: 4 * holdfast.MiB})
		if err != nil {
			t.Fatal(err)
		}
		if zeros := d.Count(fault.DiskWrite) > 1; zeros != waits { // one is the header
			t.Errorf("%v: the first segment is %d writes", policy, d.Count(fault.DiskWrite))
		}
		for l.head.epoch == 1 && l.head.end < 3<<20 {
			if _, err := l.Append(make([]byte, 100<<10)); err != nil {
				t.Fatal(err)
			}
		}
		l.background.Wait()
		for _, c := range d.Calls() {
			if c.Op == fault.DiskWrite && path.Base(c.Path) == spareMaking && !waits {
				t.Errorf("%v: zeros were written", policy)
			}
		}
		if n := len(ends); waits != (n == 0) || n > 0 && (ends[n-1] > l.head.end-headerSize || ends[n-1] < l.head.end-2<<20) {
			t.Errorf("%v: of %d bytes writeback began up to %v", policy, l.head.end, ends)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	check(holdfast.Buffered(64*holdfast.KiB), false)
	check(holdfast.Unbuffered(), false)
	check(holdfast.Periodic(time.Hour), false)
	check(holdfast.Durable(), true)
}

// TestZerosAreWrittenAsTheSegmentFills: in steps, each synced, so that no append waits for the sync of all.
// They don't wait for ever, nor where a call needs them, nor for Close.
func TestZerosAreWrittenAsTheSegmentFills(t *testing.T) {
	const size, steps = 4 * groundStep, 4
	check := func(what string, most time.Duration, want int, then func(l *Log) error) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			d := newDisk(t, nil)
			l, _, err := open(d, "/log", Options{Policy: holdfast.Durable(), SegmentSize: size})
			if err != nil {
				t.Fatal(err)
			}
			synced := func() (n int) {
				for _, c := range d.Calls() {
					if c.Op == fault.DiskDatasync && path.Base(c.Path) == spareMaking {
						n++
					}
				}
				return n - steps // without the first segment's
			}
			if n := synced(); n != 0 {
				t.Errorf("the first segment's zeros were synced %d times", n+steps)
			}
			for l.filled.Load() <= size/2 {
				if _, err := l.Append(make([]byte, groundStep/4)); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			if n := synced(); n != 1 {
				t.Errorf("just beyond the half %d steps of zeros were synced, want 1", n)
			}
			start := time.Now()
			if err := then(l); err != nil {
				t.Error(what, err)
			}
			if took := time.Since(start); took > most {
				t.Errorf("%s took %v, want at most %v", what, took, most)
			}
			if n := synced(); n != want && want > 0 {
				t.Errorf("%s: %d steps were synced, want %d", what, n, want)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	check("an append", 0, 1, func(l *Log) error { _, err := l.Append(nil); return err })
	check("appends of a step's share", 0, 2, func(l *Log) error {
		_, err := l.Append(make([]byte, groundStep*3/8))
		synctest.Wait()
		return err
	})
	check("no append", steps*groundPause, steps, func(l *Log) error { l.background.Wait(); return nil })
	check("an append beyond the segment", 0, 0, func(l *Log) error { // the zeros of the next one may have begun
		_, err := l.Append(make([]byte, size/2))
		return err
	})
	check("TruncateAfter", 0, steps, func(l *Log) error { return l.TruncateAfter(1) })
	check("Close", 0, 0, (*Log).Close)
}

// TestASpareFileWhoseSyncFailedIsRemoved: another sync of it could succeed though the kernel has dropped its pages.
func TestASpareFileWhoseSyncFailedIsRemoved(t *testing.T) {
	d := newDisk(t, nil)
	l, _, err := open(d, "/log", small)
	if err != nil {
		t.Fatal(err)
	}
	d.Add(fault.DiskFault{Op: fault.DiskDatasync, Path: spareFile, Err: syscall.EIO, Times: 1})
	for err == nil {
		_, err = l.Append(make([]byte, 3<<10))
	}
	if !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
	_ = l.Close() // it may report that once more
	calls := d.Calls()
	failed := slices.IndexFunc(calls, func(c fault.DiskCall) bool { return c.Op == fault.DiskDatasync && c.Err != nil })
	for _, c := range calls[failed+1:] {
		if c.Op != fault.DiskClose && path.Base(c.Path) == spareFile {
			if c.Op != fault.DiskRemove {
				t.Errorf("after the failed sync there is %v of the spare file", c.Op)
			}
			return
		}
	}
	t.Error("the spare file stays")
}
