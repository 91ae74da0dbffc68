//go:build go1.25

package wal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

var small = Options{Policy: holdfast.Durable(), SegmentSize: leastSegment}

func mustOpen(t testing.TB, dir string, o Options) (*Log, Recovery) {
	t.Helper()
	l, found, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, found
}

// TestRecordsAreThereAgain appends by many goroutines over many segments of a real file
// system, under each policy.
func TestRecordsAreThereAgain(t *testing.T) {
	for _, p := range append(testPolicies, holdfast.Policy{Buffer: 4096, FlushEvery: time.Millisecond, Sync: holdfast.SyncEvery(time.Millisecond)}) {
		t.Run(p.String(), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "new")
			l, found := mustOpen(t, dir, Options{Policy: p, SegmentSize: leastSegment})
			if found.First != 1 || found.Last != 0 || found.Records != 0 {
				t.Fatalf("%+v", found)
			}
			const writers, each = 8, 12
			var all sync.WaitGroup
			byIndex := make([]string, writers*each+1)
			for w := range writers {
				all.Go(func() {
					for i := range each {
						record := fmt.Sprintf("%d.%d.%s", w, i, strings.Repeat("x", 37*i))
						last, err := l.Append([]byte(record))
						if err != nil || last == 0 || last >= uint64(len(byIndex)) {
							t.Errorf("Append = %d, %v", last, err)
							return
						}
						byIndex[last] = record
						if p.Sync.Waits() && l.Durable() < last {
							t.Errorf("%d is not durable", last)
						}
						if got, err := l.Read(last); err != nil || string(got) != record {
							t.Errorf("Read(%d) = %.20q, %v", last, got, err)
						}
					}
				})
			}
			all.Wait()
			if err := l.Close(); err != nil || t.Failed() {
				t.Fatal(err)
			}
			l, found = mustOpen(t, dir, Options{Policy: p, SegmentSize: leastSegment})
			if found.Records != writers*each || found.Last != writers*each || found.Torn != 0 || found.Segments < 3 || l.Durable() != l.Last() {
				t.Fatalf("%+v", found)
			}
			got, err := recordsOf(l, 1)
			if err != nil || len(got) != writers*each {
				t.Fatal(len(got), err)
			}
			seen := map[string]int{}
			for i, r := range got {
				if string(r) != byIndex[i+1] {
					t.Fatalf("record %d is %.20q, not %.20q", i+1, r, byIndex[i+1])
				}
				w, n := 0, 0
				fmt.Sscanf(string(r), "%d.%d", &w, &n)
				if seen[fmt.Sprint(w)] != n {
					t.Fatalf("record %d of writer %d comes after %d others", n, w, seen[fmt.Sprint(w)])
				}
				seen[fmt.Sprint(w)]++
			}
		})
	}
}

