package wal

import (
	"encoding/binary"
	"hash/crc32"
	"iter"
	"math"
	"slices"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// The layout of a segment; docs/wal.md describes each byte. All numbers are little-endian.
const (
	magic   = "hfastwal"
	version = 2

	// headerSize is the offset of the first frame: no frame shares a page with the header.
	headerSize = 4096
	headerUsed = 96

	// The header's page. Each part has a sector of its own, so that a sector that is lost takes no
	// other part with it.
	sealAt = 512  // a copy of the next segment's header
	noteAt = 1024 // the note of Close
	copyAt = 2048 // a copy of the segment's own header

	frameHeader = 32
	frameAlign  = 8 // each frame begins at a multiple of it
	markSize    = 8 // the body of a mark

	// mostIndex is the largest index: an index plus a count never overflows.
	mostIndex = math.MaxInt64
)

// A frame is one Append: a batch of records under one checksum, so that recovery finds all of them
// or none. A frame without records is a mark: see docs/wal.md.
type frame struct {
	index   uint64 // the index of the first record; in a mark, of the next record
	count   uint32 // the number of records
	durable uint32 // the segment was durable up to here when the frame was written
	body    []byte
}

// frameSize is the size of a frame whose body has body bytes.
func frameSize(body int) int64 {
	return (int64(frameHeader) + int64(body) + frameAlign - 1) &^ (frameAlign - 1)
}

// appendFrame appends a frame without tag, durable and checksums: see finish.
func appendFrame(to []byte, index uint64, records [][]byte, low uint64) []byte {
	body := markSize
	if len(records) > 0 {
		body = bodySize(records)
	}
	at := len(to)
	to = slices.Grow(to, int(frameSize(body)))[:at+int(frameSize(body))]
	b := to[at:]
	clear(b[:frameHeader])
	binary.LittleEndian.PutUint32(b[4:], uint32(body))
	binary.LittleEndian.PutUint32(b[12:], uint32(len(records)))
	binary.LittleEndian.PutUint64(b[16:], index)
	b = b[frameHeader:]
	if len(records) == 0 {
		binary.LittleEndian.PutUint64(b, low)
		b = b[markSize:]
	}
	for _, r := range records {
		binary.LittleEndian.PutUint32(b, uint32(len(r)))
		b = b[4:]
	}
	for _, r := range records {
		b = b[copy(b, r):]
	}
	clear(b)
	return to
}

func bodySize(records [][]byte) int {
	n := 4 * len(records)
	for _, r := range records {
		n += len(r)
	}
	return n
}

// castagnoli returns the table of CRC-32C. It is made at the first call and not at a program's
// start, because making it takes longer than all else there.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// A secret is common to all frames of a segment, and nobody can guess it, because it comes from the
// segment's random key. So bytes in a record are never taken for a frame, and neither are older frames
// of a recycled file, or frames of another log.
type secret struct {
	tag   uint32 // stands in each frame
	seed  uint32 // the initial value of the checksums
	table *crc32.Table
}

func secretOf(id [16]byte, key [8]byte) secret {
	table := castagnoli()
	seed := crc32.Update(crc32.Checksum(id[:], table), table, key[:])
	return secret{tag: binary.LittleEndian.Uint32(key[:]), seed: seed, table: table}
}

// finish fills in the tag, durable and the checksums of a frame of appendFrame, and returns its
// size.
func (k secret) finish(b []byte, durable int64) int64 {
	body := int(binary.LittleEndian.Uint32(b[4:]))
	binary.LittleEndian.PutUint32(b[8:], k.tag)
	binary.LittleEndian.PutUint32(b[24:], uint32(durable))
	sum := crc32.Update(k.seed, k.table, b[4:28])
	binary.LittleEndian.PutUint32(b[28:], sum)
	binary.LittleEndian.PutUint32(b, crc32.Update(sum, k.table, b[frameHeader:frameHeader+body]))
	return frameSize(body)
}

// decode decodes a frame's header, and reports whether it is whole. The body is not checked.
func (f *frame) decode(b []byte, k secret, at, size int64) (body int, ok bool) {
	if len(b) < frameHeader || binary.LittleEndian.Uint32(b[8:]) != k.tag ||
		binary.LittleEndian.Uint32(b[28:]) != crc32.Update(k.seed, k.table, b[4:28]) {
		return 0, false
	}
	length := binary.LittleEndian.Uint32(b[4:])
	f.count = binary.LittleEndian.Uint32(b[12:])
	f.index = binary.LittleEndian.Uint64(b[16:])
	f.durable = binary.LittleEndian.Uint32(b[24:])
	if length > largest || at+frameSize(int(length)) > size || int64(f.durable) > at || f.durable < headerSize ||
		f.index == 0 || f.index+uint64(f.count) < f.index {
		return 0, false
	}
	return int(length), true
}

// whole reports whether the lengths of the records add up to the body: a checksum that fits by
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

// next is the index after the frame's last record.
func (f *frame) next() uint64 { return f.index + uint64(f.count) }

// records returns the records of a frame. Their Data aliases the frame's body.
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

// A window is a buffered reader at offsets of a segment.
type window struct {
	disk  disk
	fd    int
	size  int64 // the segment's
	chunk int   // bytes read at once
	most  int   // reads in order grow up to this; 0: they don't grow
	secret
	buf []byte
	at  int64
}

// bytes returns at least n bytes from an offset on, or fewer at the segment's end. They are valid
// until the next call.
func (w *window) bytes(at int64, n int) ([]byte, error) {
	if skip := at - w.at; skip >= 0 && skip+int64(n) <= int64(len(w.buf)) {
		return w.buf[skip:], nil
	}
	return w.read(at, n)
}

func (w *window) read(at int64, n int) ([]byte, error) {
	n = int(max(0, min(int64(n), w.size-at)))
	if at >= w.at && at+int64(n) <= w.at+int64(len(w.buf)) {
		return w.buf[at-w.at:], nil
	}
	if inOrder := len(w.buf) > 0 && at >= w.at && at <= w.at+int64(len(w.buf)); w.most > 0 && inOrder {
		w.chunk = min(2*w.chunk, w.most)
	} else if w.most > 0 {
		w.chunk = readLeast
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

// frame returns the frame at an offset, the offset of its end, and whether it is whole. It does not
// check the body of a frame whose records are all before an index.
func (w *window) frame(at int64, from uint64) (f frame, end int64, ok bool, err error) {
	b, err := w.bytes(at, frameHeader)
	if err != nil {
		return f, 0, false, err
	}
	body, ok := f.decode(b, w.secret, at, w.size)
	if !ok || f.next() <= from {
		return f, at + frameSize(body), ok, nil
	}
	if len(b) < frameHeader+body {
		if b, err = w.bytes(at, frameHeader+body); err != nil || len(b) < frameHeader+body {
			return f, 0, false, err
		}
	}
	f.body = b[frameHeader : frameHeader+body]
	sum := binary.LittleEndian.Uint32(b[28:])
	return f, at + frameSize(body), binary.LittleEndian.Uint32(b) == crc32.Update(sum, w.table, f.body) && f.whole(), nil
}
