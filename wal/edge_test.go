//go:build go1.25

package wal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// TestRecordsOfEachSize has records that end at, before and behind a multiple of 8, that fill
// a segment, and that are larger than one.
func TestRecordsOfEachSize(t *testing.T) {
	const room = leastSegment - headerSize - frameHeader // of a batch's lengths and records
	d := newDisk(t, nil)
	l, _, err := open(d, "/log", small)
	if err != nil {
		t.Fatal(err)
	}
	var want [][]byte
	add := func(sizes ...int) (uint64, error) {
		var batch [][]byte
		for _, n := range sizes {
			batch = append(batch, bytes.Repeat([]byte{byte(n)}, n))
		}
		last, err := l.Append(batch...)
		if last > 0 {
			want = append(want, batch...)
		}
		return last, err
	}
	for _, sizes := range [][]int{{0}, {1}, {3}, {4}, {5}, {0, 0, 0}, {0, 7, 0}, {room - 4 - 1}, {room - 4}, {room - 8, 0}, {0, room - 8}, {0},
		{room - 3}, {room - 7, 0}, {0}, {5 * leastSegment, 3}, {leastSegment}, {leastSegment - 100}, {1}} { // some have a segment of their own

		if last, err := add(sizes...); err != nil || last != uint64(len(want)) {
			t.Fatalf("%v: Append = %d, %v", sizes, last, err)
		}
	}
	for range 2 {
		got, err := recordsOf(l, 1)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%d of %d records, %v", len(got), len(want), err)
		}
		for i := range want {
			if !bytes.Equal(got[i], want[i]) {
				t.Errorf("record %d has %d bytes, want %d", i+1, len(got[i]), len(want[i]))
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if l, _, err = open(newDisk(t, d.ProcessCrash()), "/log", small); err != nil {
			t.Fatal(err)
		}
	}
	l.Close()
}

// TestIndicesAtBothEnds asks for those beside the first and the last, in a log that is empty, that has records, and that was
// truncated.
func TestIndicesAtBothEnds(t *testing.T) {
	d := newDisk(t, nil)
	l, _, err := open(d, "/log", small)
	if err != nil {
		t.Fatal(err)
	}
	holds := func(first, last uint64) {
		t.Helper()
		for range 2 {
			if l.First() != first || l.Last() != last || l.Durable() != last {
				t.Fatalf("it has %d to %d, durable %d; want %d to %d", l.First(), l.Last(), l.Durable(), first, last)
			}
			for _, index := range []uint64{0, first - 1, last + 1, last + 2, math.MaxUint64} {
				if data, err := l.Read(index); !errors.Is(err, ErrNotFound) {
					t.Errorf("Read(%d) of %d to %d = %q, %v", index, first, last, data, err)
				}
			}
			for _, index := range []uint64{first, last} {
				if data, err := l.Read(index); first <= last && (err != nil || string(data) != fmt.Sprint(index)) {
					t.Errorf("Read(%d) of %d to %d = %q, %v", index, first, last, data, err)
				}
			}
			if got, err := recordsOf(l, last+1); len(got) > 0 || err != nil {
				t.Errorf("Records(%d) of %d to %d = %q, %v", last+1, first, last, got, err)
			}
			if _, err := recordsOf(l, last+2); !errors.Is(err, ErrNotFound) {
				t.Errorf("Records(%d) of %d to %d: %v", last+2, first, last, err)
			}
			for _, index := range []uint64{0, first} {
				if err := l.TruncateBefore(index); err != nil {
					t.Errorf("TruncateBefore(%d) of %d to %d: %v", index, first, last, err)
				}
			}
			for _, index := range []uint64{first - 2, last + 1, math.MaxUint64} {
				if index < last && first > last {
					continue // an empty log goes on there
				}
				if err := l.TruncateAfter(index); !errors.Is(err, ErrNotFound) {
					t.Errorf("TruncateAfter(%d) of %d to %d: %v", index, first, last, err)
				}
			}
			if err := l.TruncateAfter(last); err != nil {
				t.Errorf("TruncateAfter(%d) of %d to %d: %v", last, first, last, err)
			}
			if err := errors.Join(l.Wait(t.Context(), 0), l.Wait(t.Context(), last)); err != nil {
				t.Error(err)
			}
			if err := l.Wait(t.Context(), last+1); !errors.Is(err, ErrNotFound) {
				t.Errorf("Wait(%d) of %d to %d: %v", last+1, first, last, err)
			}
			// And again in the log that a power cut leaves.
			d = newDisk(t, d.PowerCut(rand.New(rand.NewPCG(first, last))))
			l.Close()
			if l, _, err = open(d, "/log", small); err != nil {
				t.Fatal(err)
			}
		}
	}
	add := func(records int) {
		t.Helper()
		for range records {
			if _, err := l.Append(fmt.Append(nil, l.Last()+1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	truncate := func(call func(uint64) error, index uint64) {
		t.Helper()
		if err := call(index); err != nil {
			t.Fatal(err)
		}
	}
	holds(1, 0)
	add(4)
	holds(1, 4)
	truncate(l.TruncateBefore, 2)
	holds(2, 4)
	truncate(l.TruncateAfter, 1) // First-1
	holds(2, 1)
	add(3)
	holds(2, 4)
	truncate(l.TruncateBefore, 5) // Last+1
	holds(5, 4)
	add(1)
	holds(5, 5)
	truncate(l.TruncateBefore, 7) // a gap
	holds(7, 6)
	truncate(l.TruncateBefore, 8) // of an empty log
	holds(8, 7)
	add(1)
	holds(8, 8)
	truncate(l.TruncateBefore, 9)
	truncate(l.TruncateAfter, 2) // of an empty log: it goes on with smaller indices
	holds(3, 2)
	add(3)
	holds(3, 5)
	truncate(l.TruncateBefore, 5)
	holds(5, 5)
	truncate(l.TruncateBefore, 6)
	truncate(l.TruncateAfter, 0)
	holds(1, 0)
	add(5)
	truncate(l.TruncateBefore, 6)
	truncate(l.TruncateAfter, 2)
	add(3)
	truncate(l.TruncateBefore, 4) // is durable, though a larger first index was before
	holds(4, 5)
	l.Close()
}

// TestIndicesEnd at the largest one: no record gets an index that no Open finds.
func TestIndicesEnd(t *testing.T) {
	d := newDisk(t, nil)
	l, _, err := open(d, "/log", small)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "the largest index is 9223372036854775807") {
			t.Error(err)
		}
	}
	again := func(first, last uint64) {
		t.Helper()
		d = newDisk(t, d.ProcessCrash())
		l.Close()
		var found Recovery
		if l, found, err = open(d, "/log", small); err != nil || found.First != first || found.Last != last {
			t.Fatalf("%+v, %v; want %d to %d", found, err, first, last)
		}
	}
	for _, index := range []uint64{1<<63 + 1, math.MaxUint64} {
		refused(l.TruncateBefore(index))
	}
	if err := l.TruncateBefore(math.MaxInt64 - 1); err != nil {
		t.Fatal(err)
	}
	_, err = l.Append(nil, nil, nil)
	refused(err)
	if last, err := l.Append([]byte("a"), []byte("b")); last != math.MaxInt64 || err != nil {
		t.Fatal(last, err)
	}
	_, err = l.Append(nil)
	refused(err)
	again(math.MaxInt64-1, math.MaxInt64)
	if data, err := l.Read(math.MaxInt64); string(data) != "b" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	if err := l.TruncateBefore(1 << 63); err != nil {
		t.Fatal(err)
	}
	again(1<<63, math.MaxInt64)
	_, err = l.Append(nil)
	refused(err)
	l.Close()
}

// TestADirectoryWhereACallIsRefusedIsNamed, whichever call of Open it is.
func TestADirectoryWhereACallIsRefusedIsNamed(t *testing.T) {
	refused := errors.New("refused")
	check := func(d *fault.Disk, ops ...fault.DiskOp) {
		t.Helper()
		for _, op := range ops {
			d.Add(fault.DiskFault{Op: op, Err: refused})
			if _, _, err := open(d, "/log", small); !errors.Is(err, refused) || !strings.HasPrefix(err.Error(), "wal: ") || !strings.Contains(err.Error(), "/log") {
				t.Errorf("%v: %v", op, err)
			}
			d.Mend()
		}
		if d.Open() > 0 {
			t.Errorf("%d descriptors are open", d.Open())
		}
	}
	d := newDisk(t, nil)
	check(d, fault.DiskOpenDir, fault.DiskOpen, fault.DiskStatFD, fault.DiskLock, fault.DiskReadNames, fault.DiskRemove, fault.DiskSync, fault.DiskRename)
	l, _, err := open(d, "/log", small)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append([]byte("written")); err != nil {
		t.Fatal(err)
	}
	l.Close()
	check(d, fault.DiskOpenDir, fault.DiskOpen, fault.DiskStatFD, fault.DiskLock, fault.DiskReadNames, fault.DiskRead, fault.DiskRemove, fault.DiskDatasync)
}

// TestADirectoryWhoseSyncFailedIsNotBegun: the next sync would work, and its name may be lost. One that is made again is a new
// one, and a log that has a segment was begun before.
func TestADirectoryWhoseSyncFailedIsNotBegun(t *testing.T) {
	above := t.TempDir()
	dir, other := filepath.Join(above, "log"), filepath.Join(above, "begun")
	l, _ := mustOpen(t, other, small)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	is, err := sys.Disk{}.StatPath(plainName(above))
	if err == nil {
		err = os.Mkdir(dir, 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	key := keyed.Key{Device: is.Device, Inode: is.Inode}
	durable.KernelSyncs.Fail(key)
	defer delete(durable.KernelSyncs.Lost, key)
	for range 2 {
		if _, _, err := Open(dir, small); !errors.Is(err, durable.ErrDirLost) || !strings.Contains(err.Error(), dir+" durable: ") || !strings.HasSuffix(err.Error(), "remove it, and open the log again") {
			t.Error(err)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, dir, small)
	mustOpen(t, other, small)
}

// TestPermissionsThatNoLogCanHaveAreRefused names the value.
func TestPermissionsThatNoLogCanHaveAreRefused(t *testing.T) {
	for perm, want := range map[uint32]string{
		0o1640:        "wal: Perm 01640 holds more than permissions; use a value like 0o640",
		1<<31 | 0o700: "wal: Perm 020000000700 holds more than permissions; use a value like 0o640",
		0o444:         "wal: with Perm 0444 the owner can't read and write the log; use a value like 0o640",
		0o266:         "wal: with Perm 0266 the owner can't read and write the log; use a value like 0o640",
	} {
		d := fault.NewDisk()
		if _, _, err := open(d, "/log", Options{Policy: holdfast.Durable(), Perm: fs.FileMode(perm)}); err == nil || err.Error() != want {
			t.Errorf("%#o: %v", perm, err)
		}
		if d.Count(fault.DiskMkdir) > 0 {
			t.Errorf("%#o: a directory was made", perm)
		}
	}
}

// TestFirstWithinIsWhatASizeAndAnAgeLeave of whole segments, as long as the log is open and after that.
func TestFirstWithinIsWhatASizeAndAnAgeLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(t, nil)
		l, _, err := open(d, "/log", small)
		if err != nil {
			t.Fatal(err)
		}
		check := func(size holdfast.Size, age time.Duration, want uint64) {
			t.Helper()
			if got := l.FirstWithin(size, age); got != want {
				t.Errorf("FirstWithin(%v, %v) = %d, want %d", size, age, got, want)
			}
		}
		check(1, 1, 1)
		time.Sleep(900 * time.Millisecond)                  // headers have whole seconds
		record := make([]byte, leastSegment-headerSize-128) // two have no room in a segment, and one and a mark have
		for range 4 {
			if _, err := l.Append(record); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
		}
		// Segments of 8 KiB begin with record n at n-1 hours, and it is 4 hours now.
		for _, again := range []bool{false, true} {
			check(0, 0, 1)
			check(32<<10, 0, 1)
			check(32<<10-1, 0, 2)
			check(8<<10, 0, 4)
			check(1, 0, 4)
			check(-1, -1, 1)
			check(0, 3*time.Hour, 1)
			check(0, 3*time.Hour-2*time.Second, 2)
			check(0, time.Hour+time.Second, 3)
			check(0, 1, 4)
			check(16<<10, 3*time.Hour-2*time.Second, 3)
			check(24<<10, time.Hour+time.Second, 3)
			if again {
				break
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if l, _, err = open(d, "/log", small); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.TruncateBefore(l.FirstWithin(16<<10, 0)); err != nil || l.First() != 3 {
			t.Errorf("the log begins with %d, %v; want 3", l.First(), err)
		}
		check(32<<10, 24*time.Hour, 3)
		if err := l.TruncateAfter(3); err != nil { // the one behind it begins now
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		check(0, 2*time.Minute, 3)
		check(0, time.Second, 4)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestSpareOfAnotherSizeIsMadeAnew though another program has left it there.
func TestSpareOfAnotherSizeIsMadeAnew(t *testing.T) {
	for _, size := range []int{0, 100, leastSegment + 1} {
		d := newDisk(t, nil)
		l, _, err := open(d, "/log", small)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.WriteFile("/log/"+spareFile, make([]byte, size), 0o666); err != nil {
			t.Fatal(err)
		}
		for range 2 { // one fills a segment
			if _, err := l.Append(make([]byte, leastSegment-headerSize-128)); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if got := len(d.ProcessCrash().Files["/log/"+segmentName(2)]); got != leastSegment {
			t.Errorf("a spare file of %d bytes became a segment of %d", size, got)
		}
	}
}

// TestSegmentThatWasBegunAgainIsRemoved after a crash between the new segment and the removal.
func TestSegmentThatWasBegunAgainIsRemoved(t *testing.T) {
	d := newDisk(t, nil)
	l, _, err := open(d, "/log", small)
	if err != nil {
		t.Fatal(err)
	}
	name := "/log/" + segmentName(2)
	for _, size := range []int{leastSegment - headerSize - 64, 100} { // each in a segment of its own
		if _, err := l.Append(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	old := d.ProcessCrash().Files[name]
	if err := l.TruncateAfter(1); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append([]byte("stays")); err != nil {
		t.Fatal(err)
	}
	files := d.ProcessCrash().Files
	files[name] = old
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	again := newDisk(t, &fault.Image{Files: files})
	l, found, err := open(again, "/log", small)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if got, err := l.Read(2); err != nil || string(got) != "stays" || found.Segments != 2 || found.Records != 2 {
		t.Errorf("%q, %v, %+v", got, err, found)
	}
	if _, there := again.ProcessCrash().Files[name]; there {
		t.Error("the segment that was begun again is still there")
	}
}

// TestTruncateAfterSaysWhatItRemoved where the old segments' files can't be removed: their records are gone all the same.
func TestTruncateAfterSaysWhatItRemoved(t *testing.T) {
	d := newDisk(t, nil)
	l, _, err := open(d, "/log", small)
	if err != nil {
		t.Fatal(err)
	}
	for range 4 { // each in a segment of its own
		if _, err := l.Append(make([]byte, leastSegment-headerSize-64)); err != nil {
			t.Fatal(err)
		}
	}
	d.Add(fault.DiskFault{Op: fault.DiskRemove, First: 1, Err: syscall.EPERM})
	if err := l.TruncateAfter(1); !errors.Is(err, syscall.EPERM) || !strings.Contains(err.Error(), segmentName(3)) {
		t.Errorf("TruncateAfter = %v", err)
	}
	if l.Last() != 1 || l.Durable() != 1 || l.Err() != nil {
		t.Errorf("last %d, durable %d, %v", l.Last(), l.Durable(), l.Err())
	}
	if err := l.TruncateAfter(1); err != nil {
		t.Error("once more:", err)
	}
	if last, err := l.Append([]byte("goes on")); last != 2 || err != nil {
		t.Error(last, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	d.Mend()
	l, found, err := open(d, "/log", small)
	if err != nil || found.Last != 2 || found.Segments != 2 {
		t.Fatalf("%+v, %v", found, err)
	}
	defer l.Close()
	files := 0
	for name := range d.ProcessCrash().Files {
		if strings.HasSuffix(name, segmentSuffix) {
			files++
		}
	}
	if files != 2 {
		t.Errorf("%d files of 2 segments", files)
	}
}

// rewritten returns a segment whose header has been changed, with the checksum of that.
func rewritten(segment []byte, change func(header []byte)) []byte {
	segment = bytes.Clone(segment)
	change(segment)
	binary.LittleEndian.PutUint32(segment[92:], crc32.Checksum(segment[:92], castagnoli()))
	return segment
}

// TestHeadersThatThisLogCantHaveAreNamed, though their checksums are right.
func TestHeadersThatThisLogCantHaveAreNamed(t *testing.T) {
	files, _ := aLog(t, true)
	name := "/log/" + segmentName(1)
	check := func(want string, change func(header []byte)) {
		t.Helper()
		changed := maps.Clone(files)
		changed[name] = rewritten(files[name], change)
		_, _, err := reopen(t, changed)
		var damage *DamageError
		if !errors.As(err, &damage) || filepath.ToSlash(damage.Path) != name || !strings.Contains(damage.Reason, want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	check("it was written by another version of this package", func(h []byte) { h[8]++ })
	check("its header is that of "+segmentName(7), func(h []byte) { h[32] = 7 })
	check("impossible values", func(h []byte) { clear(h[40:48]) })                                         // no record has index 0
	check("impossible values", func(h []byte) { binary.LittleEndian.PutUint64(h[48:], 2) })                // the log begins behind it
	check("impossible values", func(h []byte) { binary.LittleEndian.PutUint32(h[12:], 1<<30+headerSize) }) // larger than any segment
	check("impossible values", func(h []byte) { binary.LittleEndian.PutUint32(h[12:], 4<<10) })            // and without room for a record
}

// TestSegmentsWithoutATimeAreOfNoAge: a clock may say anything.
func TestSegmentsWithoutATimeAreOfNoAge(t *testing.T) {
	files, _ := aLog(t, true)
	for name := range files {
		if strings.HasSuffix(name, segmentSuffix) {
			files[name] = rewritten(files[name], func(h []byte) { clear(h[56:60]) })
		}
	}
	l, found, err := open(newDisk(t, &fault.Image{Files: files}), "/log", small)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if got := l.FirstWithin(0, 1); got != found.First || found.Segments < 2 {
		t.Errorf("FirstWithin(0, 1ns) = %d of %+v", got, found)
	}
}

// TestALogThatIsOnlyOpenedAndClosedDoesNotGrow, however often.
func TestALogThatIsOnlyOpenedAndClosedDoesNotGrow(t *testing.T) {
	d := newDisk(t, nil)
	var ends int64
	for i := range 3 {
		l, _, err := open(d, "/log", small)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if _, err := l.Append([]byte("record")); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if i > 0 && l.head.end != ends {
			t.Errorf("opened and closed, it ends at %d, before at %d", l.head.end, ends)
		}
		ends = l.head.end
	}
}

// TestScanNeedsNoLockFile: a copy may have none, in a directory that can't be written to.
func TestScanNeedsNoLockFile(t *testing.T) {
	files, records := aLog(t, true)
	delete(files, "/log/"+lockFile)
	d := newDisk(t, &fault.Image{Files: files})
	n := 0
	found, err := scan(d, "/log", func(_ Record, damage *DamageError) bool { n++; return damage == nil })
	if err != nil || n != len(records) || found.Records != int64(n) {
		t.Errorf("%d records, %+v, %v", n, found, err)
	}
	if _, made := d.ProcessCrash().Files["/log/"+lockFile]; made {
		t.Error("Scan has made a lock")
	}
}

// TestWhatEndsAFollow ends it at once, also where nothing is appended any more.
func TestWhatEndsAFollow(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(t *testing.T, l *Log, d *fault.Disk)
		want error
	}{
		{"a durable write fails", func(t *testing.T, l *Log, d *fault.Disk) {
			l.disk, l.noDsync = d, false
			d.Add(fault.DiskFault{Op: fault.DiskWrite, Err: syscall.EIO})
			if _, err := l.Append([]byte("lost")); !errors.Is(err, syscall.EIO) {
				t.Error(err)
			}
		}, syscall.EIO},
		{"its records are cut", func(t *testing.T, l *Log, _ *fault.Disk) {
			if err := l.TruncateAfter(1); err != nil {
				t.Error(err)
			}
		}, ErrNotFound},
		{"a sync fails", func(t *testing.T, l *Log, d *fault.Disk) {
			d.Add(fault.DiskFault{Op: fault.DiskDatasync, Err: syscall.EIO})
			if _, err := l.Append([]byte("lost")); !errors.Is(err, syscall.EIO) {
				t.Error(err)
			}
		}, syscall.EIO},
		{"Close begins, and the disk hangs", func(_ *testing.T, l *Log, d *fault.Disk) {
			d.Add(fault.DiskFault{Op: fault.DiskWrite, Take: fault.All, Delay: time.Hour})
			go l.Close()
		}, ErrClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDisk(t, nil)
				l, _, err := open(noDsync{d}, "/log", small)
				if err != nil {
					t.Fatal(err)
				}
				for range 3 {
					if _, err := l.Append([]byte("record")); err != nil {
						t.Fatal(err)
					}
				}
				var ended error
				go func() {
					for _, err := range l.Follow(context.Background(), 1) {
						ended = err
					}
				}()
				synctest.Wait()
				c.end(t, l, d)
				synctest.Wait()
				if !errors.Is(ended, c.want) {
					t.Errorf("it has ended with %v, want %v", ended, c.want)
				}
				l.Close()
			})
		})
	}
}

// TestADamagedRecordIsNotRead from a log that is open. Those around it are.
func TestADamagedRecordIsNotRead(t *testing.T) {
	d := newDisk(t, nil)
	l, _, err := open(d, "/log", small)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for i := range 3 {
		if _, err := l.Append(bytes.Repeat([]byte{'a' + byte(i)}, 100)); err != nil {
			t.Fatal(err)
		}
	}
	at := headerSize + frameSize(104)
	if _, err := d.WriteAt(l.head.fd, []byte{'x'}, at+frameHeader+50); err != nil {
		t.Fatal(err)
	}
	got, err := recordsOf(l, 1)
	var damage *DamageError
	if len(got) != 1 || !errors.As(err, &damage) || filepath.ToSlash(damage.Path) != "/log/"+segmentName(1) || damage.Offset != at || damage.Index != 2 {
		t.Errorf("%d records, and then %v", len(got), err)
	}
	if got, err := l.Read(1); err != nil || len(got) != 100 {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := l.Read(2); !errors.As(err, new(*DamageError)) {
		t.Errorf("%q, %v", got, err)
	}
}

// TestAFollowTakesNothingFromMemory: records come to it when they are written.
func TestAFollowTakesNothingFromMemory(t *testing.T) {
	l, _, err := open(newDisk(t, nil), "/log", Options{Policy: holdfast.Buffered(holdfast.KiB), SegmentSize: leastSegment})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := l.Append([]byte("record")); err != nil {
		t.Fatal(err)
	}
	c := &cursor{log: l, next: 1}
	if end, err := c.await(background, false); end != 1 || err != nil {
		t.Errorf("in memory it ends before record %d, %v", end, err)
	}
	if err := l.Wait(background, 1); err != nil {
		t.Fatal(err)
	}
	if end, err := c.await(background, true); end != 2 || err != nil {
		t.Errorf("when it is written it ends before record %d, %v", end, err)
	}
}

// TestARecordThatIsRemovedWhileItsSegmentIsOpenedIsNotFound.
func TestARecordThatIsRemovedWhileItsSegmentIsOpenedIsNotFound(t *testing.T) {
	d := newDisk(t, nil)
	l, _, err := open(d, "/log", small)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 4 { // each in a segment of its own
		if _, err := l.Append(make([]byte, leastSegment-headerSize-64)); err != nil {
			t.Fatal(err)
		}
	}
	l.background.Wait() // the next segment is prepared: only Read's calls come
	d.Watch(func(c fault.DiskCall) {
		if c.Op == fault.DiskOpen && c.End.IsZero() {
			d.Watch(nil)
			if err := l.TruncateBefore(4); err != nil {
				t.Error(err)
			}
		}
	})
	if _, err := l.Read(2); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

// TestTruncateAfterTheLastMakesItDurable, as a cut does, under every policy. It begins no segment.
func TestTruncateAfterTheLastMakesItDurable(t *testing.T) {
	d := newDisk(t, nil)
	l, _, err := open(d, "/log", Options{Policy: holdfast.Buffered(holdfast.KiB), SegmentSize: leastSegment})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for n := range uint64(3) {
		if _, err := l.Append([]byte("record")); err != nil {
			t.Fatal(err)
		}
		if err := l.TruncateAfter(n + 1); err != nil || l.Durable() != n+1 || l.head.epoch != 1 {
			t.Errorf("TruncateAfter(%d) = %v: durable to %d, in segment %d", n+1, err, l.Durable(), l.head.epoch)
		}
	}
}

// TestAKillInsideTruncateBeforeLeavesAPartOfTheRecords: what waits in memory begins segments before
// the mark is written, and their headers have no later index than their own.
func TestAKillInsideTruncateBeforeLeavesAPartOfTheRecords(t *testing.T) {
	d := newDisk(t, nil)
	o := Options{Policy: holdfast.Buffered(holdfast.MiB), SegmentSize: leastSegment}
	l, _, err := open(noDsync{d}, "/log", o)
	if err != nil {
		t.Fatal(err)
	}
	record := make([]byte, leastSegment-headerSize-64) // each in a segment of its own
	if _, err := l.Append(record); err != nil {
		t.Fatal(err)
	}
	if err := l.Wait(context.Background(), 1); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := l.Append(record); err != nil {
			t.Fatal(err)
		}
	}
	var began []uint64
	d.Watch(func(fault.DiskCall) {
		after, found, err := open(newDisk(t, d.ProcessCrash()), "/log", o)
		if err != nil {
			t.Error(err)
			return
		}
		after.Close()
		if !slices.Contains(began, found.First) {
			began = append(began, found.First)
		}
	})
	if err := l.TruncateBefore(4); err != nil {
		t.Error(err)
	}
	d.Watch(nil)
	if want := []uint64{1, 2, 3, 4}; !slices.Equal(began, want) {
		t.Errorf("the log began with %d, want %d", began, want)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestACallForWhatACutHasRemovedEnds at once, and the background has nothing to say of it. Such a
// call had its records when it began to wait.
func TestACallForWhatACutHasRemovedEnds(t *testing.T) {
	l, _, err := open(newDisk(t, nil), "/log", small)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 2 {
		if _, err := l.Append([]byte("record")); err != nil {
			t.Fatal(err)
		}
	}
	for _, sync := range []bool{false, true} {
		last := l.Last()
		l.mu.Lock()
		err := l.advance(background, last+1, sync)
		if err != ErrNotFound {
			t.Errorf("it has ended with %v", err)
		}
		l.mu.Lock()
		l.noteLocked(err)
		l.mu.Unlock()
	}
	if _, err := l.Append([]byte("record")); err != nil {
		t.Error(err)
	}
}

// TestTruncateBeforeBesideTruncateAfter, in the middle of which it begins. The log has what both have
// left, and goes on behind that, also when it is opened again.
func TestTruncateBeforeBesideTruncateAfter(t *testing.T) {
	for _, c := range []struct{ after, before, first, last uint64 }{{7, 5, 5, 7}, {3, 9, 4, 3}, {3, 4, 4, 3}, {7, 20, 20, 19}} {
		t.Run(fmt.Sprint(c.after, c.before), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDisk(t, nil)
				l, _, err := open(d, "/log", small)
				if err != nil {
					t.Fatal(err)
				}
				for range 10 {
					if _, err := l.Append([]byte("record")); err != nil {
						t.Fatal(err)
					}
				}
				before := make(chan error, 1)
				l.background.Wait() // the next segment is prepared: nothing waits for a mutex below
				d.Watch(func(fault.DiskCall) {
					d.Watch(nil)
					go func() { before <- l.TruncateBefore(c.before) }()
					synctest.Wait()
				})
				if err := errors.Join(l.TruncateAfter(c.after), <-before); err != nil {
					t.Error(err)
				}
				check := func(first, last uint64) {
					t.Helper()
					if first != c.first || last != c.last {
						t.Errorf("it has the records %d to %d, want %d to %d", first, last, c.first, c.last)
					}
				}
				check(l.First(), l.Last())
				if next, err := l.Append([]byte("next")); err != nil || next != c.last+1 {
					t.Errorf("the next record is %d, %v", next, err)
				}
				if err := l.Close(); err != nil {
					t.Error(err)
				}
				l, found, err := open(d, "/log", small)
				if err != nil {
					t.Fatal(err)
				}
				check(found.First, found.Last-1) // without the next one
				l.Close()
			})
		})
	}
}

// TestADurableWriteThatIsCutShortGoesOnWhereItEnded, as often as that takes.
func TestADurableWriteThatIsCutShortGoesOnWhereItEnded(t *testing.T) {
	d := newDisk(t, nil)
	l, _, err := open(d, "/log", small)
	if err != nil {
		t.Fatal(err)
	}
	want := []byte("a record that takes more than two writes")
	for range 2 {
		d.Add(fault.DiskFault{Op: fault.DiskWrite, Path: segmentName(1), Times: 2, Take: 5})
		if _, err := l.Append(want); err != nil {
			t.Fatal(err)
		}
	}
	after, found, err := open(newDisk(t, d.PowerCut(rand.New(rand.NewPCG(1, 1)))), "/log", small)
	if err != nil || found.Records != 2 {
		t.Fatalf("%+v, %v", found, err)
	}
	for i := range found.Last {
		if got, err := after.Read(i + 1); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%q, %v", got, err)
		}
	}
	if err := errors.Join(l.Close(), after.Close()); err != nil {
		t.Error(err)
	}
}

// TestADiskThatTakesNothingIsAnError, and no endless loop.
func TestADiskThatTakesNothingIsAnError(t *testing.T) {
	for name, under := range map[string]func(*fault.Disk) disk{
		"durable": func(d *fault.Disk) disk { return d },
		"plain":   func(d *fault.Disk) disk { return noDsync{d} },
	} {
		d := newDisk(t, nil)
		l, _, err := open(under(d), "/log", small)
		if err != nil {
			t.Fatal(err)
		}
		d.Add(fault.DiskFault{Op: fault.DiskWrite, Path: segmentName(1), Times: 1000})
		if last, err := l.Append([]byte("record")); err == nil || l.Durable() != 0 {
			t.Errorf("%s: Append = %d, %v; durable to %d", name, last, err, l.Durable())
		}
		d.Mend()
		l.Close()
	}
}

// TestTruncateAfterBesideTruncateAfter, in the middle of which it begins: it finds what that has left.
func TestTruncateAfterBesideTruncateAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(t, nil)
		l, _, err := open(d, "/log", small)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if _, err := l.Append([]byte("record")); err != nil {
				t.Fatal(err)
			}
		}
		second := make(chan error, 1)
		l.background.Wait() // the next segment is prepared: nothing waits for a mutex below
		d.Watch(func(fault.DiskCall) {
			d.Watch(nil)
			go func() { second <- l.TruncateAfter(7) }()
			synctest.Wait()
		})
		if err := l.TruncateAfter(5); err != nil {
			t.Error(err)
		}
		if err := <-second; !errors.Is(err, ErrNotFound) || l.Last() != 5 {
			t.Errorf("TruncateAfter of what is gone: %v; the last record is %d", err, l.Last())
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestASpareFileThatIsThereIsTaken: none is made beside one that was a segment.
func TestASpareFileThatIsThereIsTaken(t *testing.T) {
	d := newDisk(t, nil)
	l, _, err := open(d, "/log", Options{Policy: holdfast.Durable(), SegmentSize: 2 * leastSegment})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	made := func() (n int) {
		l.background.Wait()
		for _, c := range d.Calls() {
			if c.Op == fault.DiskRename && path.Base(c.Path) == spareMaking {
				n++
			}
		}
		return n
	}
	until := func(enough func() bool) (last uint64) {
		for !enough() {
			if last, err = l.Append(make([]byte, 700)); err != nil {
				t.Fatal(err)
			}
		}
		return last
	}
	last := until(func() bool { return l.head.epoch == 3 })
	before := made()
	if err := l.TruncateBefore(last); err != nil { // the next file is not prepared yet
		t.Fatal(err)
	}
	until(func() bool { return l.head.end > 3*int64(l.head.size)/4 })
	if after := made(); l.head.epoch != 3 || after != before {
		t.Errorf("%d files were made, and then %d; segment %d", before, after, l.head.epoch)
	}
}