func TestALogIsOpenedOnce(t *testing.T) {
	dir := t.TempDir()
	l, _ := mustOpen(t, dir, small)
	if _, _, err := Open(dir, small); !errors.Is(err, ErrLocked) {
		t.Errorf("a second Open: %v", err)
	}
	if _, err := Scan(dir, nil); !errors.Is(err, ErrLocked) {
		t.Errorf("Scan beside it: %v", err)
	}
	if runtime.GOOS == "windows" { // no directory can be locked
		return
	}
	if err := os.Remove(filepath.Join(dir, lockFile)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(dir, small); !errors.Is(err, ErrLocked) {
		t.Errorf("a second Open, without the file of the lock: %v", err)
	}
	if _, err := Scan(dir, nil); !errors.Is(err, ErrLocked) {
		t.Errorf("Scan beside it, without the file of the lock: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Scan(dir, func(Record, *DamageError) bool { return true }); err != nil {
		t.Error(err)
	}
	mustOpen(t, dir, small)
}

func TestRefusals(t *testing.T) {
	check := func(want string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	dir := t.TempDir()
	open := func(o Options) error {
		l, _, err := Open(dir, o)
		if err == nil {
			l.Close()
		}
		return err
	}
	check("a segment of 9KiB; use a multiple of 4KiB", open(Options{SegmentSize: 9 << 10}))
	check("a segment of 4KiB", open(Options{SegmentSize: 4 << 10}))
	check("a segment of 1GiB", open(Options{SegmentSize: 1 << 30}))
	check("sync", open(Options{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: 99}}}))
	_, _, err := Open(filepath.Join(dir, "a", "b"), small)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("below a directory that is missing: %v", err)
	}
	_, _, err = Open("", small)
	check("no name", err)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err = Open(file, small)
	check(file, err)

	l, _ := mustOpen(t, filepath.Join(dir, "log"), small)
	_, err = l.Append()
	check("no record", err)
	_, err = l.Append(slices.Repeat([][]byte{make([]byte, 64<<20)}, 16)...)
	check("16 records take 1073741920 bytes, and the largest segment has room for 1073737728; use smaller batches", err)
	if _, err = l.Append(make([]byte, leastSegment-headerSize-36)); err != nil {
		t.Error(err)
	}
	check("wait for 2, and the last is 1", l.Wait(context.Background(), 2))
	check("truncate after 2", l.TruncateAfter(2))
	_, err = l.Append([]byte("second"))
	if err := errors.Join(err, l.TruncateBefore(2)); err != nil {
		t.Error(err)
	}
	check("truncate after 0", l.TruncateAfter(0))
	if err := l.TruncateAfter(1); err != nil {
		t.Error(err)
	}
	_, err = l.Read(1)
	check("does not have this index: 1", err)
	_, err = l.Read(2)
	check("does not have this index: 2", err)
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Error(err)
	}
	_, err = l.Append([]byte("late"))
	for _, err := range []error{err, l.TruncateAfter(0), l.TruncateBefore(9), l.Wait(context.Background(), 0), l.Wait(context.Background(), 9)} {
		if err != nil && !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	}
	if _, err = l.Read(1); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// TestGroupCommitSharesSyncs lets a sync take its time.
