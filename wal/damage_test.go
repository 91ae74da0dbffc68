//go:build go1.25

package wal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// aLog returns the files of a log of some segments and its records. Only a closed one has
// the mark at its end.
func aLog(t testing.TB, closed bool) (files map[string][]byte, records [][]byte) {
	d := newDisk(t, nil)
	l, _, err := open(d, "/log", Options{Policy: holdfast.Durable(), SegmentSize: leastSegment})
	if err != nil {
		t.Fatal(err)
	}
	r, n := rand.New(rand.NewPCG(1, 1)), 0
	for l.head.epoch < 4 || l.head.end < headerSize+2000 {
		batch := batchOf(r, &n)
		if _, err := l.Append(batch...); err != nil {
			t.Fatal(err)
		}
		records = append(records, batch...)
	}
	if closed {
		l.Close()
		return d.ProcessCrash().Files, records
	}
	defer l.Close()
	return d.ProcessCrash().Files, records
}

// reopen opens files as a log, and returns its records.
func reopen(t testing.TB, files map[string][]byte) (found Recovery, records [][]byte, err error) {
	t.Helper()
	defer func() {
		if err := agrees(files, found.First, records, err); err != nil {
			t.Error(err)
		}
	}()
	d := newDisk(t, &fault.Image{Files: files})
	l, found, err := open(d, "/log", Options{SegmentSize: leastSegment})
	if err != nil {
		return found, nil, err
	}
	defer l.Close()
	records, err = recordsOf(l, found.First)
	return found, records, err
}

// TestDamageIsNeverTakenForATornEnd changes one byte after another of a log that was closed:
// all its records are there, or the damage is reported.
func TestDamageIsNeverTakenForATornEnd(t *testing.T) {
	isolate.Once(t)
	files, records := aLog(t, true)
	reported, stride := 0, 18
	if testing.Short() || isolate.RaceEnabled {
		stride = 90
	}
	for name, data := range files {
		if !strings.HasSuffix(name, segmentSuffix) {
			continue
		}
		for at := 0; at < len(data); at += 1 + stride*min(1, at/headerUsed) {
			if at == headerUsed {
				at = headerSize - 8
			}
			changed := maps.Clone(files)
			changed[name] = bytes.Clone(data)
			changed[name][at] ^= 0x20
			found, got, err := reopen(t, changed)
			var damage *DamageError
			switch {
			case errors.As(err, &damage):
				reported++
				if damage.Offset > int64(at) || filepath.ToSlash(damage.Path) != name || at >= headerSize && damage.Index > uint64(len(records))+1 { // the mark of Close is behind the last
					t.Fatalf("%s, byte %d: %v", name, at, damage)
				}
			case err != nil:
				t.Fatalf("%s, byte %d: %v", name, at, err)
			case fmt.Sprint(got) != fmt.Sprint(records):
				t.Fatalf("%s, byte %d: %+v, of %d records", name, at, found, len(records))
			}
		}
	}
	if reported < 80 {
		t.Errorf("only %d were reported", reported)
	}
}

