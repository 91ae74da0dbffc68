// Package crash crashes programs that write. It judges survivors by two things only: the
// acknowledgements, and the policy's allowed loss ([holdfast.Policy.Loss]).
//
// It has one language for all levels. A [Record] is a written record, a [Note] is the program's
// knowledge of it, an [Entry] is a step that reached the disk. A [Log] has notes and entries in
// their order. An explorer makes crash states of a log, a [Checker] judges each. A level fills the
// log, or, where the crash is real, hands over what the crash left.
//
// It knows nothing of how holdfast works: a [Workload] writes with it, or with anything else. The caller has
// the workloads.
//
// Start with [Prove], [Workload], [Program] and [Checker].
package crash

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// A Record is the header of a record that a workload writes: one of a stream, or a whole file.
//
// In a file of streams the records of one ID have the numbers 0, 1, 2 and so on. A file that
// is an object is exactly one record, and N is its version.
type Record struct {
	ID   uint32
	N    uint64
	At   int64 // when it was made, in nanoseconds
	Size int   // in all, header included
}

// HeaderSize is the least size of a record: magic, length, ID, CRC-32C, number, time.
const HeaderSize = 32

const magic = 0x486f6c64

// Append appends the record to b.
func (r Record) Append(b []byte) []byte {
	size := max(r.Size, HeaderSize)
	from := len(b)
	b = append(b, make([]byte, size)...)
	p := b[from:]
	binary.LittleEndian.PutUint32(p, magic)
	binary.LittleEndian.PutUint32(p[4:], uint32(size))
	binary.LittleEndian.PutUint32(p[8:], r.ID)
	binary.LittleEndian.PutUint64(p[16:], r.N)
	binary.LittleEndian.PutUint64(p[24:], uint64(r.At))
	for i := HeaderSize; i < size; i++ {
		p[i] = byte(r.N) + byte(i) | 1 // never zero, which a hole is
	}
	binary.LittleEndian.PutUint32(p[12:], checksum(p))
	return b
}

func checksum(p []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli) // it is made at the first call
	return crc32.Update(crc32.Checksum(p[:12], table), table, p[16:])
}

// HasRecord reports whether a record begins somewhere in b, whose rest may be missing.
func HasRecord(b []byte) bool {
	const most = 1 << 26 // bytes of a record
	for {
		at := bytes.Index(b, binary.LittleEndian.AppendUint32(nil, magic))
		if at < 0 || len(b)-at < HeaderSize {
			return false
		}
		if b = b[at:]; binary.LittleEndian.Uint32(b[4:]) >= HeaderSize && binary.LittleEndian.Uint32(b[4:]) <= most {
			return true
		}
		b = b[1:]
	}
}

// ReadRecord reads the record at the beginning of b. It is not ok if that is none, or not whole.
func ReadRecord(b []byte) (r Record, ok bool) {
	if len(b) < HeaderSize || binary.LittleEndian.Uint32(b) != magic {
		return r, false
	}
	size := binary.LittleEndian.Uint32(b[4:])
	if size < HeaderSize || uint64(size) > uint64(len(b)) || binary.LittleEndian.Uint32(b[12:]) != checksum(b[:size]) {
		return r, false
	}
	return Record{
		ID:   binary.LittleEndian.Uint32(b[8:]),
		N:    binary.LittleEndian.Uint64(b[16:]),
		At:   int64(binary.LittleEndian.Uint64(b[24:])),
		Size: int(size),
	}, true
}