func TestGroupCommitSharesSyncs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(t, nil)
		l, _, err := open(noDsync{d}, "/log", Options{Policy: holdfast.Durable(), SegmentSize: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		d.Add(fault.DiskFault{Op: fault.DiskDatasync, Delay: time.Millisecond})
		before := d.Count(fault.DiskDatasync)
		const writers, each = 32, 10
		var all sync.WaitGroup
		for range writers {
			all.Go(func() {
				for range each {
					if _, err := l.Append([]byte("record")); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if n := d.Count(fault.DiskDatasync) - before; n > 2*each || n < each {
			t.Errorf("%d syncs for %d records", n, writers*each)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestSyncsByTimeAndFlushesAreInTime waits in fake time.
func TestSyncsByTimeAndFlushesAreInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(t, nil)
		p := holdfast.Policy{Buffer: 4096, FlushEvery: 10 * time.Millisecond, Sync: holdfast.SyncEvery(time.Second)}
		l, _, err := open(d, "/log", Options{Policy: p, SegmentSize: leastSegment})
		if err != nil {
			t.Fatal(err)
		}
		last, err := l.Append([]byte("a"))
		if err != nil || l.Durable() != 0 {
			t.Fatal(err)
		}
		flushed := func() uint64 {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.flushed
		}
		time.Sleep(9 * time.Millisecond)
		if synctest.Wait(); flushed() != 0 {
			t.Error("flushed too early")
		}
		time.Sleep(time.Millisecond)
		if synctest.Wait(); flushed() != last || l.Durable() != 0 {
			t.Errorf("flushed %d, durable %d", flushed(), l.Durable())
		}
		time.Sleep(990 * time.Millisecond)
		if synctest.Wait(); l.Durable() != last {
			t.Errorf("durable %d", l.Durable())
		}
		// The next call reports a failure in the background.
		d.Add(fault.DiskFault{Op: fault.DiskWrite, Times: 1, Err: os.ErrPermission})
		if _, err := l.Append([]byte("b")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Millisecond)
		synctest.Wait()
		if n, err := l.Append([]byte("c")); n != 0 || !errors.Is(err, os.ErrPermission) {
			t.Errorf("Append = %d, %v", n, err)
		}
		if n, err := l.Append([]byte("c")); n != 3 || err != nil {
			t.Errorf("Append = %d, %v", n, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if _, found, err := open(d, "/log", small); err != nil || found.Records != 3 {
			t.Errorf("%+v, %v", found, err)
		}
	})
}

// A watched disk is looked at in each sync.
type watched struct {
	noDsync
	look func()
}

func (d *watched) Datasync(fd int) error {
	if d.look != nil {
		d.look()
	}
	return d.noDsync.Datasync(fd)
}

// TestEachAppendHasItsOwnSync under sync=each: while one is made, no other record is accepted.
func TestEachAppendHasItsOwnSync(t *testing.T) {
	d := &watched{noDsync: noDsync{newDisk(t, nil)}}
	l, _, err := open(d, "/log", Options{Policy: holdfast.EachDurable(), SegmentSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	var most atomic.Uint64
	d.look = func() {
		for range 100 {
			runtime.Gosched()
			most.Store(max(most.Load(), l.Last()-l.Durable()))
		}
	}
	const writers = 8
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			if _, err := l.Append([]byte("record")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if l.Durable() != writers || most.Load() != 1 {
		t.Errorf("%d of %d records are durable, one sync covered up to %d", l.Durable(), writers, most.Load())
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestWhatIsDueIsTriedAgain until it works, though no call is made any more.
func TestWhatIsDueIsTriedAgain(t *testing.T) {
	for _, p := range []holdfast.Policy{{Buffer: 4096, FlushEvery: 10 * time.Millisecond}, {Buffer: 4096, Sync: holdfast.SyncEvery(10 * time.Millisecond)}} {
		synctest.Test(t, func(t *testing.T) {
			d := newDisk(t, nil)
			l, _, err := open(noDsync{d}, "/log", Options{Policy: p, SegmentSize: leastSegment})
			if err != nil {
				t.Fatal(err)
			}
			d.Add(fault.DiskFault{Op: fault.DiskWrite, Times: 3, Err: syscall.ENOSPC})
			if _, err := l.Append([]byte("a")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(35 * time.Millisecond)
			if synctest.Wait(); l.Stats().NotFlushed == 0 {
				t.Errorf("%v: the test proves nothing: the disk is not full", p)
			}
			time.Sleep(10 * time.Millisecond)
			if synctest.Wait(); l.Stats().NotFlushed != 0 || l.Err() != nil {
				t.Errorf("%v: %+v, %v", p, l.Stats(), l.Err())
			}
			if err := l.Close(); !errors.Is(err, syscall.ENOSPC) { // no call has returned it
				t.Errorf("%v: Close = %v", p, err)
			}
		})
	}
}

func TestAFlushByBytesStartsAtTheirNumber(t *testing.T) {
	d := newDisk(t, nil)
	l, _, err := open(d, "/log", Options{Policy: holdfast.Policy{Buffer: 64 * holdfast.KiB, FlushBytes: holdfast.KiB}, SegmentSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for n := range 2 {
		if s := l.Stats(); s.Flushes != 0 {
			t.Errorf("%d records of 512 bytes: %+v", n, s)
		}
		if _, err := l.Append(make([]byte, 512-frameHeader-4)); err != nil {
			t.Fatal(err)
		}
	}
	if s := l.Stats(); s.Flushes != 1 || s.NotFlushed != 0 {
		t.Errorf("%+v", s)
	}
}

// TestASyncByBytesIsNotTheLast: the next one begins with the next bytes.
func TestASyncByBytesIsNotTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncPeriodic, Bytes: 4 * holdfast.KiB}}
		l, _, err := open(newDisk(t, nil), "/log", Options{Policy: p, SegmentSize: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		for n := range 30 { // eight of them are just as many bytes
			if _, err := l.Append(make([]byte, 512-frameHeader-4)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if s := l.Stats(); s.NotDurable >= int64(p.Sync.Bytes) {
				t.Fatalf("after %d records: %+v", n+1, s)
			}
		}
	})
}

// A generous disk permits all users to use every file, whatever is asked for.
type generous struct{ *fault.Disk }

func (d generous) StatFD(fd int) (sys.Stat, error) {
	is, err := d.Disk.StatFD(fd)
	is.Mode |= 0o777
	return is, err
}

func TestALogGoesOnWhereTheDiskDecidesWhoMayUseIt(t *testing.T) {
	l, _, err := open(generous{newDisk(t, nil)}, "/log", small)
	if err != nil {
		t.Fatal(err)
	}
	for range 6 { // three segments
		if _, err := l.Append(make([]byte, 3<<10)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// A lockless disk answers so when its directories, or its files, are locked; nil: it locks them.
type lockless struct {
	*fault.Disk
	dirs, files error
}

func (d lockless) Lock(fd int) error {
	answer := d.dirs
	if is, err := d.StatFD(fd); err == nil && is.Mode&vfs.KindMask == vfs.KindRegular {
		answer = d.files
	}
	if answer != nil {
		return answer
	}
	return d.Disk.Lock(fd)
}

// TestALogNeedsALockUnlessTheSystemHasNone: NFS and others lock no directory.
func TestALogNeedsALockUnlessTheSystemHasNone(t *testing.T) {
	check := func(dirs, files error, opens bool) {
		t.Helper()
		l, _, err := open(lockless{newDisk(t, nil), dirs, files}, "/log", small)
		if (err == nil) != opens {
			t.Errorf("directories %v, files %v: %v", dirs, files, err)
		}
		if err == nil {
			l.Close()
		}
	}
	check(nil, nil, true)
	check(syscall.EBADF, nil, true)
	check(syscall.EINVAL, nil, true)
	check(errors.ErrUnsupported, errors.ErrUnsupported, true)
	check(syscall.ENOLCK, nil, false)
	check(nil, syscall.EBADF, false)
	check(nil, syscall.EINVAL, false)
	check(syscall.EAGAIN, nil, false)
}

func TestScansRunBesideEachOther(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	l, _ := mustOpen(t, dir, small)
	if _, err := l.Append([]byte("a")); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	all := 0
	_, err := Scan(dir, func(Record, *DamageError) bool {
		_, err := Scan(dir, func(Record, *DamageError) bool {
			all++
			return true
		})
		if err != nil {
			t.Error(err)
		}
		return true
	})
	if err != nil || all != 1 {
		t.Errorf("%d records, %v", all, err)
	}
}

// TestWaitEndsWithItsContext, and the sync that it has begun goes on.
func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(t, nil)
		l, _, err := open(noDsync{d}, "/log", small)
		if err != nil {
			t.Fatal(err)
		}
		d.Add(fault.DiskFault{Op: fault.DiskDatasync, Delay: time.Second})
		last, err := l.Enqueue([]byte("a"), []byte("b"))
		if err != nil || last != 2 || l.Durable() != 0 {
			t.Fatal(last, err)
		}
		ended := errors.New("that is all")
		ctx, cancel := context.WithTimeoutCause(context.Background(), time.Millisecond, ended)
		defer cancel()
		start := time.Now()
		if err := l.Wait(ctx, last); !errors.Is(err, ended) || time.Since(start) != time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if err := l.Wait(context.Background(), last); err != nil || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestFollowWaitsForWhatComes over segments, and until each of its ends.
func TestFollowWaitsForWhatComes(t *testing.T) {
	l, _ := mustOpen(t, t.TempDir(), small)
	const records = 40
	ended := errors.New("that is all")
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	var all sync.WaitGroup
	follow := func(ctx context.Context, want error) {
		all.Go(func() {
			next := uint64(1)
			for r, err := range l.Follow(ctx, 1) {
				if err != nil {
					if !errors.Is(err, want) || next != records+1 {
						t.Errorf("it ended before %d: %v", next, err)
					}
					return
				}
				if r.Index != next || l.Durable() < r.Index || !bytes.Equal(r.Data, bytes.Repeat([]byte{byte(next)}, 500)) {
					t.Errorf("record %d where %d should be", r.Index, next)
				}
				if next++; next == records+1 && want == ended {
					cancel(ended)
				}
			}
		})
	}
	follow(ctx, ended)
	follow(context.Background(), ErrClosed)
	for i := range records {
		if _, err := l.Append(bytes.Repeat([]byte{byte(i + 1)}, 500)); err != nil {
			t.Fatal(err)
		}
	}
	<-ctx.Done()
	for r, err := range l.Follow(context.Background(), 1) { // the other one may need a while
		if err != nil {
			t.Fatal(err)
		}
		if r.Index == records {
			break
		}
	}
	waitUntilRead(l)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	all.Wait()
}

// waitUntilRead returns when a reader waits for more.
func waitUntilRead(l *Log) {
	for waits := false; !waits; time.Sleep(time.Millisecond) {
		l.mu.Lock()
		waits = l.grown != nil
		l.mu.Unlock()
	}
}

// TestReadersAndTruncations lets both go on beside appends: a reader sees records with their
// own index, or ErrNotFound.
func TestReadersAndTruncations(t *testing.T) {
	l, _ := mustOpen(t, t.TempDir(), small)
	const records = 300
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for ctx.Err() == nil {
				for r, err := range l.Follow(ctx, l.First()) {
					if err != nil {
						if !errors.Is(err, ErrNotFound) && ctx.Err() == nil {
							t.Error(err)
						}
						break
					}
					var index uint64
					if fmt.Sscanf(string(r.Data), "%d.", &index); index != r.Index {
						t.Errorf("record %d is that of %d", r.Index, index)
					}
				}
			}
		})
	}
	for i := 0; i < records; i++ {
		next := l.Last() + 1
		if _, err := l.Append(fmt.Appendf(nil, "%d.%0300d", next, i), fmt.Appendf(nil, "%d.", next+1)); err != nil {
			t.Fatal(err)
		}
		var err error
		switch {
		case i%20 == 19:
			err = l.TruncateBefore(l.Last() - 15)
		case i%9 == 8:
			err = l.TruncateAfter(l.Last() - 3)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	readers.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestReadersSeeNothingThatACrashCanTakeBack has an Append whose sync takes a second: until then no reader sees the record.
func TestReadersSeeNothingThatACrashCanTakeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(t, nil)
		l, _, err := open(noDsync{d}, "/log", small)
		if err != nil {
			t.Fatal(err)
		}
		d.Add(fault.DiskFault{Op: fault.DiskDatasync, Delay: time.Second})
		start := time.Now()
		go l.Append([]byte("a"))
		synctest.Wait()
		if image := d.ProcessCrash(); !bytes.Contains(image.Files["/log/"+segmentName(1)][headerSize:], []byte("a")) {
			t.Fatal("the test proves nothing: the kernel does not have the record")
		}
		if _, err := l.Read(1); !errors.Is(err, ErrNotFound) {
			t.Errorf("Read of what is not durable: %v", err)
		}
		for r, err := range l.Follow(t.Context(), 1) {
			if err != nil || r.Index != 1 || time.Since(start) != time.Second {
				t.Errorf("%d, %v after %v", r.Index, err, time.Since(start))
			}
			break
		}
		l.Close()
	})
}

// TestAReaderLearnsThatItsRecordsWereCut: the log has records with the next indices again, and they do not follow what it has
// read, also where it was emptied.
func TestAReaderLearnsThatItsRecordsWereCut(t *testing.T) {
	for _, left := range []uint64{1, 0} {
		l, _ := mustOpen(t, t.TempDir(), small)
		add := func(text string, records int) {
			t.Helper()
			for range records {
				if _, err := l.Append([]byte(text)); err != nil {
					t.Fatal(err)
				}
			}
		}
		add("old", 6)
		var ended error
		for r, err := range l.Follow(t.Context(), 1) {
			if ended = err; err != nil {
				break
			}
			if r.Index > 6 {
				t.Fatalf("behind six old records came record %d, %q", r.Index, r.Data)
			}
			if r.Index == 6 {
				if err := l.TruncateAfter(left); err != nil {
					t.Fatal(err)
				}
				add("new", 8)
			}
		}
		if !errors.Is(ended, ErrNotFound) {
			t.Error(ended)
		}
	}
}

// TestASegmentThatIsReadIsNotRecycled: a reader is in the first segment when that leaves the log, and the next ones are begun. The
// segment is longer than one read of a reader.
func TestASegmentThatIsReadIsNotRecycled(t *testing.T) {
	isolate.Once(t, isolate.Ordinary)
	l, _ := mustOpen(t, t.TempDir(), Options{Policy: holdfast.Buffered(holdfast.MiB), SegmentSize: 4 * readMost})
	fill := func(segments uint64) {
		t.Helper()
		for until := l.head.epoch + segments; l.head.epoch < until; {
			if _, err := l.Append(bytes.Repeat([]byte{byte(l.Last() + 1)}, 900)); err != nil {
				t.Fatal(err)
			}
			if err := l.Wait(t.Context(), l.Last()); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill(1)
	l.background.Wait() // the spare file is there
	if err := removeSpare(l); err != nil {
		t.Fatal(err)
	}
	read := 0
	for r, err := range l.Records(1) {
		if err != nil {
			if !errors.Is(err, ErrNotFound) {
				t.Errorf("behind %d records: %v", read, err)
			}
			break
		}
		if read++; r.Index != uint64(read) || r.Data[0] != byte(read) {
			t.Fatalf("record %d of %q where %d should be", r.Index, r.Data[:1], read)
		}
		if read == 1 {
			if err := l.TruncateBefore(l.Last()); err != nil {
				t.Fatal(err)
			}
			fill(2)
		}
	}
	if read < 100 {
		t.Errorf("%d records were read", read)
	}
	for _, s := range l.segments {
		if s.pins != 0 { // else it would never be recycled
			t.Errorf("%s is still being read", s.name)
		}
	}
}

// TestAReaderGoesOnBehindACut: it waits right where TruncateAfter cuts, in a segment that had more records when it looked.
// Removed records do not come, and the records that have their indices since do.
func TestAReaderGoesOnBehindACut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(t, nil)
		l, _, err := open(noDsync{d}, "/log", small)
		if err != nil {
			t.Fatal(err)
		}
		add := func(records ...string) {
			t.Helper()
			var batch [][]byte
			for _, r := range records {
				batch = append(batch, []byte(r))
			}
			if _, err := l.Append(batch...); err != nil {
				t.Error(err)
			}
		}
		add("1", "2")
		d.Add(fault.DiskFault{Op: fault.DiskDatasync, Path: segmentName(1), Times: 1, Delay: time.Second})
		go add("old 3", "old 4")
		synctest.Wait()
		if l.Last() != 4 || l.Durable() != 2 {
			t.Errorf("the test proves nothing: of %d records %d are durable", l.Last(), l.Durable())
		}
		var got []string
		for r, err := range l.Follow(t.Context(), 1) {
			if err != nil {
				t.Error(err)
				break
			}
			if got = append(got, string(r.Data)); r.Index == 2 {
				time.Sleep(time.Minute) // now they are
				if err := l.TruncateAfter(2); err != nil {
					t.Error(err)
				}
				add("new 3", "new 4")
			}
			if r.Index == 4 {
				break
			}
		}
		if want := []string{"1", "2", "new 3", "new 4"}; !slices.Equal(got, want) {
			t.Errorf("it read %q, want %q", got, want)
		}
		l.Close()
	})
}

// TestAReaderGoesOnInAHalfReadBatch: its end is the log's end before a cut, in the middle of a batch that was appended since.
func TestAReaderGoesOnInAHalfReadBatch(t *testing.T) {
	l, _ := mustOpen(t, t.TempDir(), small)
	replace := func(after uint64, records ...string) {
		t.Helper()
		err := l.TruncateAfter(after)
		var batch [][]byte
		for _, r := range records {
			batch = append(batch, []byte(r))
		}
		if _, failed := l.Append(batch...); err != nil || failed != nil {
			t.Error(err, failed)
		}
	}
	replace(0, "1", "2", "removed")
	replace(2, "old 3") // in a segment of its own
	var got []string
	for r, err := range l.Follow(t.Context(), 1) {
		if err != nil {
			t.Error(err)
			break
		}
		if got = append(got, string(r.Data)); r.Index == 2 {
			replace(2, "new 3", "new 4")
		}
		if r.Index == 4 {
			break
		}
	}
	if want := []string{"1", "2", "new 3", "new 4"}; !slices.Equal(got, want) {
		t.Errorf("it read %q, want %q", got, want)
	}
}

// TestAReaderGivesNothingThatIsTakenBack truncates a log while a reader is inside of a batch.
func TestAReaderGivesNothingThatIsTakenBack(t *testing.T) {
	check := func(remove func(*Log) error, end error, want ...uint64) {
		t.Helper()
		l, _ := mustOpen(t, t.TempDir(), small)
		if _, err := l.Append([]byte("1"), []byte("2"), []byte("3"), []byte("4"), []byte("5")); err != nil {
			t.Fatal(err)
		}
		var got []uint64
		var last error
		for r, err := range l.Records(1) {
			if last = err; err != nil {
				break
			}
			if got = append(got, r.Index); r.Index == 2 {
				if err := remove(l); err != nil {
					t.Error(err)
				}
			}
		}
		if !slices.Equal(got, want) || !errors.Is(last, end) {
			t.Errorf("it read %v, %v; want %v, %v", got, last, want, end)
		}
	}
	check(func(l *Log) error { return l.TruncateAfter(3) }, nil, 1, 2, 3)
	check(func(l *Log) error { return l.TruncateAfter(2) }, nil, 1, 2)
	check(func(l *Log) error { return l.TruncateAfter(1) }, ErrNotFound, 1, 2)
	check(func(l *Log) error { return l.TruncateBefore(9) }, ErrNotFound, 1, 2)  // the log goes on with 9
	check(func(l *Log) error { return l.TruncateBefore(5) }, nil, 1, 2, 3, 4, 5) // read records stay until then
}

// TestMemoryIsBounded has a write that takes an hour: Append takes two buffers, and waits.
func TestMemoryIsBounded(t *testing.T) {
	for _, p := range []holdfast.Policy{holdfast.Buffered(4 * holdfast.KiB), {Buffer: 4 * holdfast.KiB, FlushEvery: time.Millisecond, Sync: holdfast.SyncEvery(time.Second)}} {
		synctest.Test(t, func(t *testing.T) {
			d := newDisk(t, nil)
			l, _, err := open(d, "/log", Options{Policy: p, SegmentSize: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			d.Add(fault.DiskFault{Op: fault.DiskWrite, Times: 1, Take: fault.All, Delay: time.Hour})
			const record = 500
			for range 2 { // one writes what is full, the other goes on
				go func() {
					for range 50 {
						if _, err := l.Append(make([]byte, record)); err != nil {
							t.Error(err)
						}
					}
				}()
			}
			time.Sleep(time.Minute)
			if last := l.Last(); last*record > 2*4096 || last*record < 4096 {
				t.Errorf("%v: %d records of %d bytes were accepted", p, last, record)
			}
			time.Sleep(2 * time.Hour)
			if l.Last() != 100 {
				t.Errorf("%v: %d of 100 records were accepted in the end", p, l.Last())
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAFullMemoryEndsTheWaitForOthers has more records under way than memory holds: a leader that waits for
// the writers of the last batch waits in vain.
func TestAFullMemoryEndsTheWaitForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(t, nil)
		l, _, err := open(noDsync{d}, "/log", Options{Policy: holdfast.Durable(), SegmentSize: 16 << 20})
		if err != nil {
			t.Fatal(err)
		}
		l.limit = 4096
		d.Add(fault.DiskFault{Op: fault.DiskDatasync, Delay: time.Second})
		start := time.Now()
		const seconds = 60
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for time.Since(start) < seconds*time.Second {
					if _, err := l.Append(make([]byte, 1000)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		before := d.Count(fault.DiskDatasync)
		time.Sleep(seconds * time.Second)
		if n := d.Count(fault.DiskDatasync) - before; n < seconds-1 {
			t.Errorf("%d syncs of a second each in %d seconds", n, seconds)
		}
		all.Wait()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestRetentionRecyclesFiles bounds the files of a log that is truncated as it grows.
func TestRetentionRecyclesFiles(t *testing.T) {
	dir := t.TempDir()
	l, _ := mustOpen(t, dir, small)
	for range 100 {
		last, err := l.Append(make([]byte, 700))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.TruncateBefore(max(1, last) - min(last-1, 6)); err != nil {
			t.Fatal(err)
		}
	}
	first, last := l.First(), l.Last()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(names) > 6 { // lock, spare, spare.tmp, and three segments
		t.Errorf("%v, %v", names, err)
	}
	if l, _ = mustOpen(t, dir, small); l.First() != first || l.Last() != last || last-first != 6 {
		t.Errorf("%d to %d, want %d to %d", l.First(), l.Last(), first, last)
	}
}

// TestNobodyWaitsForALeaderThatHasLeft has records accepted while a call leads that goes away then, and awaits no record.
func TestNobodyWaitsForALeaderThatHasLeft(t *testing.T) {
	for name, lead := range map[string]func(context.Context, *Log) error{
		"TruncateBefore":        func(_ context.Context, l *Log) error { return l.TruncateBefore(2) },
		"Enqueue, memory full":  func(_ context.Context, l *Log) error { _, err := l.Enqueue(make([]byte, 3000)); return err },
		"Wait that ctx may end": func(ctx context.Context, l *Log) error { return l.Wait(ctx, l.Last()) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDisk(t, nil)
				l, _, err := open(noDsync{d}, "/log", Options{Policy: holdfast.Durable(), SegmentSize: 64 * holdfast.KiB})
				if err != nil {
					t.Fatal(err)
				}
				l.limit = 4096
				for range 2 {
					if _, err := l.Enqueue(make([]byte, 1500)); err != nil {
						t.Fatal(err)
					}
				}
				d.Add(fault.DiskFault{Op: fault.DiskDatasync, Delay: time.Second})
				go func() {
					if err := lead(t.Context(), l); err != nil {
						t.Error(err)
					}
				}()
				synctest.Wait()
				appended := make([]bool, 3)
				for i := range appended {
					go func() {
						if _, err := l.Append([]byte("a")); err != nil {
							t.Error(err)
						}
						appended[i] = true
					}()
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if slices.Contains(appended, false) {
					t.Errorf("after a minute %v are durable: the others wait for no one", appended)
				}
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