// TestDamageInTheLastBatchOfAClosedLogIsReported where the mark of Close is hard to place: the
// segment is full, or TruncateBefore has written the last frame.
func TestDamageInTheLastBatchOfAClosedLogIsReported(t *testing.T) {
	isolate.Once(t)
	record := bytes.Repeat([]byte{0xab}, 1000)
	closed := func(again bool, name string, fill func(l *Log) error) {
		t.Helper()
		d := newDisk(t, nil)
		l, _, err := open(d, "/log", small)
		if err != nil {
			t.Fatal(err)
		}
		err = fill(l)
		killed := d.ProcessCrash()
		if err := errors.Join(err, l.Close()); err != nil {
			t.Fatal(err)
		}
		if again {
			d = newDisk(t, killed)
			if l, _, err = open(d, "/log", small); err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
		files := d.ProcessCrash().Files
		want, records, err := reopen(t, files)
		if err != nil {
			t.Fatal(err)
		}
		for segment, data := range files {
			for at := headerSize; at < len(bytes.TrimRight(data, "\x00")) && strings.HasSuffix(segment, segmentSuffix); at += 11 {
				changed := maps.Clone(files)
				changed[segment] = bytes.Clone(data)
				changed[segment][at] ^= 1
				found, got, err := reopen(t, changed)
				same := err == nil && found.First == want.First && fmt.Sprint(got) == fmt.Sprint(records)
				if !same && !errors.As(err, new(*DamageError)) {
					t.Fatalf("%s: %s, byte %d: %+v, want %+v, %v", name, segment, at, found, want, err)
				}
			}
		}
	}
	check := func(name string, fill func(l *Log) error) {
		t.Helper()
		closed(false, name, fill)
		closed(true, name+", killed and opened again", fill)
	}
	const room = leastSegment - headerSize
	frame := int(frameSize(4 + len(record)))
	for _, rest := range []int{room % frame, int(frameSize(markSize)), int(frameSize(markSize)) - frameAlign, 0} {
		check(fmt.Sprintf("%d bytes are left", rest), func(l *Log) (err error) {
			for range room/frame - 1 {
				_, err = l.Append(record)
			}
			_, failed := l.Append(make([]byte, room%frame+frame-rest-frameHeader-4))
			return errors.Join(err, failed)
		})
	}
	check("a mark in the same write", func(l *Log) error {
		_, err := l.Append([]byte("a"), []byte("b"))
		_, failed := l.Enqueue(record)
		return errors.Join(err, failed, l.TruncateBefore(2))
	})
	check("a mark at the end", func(l *Log) error {
		_, err := l.Append([]byte("a"), []byte("b"))
		return errors.Join(err, l.TruncateBefore(2))
	})
	check("nothing but a mark in the last segment", func(l *Log) error {
		_, err := l.Append([]byte("a"), []byte("b"), []byte("c"))
		return errors.Join(err, l.TruncateAfter(2), l.TruncateBefore(2))
	})
}

// TestATornEndIsCutAndCounted takes bytes from the last batch of a log that was not closed.
func TestATornEndIsCutAndCounted(t *testing.T) {
	files, records := aLog(t, false)
	const name = "/log/0000000000000004.wal"
	data := bytes.Clone(files[name])
	end := len(bytes.TrimRight(data, "\x00"))
	data[end-1] ^= 1
	files[name] = data
	found, got, err := reopen(t, files)
	if err != nil || found.Torn == 0 || len(got) >= len(records) || int(found.Last) != len(got) || fmt.Sprint(got) != fmt.Sprint(records[:len(got)]) {
		t.Fatalf("%+v, %d of %d records, %v", found, len(got), len(records), err)
	}
}

// TestWhatWasCutNeverComesBack has a batch. A crash has taken its first record and
// left the second. The next record is as long as the first.
func TestWhatWasCutNeverComesBack(t *testing.T) {
	for _, next := range []string{"12345", "", strings.Repeat("x", 100)} {
		d := newDisk(t, nil)
		l, _, err := open(d, "/log", small)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Append([]byte("first")); err != nil {
			t.Fatal(err)
		}
		at := l.head.end
		for _, record := range []string{"taken", "whole"} {
			if _, err := l.Enqueue([]byte(record)); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Wait(context.Background(), 3); err != nil {
			t.Fatal(err)
		}
		files := d.ProcessCrash().Files
		l.Close()
		files["/log/"+segmentName(1)][at+frameHeader] ^= 1
		d = newDisk(t, &fault.Image{Files: files})
		for round := range 3 {
			l, found, err := open(d, "/log", small)
			if err != nil || found.Last != 1+uint64(round) || (found.Torn > 0) != (round == 0) {
				t.Fatalf("%+v, %v", found, err)
			}
			if _, err := l.Append([]byte(next)); err != nil {
				t.Fatal(err)
			}
			d = newDisk(t, d.ProcessCrash())
			l.Close()
		}
	}
}

// TestAFrameWhoseLengthsDontFitIsNotWhole, though its checksum does.
func TestAFrameWhoseLengthsDontFitIsNotWhole(t *testing.T) {
	files, records := aLog(t, false)
	name := "/log/" + segmentName(4)
	var h header
	if wrong := h.decode(files[name]); wrong != "" {
		t.Fatal(wrong)
	}
	for _, spoil := range []func(f []byte){
		func(f []byte) { binary.LittleEndian.PutUint32(f[12:], 1<<31) }, // records
		func(f []byte) { binary.LittleEndian.PutUint32(f[12:], 0) },     // a mark
		func(f []byte) { binary.LittleEndian.PutUint32(f[frameHeader:], 1<<31) },
		func(f []byte) { binary.LittleEndian.PutUint32(f[frameHeader:], 0) },
	} {
		data := bytes.Clone(files[name])
		f := data[headerSize:]
		spoil(f)
		secretOf(h.id, h.key).finish(f, headerSize)
		changed := maps.Clone(files)
		changed[name] = data
		var damage *DamageError
		if found, got, err := reopen(t, changed); !errors.As(err, &damage) {
			t.Errorf("%+v, %d of %d records, %v", found, len(got), len(records), err)
		}
	}
}

// TestFramesBehindATornOneAreFoundWhereTheyMayBegin also where a read of the segment ends, and takes
// nothing between these places for one.
func TestFramesBehindATornOneAreFoundWhereTheyMayBegin(t *testing.T) {
	isolate.Once(t)
	h := header{size: 4 * recoverChunk, epoch: 1, first: 1, low: 1}
	first := appendFrame(nil, 1, [][]byte{[]byte("first")}, 0)
	k := secretOf(h.id, h.key)
	k.finish(first, headerSize)
	third := appendFrame(nil, 3, [][]byte{[]byte("third")}, 0)
	for at := headerSize + recoverChunk - 2*frameHeader; at < headerSize+recoverChunk+2*frameHeader; at++ {
		data := make([]byte, h.size)
		copy(data, h.encode())
		copy(data[headerSize:], first)
		k.finish(third, int64(at))
		copy(data[at:], third)
		d := newDisk(t, &fault.Image{Files: map[string][]byte{"/log/" + segmentName(1): data}})
		l, found, err := open(d, "/log", small)
		if at%frameAlign == 0 && !errors.As(err, new(*DamageError)) {
			t.Errorf("a frame at %d: %+v, %v", at, found, err)
		}
		if at%frameAlign != 0 && (err != nil || found.Records != 1 || found.Bytes != 5) {
			t.Errorf("bytes like a frame's at %d: %+v, %v", at, found, err)
		}
		if err == nil {
			l.Close()
		}
	}
}

func TestMissingSegmentsAreDamage(t *testing.T) {
	files, _ := aLog(t, true)
	for _, epoch := range []uint64{1, 2, 3} {
		some := maps.Clone(files)
		delete(some, "/log/"+segmentName(epoch))
		if _, found, err := open(newDisk(t, &fault.Image{Files: some}), "/log", small); !errors.As(err, new(*DamageError)) {
			t.Errorf("without segment %d: %+v, %v", epoch, found, err)
		}
	}
	other, _ := aLog(t, true)
	files["/log/"+segmentName(2)] = other["/log/"+segmentName(2)]
	if _, _, err := open(newDisk(t, &fault.Image{Files: files}), "/log", small); err == nil || !strings.Contains(err.Error(), "another log") {
		t.Errorf("with another log's segment: %v", err)
	}
}

// TestAMissingSegmentIsNoticedWhereOthersFitTogether: TruncateAfter has cut the first segment, whose file has the indices of the
// second. Both the header of the third and the seal of the first say that there was one.
func TestAMissingSegmentIsNoticedWhereOthersFitTogether(t *testing.T) {
	d := newDisk(t, nil)
	l, _, err := open(d, "/log", small)
	if err != nil {
		t.Fatal(err)
	}
	add := func(n int, what string) {
		for range n {
			if _, err := l.Append([]byte(what)); err != nil {
				t.Fatal(err)
			}
		}
	}
	add(10, "old")
	if err := l.TruncateAfter(3); err != nil {
		t.Fatal(err)
	}
	add(3, "new")
	add(1, strings.Repeat("large", 800))
	files := d.ProcessCrash().Files
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, closed := range []bool{false, true} {
		for missing := uint64(1); missing <= 3; missing++ {
			for _, lacks := range []string{"", "seal", "link"} {
				if closed {
					files = d.ProcessCrash().Files
				}
				some := maps.Clone(files)
				delete(some, "/log/"+segmentName(missing))
				first, third := "/log/"+segmentName(1), "/log/"+segmentName(3)
				if lacks == "seal" && missing == 2 {
					some[first] = append(bytes.Clone(some[first][:sealAt]), make([]byte, len(some[first])-sealAt)...)
					copy(some[first][headerSize:], files[first][headerSize:])
				}
				if lacks == "link" && missing == 2 {
					some[third] = rewritten(some[third], func(h []byte) { h[72] = 1; copy(h[80:], files[first][64:72]) })
				}
				var damage *DamageError
				if found, got, err := reopen(t, some); !errors.As(err, &damage) {
					t.Errorf("without segment %d, lacking %q, closed=%v: %+v, %.8q", missing, lacks, closed, found, got)
				}
			}
		}
	}
}

// TestAShortenedSegmentIsDamage also the last one, whose torn end would be cut. A segment has its whole
// size from the start.
func TestAShortenedSegmentIsDamage(t *testing.T) {
	for _, closed := range []bool{true, false} {
		files, _ := aLog(t, closed)
		for epoch := uint64(1); epoch <= 4; epoch++ {
			name := "/log/" + segmentName(epoch)
			for _, size := range []int{0, headerUsed, headerSize, headerSize + 1000, leastSegment - 1} {
				short := maps.Clone(files)
				short[name] = files[name][:size]
				var damage *DamageError
				if found, _, err := reopen(t, short); !errors.As(err, &damage) || filepath.ToSlash(damage.Path) != name {
					t.Errorf("segment %d of %d bytes: %+v, %v", epoch, size, found, err)
				}
			}
		}
	}
}

// shrinking has another program cut a segment when it is opened to be written.
type shrinking struct {
	*fault.Disk
	cut bool
}

func (d *shrinking) OpenFile(dir int, name sys.Name, flag int, perm uint32) (int, error) {
	d.cut = d.cut || flag&os.O_RDWR != 0 && strings.HasSuffix(name.String(), segmentSuffix)
	return d.Disk.OpenFile(dir, name, flag, perm)
}

func (d *shrinking) ReadAt(fd int, p []byte, at int64) (int, error) {
	if d.cut {
		return 0, nil
	}
	return d.Disk.ReadAt(fd, p, at)
}

// TestASegmentThatIsCutWhileItIsOpenedIsAnError, and not a wait for bytes that do not come.
func TestASegmentThatIsCutWhileItIsOpenedIsAnError(t *testing.T) {
	files, _ := aLog(t, false)
	d := &shrinking{Disk: newDisk(t, &fault.Image{Files: files})}
	if _, _, err := open(d, "/log", small); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

// TestAFrameOfAnotherLogIsNone puts what another log has at this place behind a log's end.
func TestAFrameOfAnotherLogIsNone(t *testing.T) {
	name := "/log/" + segmentName(1)
	of := func(records ...string) (segment []byte, end int64) {
		d := newDisk(t, nil)
		l, _, err := open(d, "/log", small)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		for _, r := range records {
			end = l.head.end
			if _, err := l.Append([]byte(r)); err != nil {
				t.Fatal(err)
			}
		}
		return bytes.Clone(d.ProcessCrash().Files[name]), end
	}
	mine, _ := of("mine")
	others, second := of("here", "here")
	copy(mine[second:], others[second:])
	found, records, err := reopen(t, map[string][]byte{name: mine})
	if err != nil || found.Last != 1 || len(records) != 1 || string(records[0]) != "mine" {
		t.Errorf("%+v, %q, %v", found, records, err)
	}
}

// TestScanGoesOnBehindDamage counts what is whole.
func TestScanGoesOnBehindDamage(t *testing.T) {
	files, records := aLog(t, true)
	name := "/log/" + segmentName(2)
	data := bytes.Clone(files[name])
	data[headerSize+500] ^= 1
	files[name] = data
	d := newDisk(t, &fault.Image{Files: files})
	var damages []*DamageError
	whole := 0
	found, err := scan(d, "/log", func(r Record, damage *DamageError) bool {
		if damage != nil {
			damages = append(damages, damage)
			return true
		}
		if !bytes.Equal(r.Data, records[r.Index-1]) {
			t.Errorf("record %d is wrong", r.Index)
		}
		whole++
		return true
	})
	if err != nil || len(damages) != 1 || whole >= len(records) || whole < len(records)-3 || found.Records != int64(whole) || found.Last != uint64(len(records)) {
		t.Errorf("%+v, %d of %d, %v, %v", found, whole, len(records), damages, err)
	}
	if filepath.ToSlash(damages[0].Path) != name || damages[0].Offset < headerSize {
		t.Error(damages[0])
	}
}

// FuzzSegments changes bytes of a log anyhow: an error, or records that were appended from
// the first on, and no other.
func FuzzSegments(f *testing.F) {
	files, records := aLog(f, false)
	f.Add(uint8(4), uint16(headerSize+20), []byte{1, 2, 3}, false)
	f.Add(uint8(4), uint16(headerSize), make([]byte, 100), false)
	f.Add(uint8(1), uint16(0), []byte("hfastwal"), true)
	f.Add(uint8(2), uint16(headerSize+8), []byte{2}, true)
	f.Add(uint8(0), uint16(0), []byte("0"), true) // a file in front of the first segment
	f.Add(uint8(4), uint16(headerSize+1000), files["/log/"+segmentName(4)][headerSize:headerSize+600], false)
	f.Fuzz(func(t *testing.T, epoch uint8, at uint16, data []byte, cut bool) {
		name := "/log/" + segmentName(uint64(epoch))
		changed := maps.Clone(files)
		was := bytes.Clone(changed[name])
		if int(at) <= len(was) {
			n := copy(was[at:], data)
			if cut {
				was = was[:int(at)+n]
			}
		}
		changed[name] = was
		found, got, err := reopen(t, changed)
		if err != nil {
			return
		}
		for i, r := range got {
			if index := found.First + uint64(i); index > uint64(len(records)) || !bytes.Equal(r, records[index-1]) {
				t.Fatalf("record %d is %.30q", index, r)
			}
		}
	})
}
