//go:build go1.25

package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"runtime"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// counting counts the bytes that are read of segments' frames.
type counting struct {
	*fault.Disk
	read int64
}

func (d *counting) ReadAt(fd int, p []byte, at int64) (int, error) {
	n, err := d.Disk.ReadAt(fd, p, at)
	d.read += int64(n)
	return n, err
}

// openCounted opens and scans a log of one segment, and fails if Open reads more than twice the segment.
func openCounted(t *testing.T, segment []byte) (found Recovery, err error) {
	t.Helper()
	d := &counting{Disk: newDisk(t, &fault.Image{Files: map[string][]byte{"/log/" + segmentName(1): segment}})}
	most := 2*int64(len(segment)) + 4*headerSize
	_, scanErr := scan(d, "/log", func(Record, *DamageError) bool { return true })
	if scanErr != nil || d.read > 5*int64(len(segment)) { // it looks for a place to go on, too
		t.Errorf("Scan read %d bytes of a segment of %d: %v", d.read, len(segment), scanErr)
	}
	d.read = 0
	l, found, err := open(d, "/log", small)
	if d.read > most {
		t.Errorf("Open read %d bytes of a segment of %d", d.read, len(segment))
	}
	if err == nil {
		err = l.Close()
	}
	return found, err
}

// hostile is a segment with one record. Behind it, at each stride, stand headers of frames. They
// are whole if their writer knows the segment's secret, which only a reader of the file can.
func hostile(size int, claim, records uint32, index uint64, stride int, knows bool) []byte {
	h := header{size: uint32(size), epoch: 1, first: 1, low: 1, key: [8]byte{1, 2, 3, 4, 5, 6, 7, 8}}
	k := secretOf(h.id, h.key)
	segment := append(h.page(), make([]byte, size-headerSize)...)
	first := appendFrame(nil, 1, [][]byte{[]byte("first")}, 0)
	k.finish(first, headerSize)
	at := headerSize + copy(segment[headerSize:], first)
	for ; at+frameHeader <= size; at += max(frameAlign, stride&^(frameAlign-1)) {
		f := segment[at : at+frameHeader]
		binary.LittleEndian.PutUint32(f[4:], claim)
		binary.LittleEndian.PutUint32(f[12:], records)
		binary.LittleEndian.PutUint64(f[16:], index)
		binary.LittleEndian.PutUint32(f[24:], headerSize)
		if knows {
			binary.LittleEndian.PutUint32(f[8:], k.tag)
			binary.LittleEndian.PutUint32(f[28:], crc32.Update(k.seed, castagnoli(), f[4:28]))
		}
	}
	return segment
}

// TestHostileRecordsCostOpenNothing fills a segment behind its only record with bytes that a client
// could have put into records, and with bytes that a reader of the file could.
func TestHostileRecordsCostOpenNothing(t *testing.T) {
	isolate.Once(t)
	for _, size := range []int{64 << 10, 2 << 20} {
		for _, knows := range []bool{false, true} {
			for _, claim := range []int{0, 100, 5000, size / 2, size - 3*headerSize} {
				found, err := openCounted(t, hostile(size, uint32(claim), 1, 2, frameHeader, knows))
				switch {
				case err != nil:
					t.Errorf("%d of %d: %v", claim, size, err)
				case found.Records != 1 || (found.Torn > 0) != knows:
					t.Errorf("%d of %d: %+v", claim, size, found)
				}
			}
		}
	}
}

// TestClaimsTakeNoMemory: whatever a file claims, Open and Scan take memory only for the bytes that it
// has.
func TestClaimsTakeNoMemory(t *testing.T) {
	isolate.Once(t)
	const size, billion = 64 << 10, 1_000_000_000
	check := func(what string, segment []byte) {
		t.Helper()
		files := map[string][]byte{"/log/" + segmentName(1): segment}
		var before, after runtime.MemStats
		d := newDisk(t, &fault.Image{Files: files})
		runtime.ReadMemStats(&before)
		_, scanned := scan(d, "/log", func(Record, *DamageError) bool { return true })
		l, found, err := open(d, "/log", small)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
			t.Errorf("%s: %d bytes of memory for a file of %d: %+v, %v, %v", what, took, size, found, scanned, err)
		}
		if err == nil {
			l.Close()
		}
	}
	for _, n := range []uint32{billion, 1<<32 - 1} {
		check("bytes of a frame", hostile(size, n, 1, 2, frameHeader, true))
		check("records of a frame", hostile(size, size/2, n, 2, frameHeader, true))
		check("index", hostile(size, 100, 1, uint64(n)<<20, frameHeader, true))
		h := header{size: n, epoch: billion, first: billion, low: 1, prior: link{epoch: billion - 1}}
		check("size of a segment", append(h.page(), make([]byte, size-headerSize)...))
	}
}

// TestFramesOfARecycledFileAreNone: a client gets the files of a log, and appends them as records. The file that
// holds these is used again.
func TestFramesOfARecycledFileAreNone(t *testing.T) {
	d := newDisk(t, nil)
	l, _, err := open(d, "/log", small)
	if err != nil {
		t.Fatal(err)
	}
	for l.head.epoch < 12 {
		copied := bytes.TrimRight(d.ProcessCrash().Files["/log/"+segmentName(l.head.epoch)][headerSize:], "\x00")
		record := make([]byte, 4, 1500) // with the frame's header and one length: frames stand where frames do
		if len(copied) > 1400 {
			copied = copied[:1400]
		}
		if _, err := l.Append(append(record, copied...)); err != nil {
			t.Fatal(err)
		}
		if l.head.end < headerSize+2000 {
			if err := l.TruncateBefore(l.Last()); err != nil {
				t.Fatal(err)
			}
		}
	}
	files := d.ProcessCrash().Files
	last := l.Last()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	found, _, err := reopen(t, files)
	if err != nil || found.Last != last || found.Torn != 0 {
		t.Errorf("%+v, %v; want the last %d", found, err, last)
	}
}

// FuzzHostileRecords fills a segment with headers that claim anything.
func FuzzHostileRecords(f *testing.F) {
	f.Add(uint32(1<<15), uint64(2), uint8(32), true)
	f.Add(uint32(8), uint64(1), uint8(8), false)
	f.Add(uint32(0xffffffff), uint64(1<<63), uint8(40), true)
	f.Fuzz(func(t *testing.T, claim uint32, index uint64, stride uint8, knows bool) {
		found, err := openCounted(t, hostile(64<<10, claim, 1, index, int(stride), knows))
		if knows && errors.As(err, new(*DamageError)) {
			return
		}
		if err != nil || found.Records != 1 || !knows && found.Torn > 0 {
			t.Error(fmt.Sprintf("%+v", found), err)
		}
	})
}

// TestASegmentIsLikeNoOther: nothing of a log's secrets can be guessed from another one's, or from an
// earlier segment's.
func TestASegmentIsLikeNoOther(t *testing.T) {
	seen := map[string]bool{}
	for range 2 {
		d := newDisk(t, nil)
		l, _, err := open(d, "/log", Options{Policy: holdfast.Durable(), SegmentSize: leastSegment})
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			if _, err := l.Append(make([]byte, 4000)); err != nil {
				t.Fatal(err)
			}
		}
		l.Close()
		for _, data := range d.ProcessCrash().Files {
			if len(data) > headerSize {
				seen[string(data[64:72])] = true
			}
		}
	}
	if len(seen) < 8 {
		t.Errorf("only %d different keys", len(seen))
	}
}
