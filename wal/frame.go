package wal

import (
	"encoding/binary"
	"hash/crc32"
	"iter"
	"math"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// The layout of a segment: docs/wal.md describes it to the byte. All numbers are
// little-endian.
const (
	magic   = "hfastwal"
	version = 1

	// headerSize is where the first frame begins: no frame shares a page with the header.
	headerSize = 4096
	headerUsed = 64

	frameHeader = 32
	frameAlign  = 8 // a multiple of it is where each frame begins
	markSize    = 8 // the body of a mark

	// mostIndex is the largest index: no sum of an index and a count overflows.
	mostIndex = math.MaxInt64
)

// A frame is one Append: a batch of records with one checksum, so that all of it is there or
// nothing. One without records is a mark: see docs/wal.md.
type frame struct {
	index   uint64 // of its first record, or of the next one
	count   uint32 // of records
	durable uint32 // the segment was durable up to here when the frame was written
	body    []byte
}

// frameSize is how many bytes a frame with such a body takes.
func frameSize(body int) int64 {
	return (int64(frameHeader) + int64(body) + frameAlign - 1) &^ (frameAlign - 1)
}

// appendFrame appends a frame without epoch, durable and checksum: see finish.
func appendFrame(to []byte, index uint64, records [][]byte, low uint64) []byte {
	body := markSize
	if len(records) > 0 {
		body = bodySize(records)
	}
	at := len(to)
	to = append(to, make([]byte, frameHeader)...)
	binary.LittleEndian.PutUint32(to[at+4:], uint32(body))
	binary.LittleEndian.PutUint64(to[at+16:], index)
	binary.LittleEndian.PutUint32(to[at+24:], uint32(len(records)))
	if len(records) == 0 {
		to = binary.LittleEndian.AppendUint64(to, low)
	}
	for _, r := range records {
		to = binary.LittleEndian.AppendUint32(to, uint32(len(r)))
	}
	for _, r := range records {
		to = append(to, r...)
	}
	return append(to, make([]byte, int(frameSize(body))-(len(to)-at))...)
}

func bodySize(records [][]byte) int {
	n := 4 * len(records)
	for _, r := range records {
		n += len(r)
	}
	return n
}

// castagnoli returns the table of CRC-32C. It is made at the first call: that takes longer than all else
// that is done when a program starts.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// seedOf is where the checksums of a log begin, so that no frame of another log is valid.
func seedOf(id [16]byte) uint32 { return crc32.Checksum(id[:], castagnoli()) }

// plausible takes a frame's header apart, and reports whether it may be one of this epoch at
// this offset: its checksum is not looked at.
func (f *frame) plausible(b []byte, epoch uint64, at, size int64) (body int, ok bool) {
	if len(b) < frameHeader || binary.LittleEndian.Uint64(b[8:]) != epoch || binary.LittleEndian.Uint32(b[4:]) > mostSegment {
		return 0, false
	}
	body = int(binary.LittleEndian.Uint32(b[4:]))
	f.index = binary.LittleEndian.Uint64(b[16:])
	f.count = binary.LittleEndian.Uint32(b[24:])
	f.durable = binary.LittleEndian.Uint32(b[28:])
	return body, at+frameSize(body) <= size && int64(f.durable) <= at && f.durable >= headerSize &&
		f.index > 0 && f.index+uint64(f.count) >= f.index
}

// whole reports whether the body is as long as the frame says: a checksum that fits by
// chance is not enough.
func (f *frame) whole() bool {
	if f.count == 0 {
		return len(f.body) == markSize
	}
	if int64(f.count)*4 > int64(len(f.body)) {
		return false
	}
	sum := int64(f.count) * 4
	for i := range int(f.count) {
		sum += int64(binary.LittleEndian.Uint32(f.body[4*i:]))
	}
	return sum == int64(len(f.body))
}

// next is the index behind the frame.
func (f *frame) next() uint64 { return f.index + uint64(f.count) }

// records returns the records of a frame. Their bytes are the frame's.
func (f *frame) records() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		at := 4 * int(f.count)
		for i := range int(f.count) {
			n := int(binary.LittleEndian.Uint32(f.body[4*i:]))
			if !yield(Record{f.index + uint64(i), f.body[at : at+n : at+n]}) {
				return
			}
			at += n
		}
	}
}

// A window reads a segment a stretch at a time.
type window struct {
	disk  disk
	fd    int
	size  int64 // the segment's
	chunk int   // how much is read at once
	buf   []byte
	at    int64
}

// bytes returns at least n bytes from an offset on, and fewer where the segment ends. They are
// valid until the next call.
func (w *window) bytes(at int64, n int) ([]byte, error) {
	n = int(max(0, min(int64(n), w.size-at)))
	if at >= w.at && at+int64(n) <= w.at+int64(len(w.buf)) {
		return w.buf[at-w.at:], nil
	}
	want := int(min(int64(max(n, w.chunk)), w.size-at))
	if cap(w.buf) < want {
		w.buf = make([]byte, want)
	}
	w.buf, w.at = w.buf[:want], at
	got := 0
	for got < want {
		k := 0
		err := sys.Uninterrupted(func() (err error) {
			k, err = w.disk.ReadAt(w.fd, w.buf[got:], at+int64(got))
			return err
		})
		if err != nil {
			w.buf = w.buf[:0]
			return nil, err
		}
		if k == 0 {
			break
		}
		got += k
	}
	w.buf = w.buf[:got]
	return w.buf, nil
}

// frame returns the frame that begins at an offset, and where it ends, if it is whole.
func (w *window) frame(at int64, seed uint32, epoch uint64) (f frame, end int64, ok bool, err error) {
	b, err := w.bytes(at, frameHeader)
	if err != nil {
		return f, 0, false, err
	}
	body, ok := f.plausible(b, epoch, at, w.size)
	if !ok {
		return f, 0, false, nil
	}
	if len(b) < frameHeader+body {
		if b, err = w.bytes(at, frameHeader+body); err != nil || len(b) < frameHeader+body {
			return f, 0, false, err
		}
	}
	b = b[:frameHeader+body]
	if binary.LittleEndian.Uint32(b) != crc32.Update(seed, castagnoli(), b[4:]) {
		return f, 0, false, nil
	}
	f.body = b[frameHeader:]
	return f, at + frameSize(body), f.whole(), nil
}
