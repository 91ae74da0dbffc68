package result

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"hash/adler32"
	"io"
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// An unpacker decodes histograms of this program's own range, with the same room for each. For
// all others it is not ok; hdrhistogram.Decode knows them. It is for one goroutine.
type unpacker struct {
	base64, counts []byte
	source         bytes.Reader
	inflate        io.ReadCloser
}

// A bin is how often the times of one place of NewHistogram's counts were seen.
type bin struct {
	at int
	n  int64
}

const (
	countsLength = 3968 // of NewHistogram
	headerLength = 40
	mostBytes    = headerLength + 9*countsLength
)

// unpack appends the bins that are not empty, in their order.
func (u *unpacker) unpack(text []byte, to []bin) (bins []bin, ok bool) {
	var err error
	u.base64, err = base64.StdEncoding.AppendDecode(u.base64[:0], text)
	if err != nil || len(u.base64) < 8 || !isV2(u.base64, hdrhistogram.V2CompressedEncodingCookieBase) ||
		int(binary.BigEndian.Uint32(u.base64[4:])) != len(u.base64)-8 {
		return to, false
	}
	counts, ok := stored(u.base64[8:])
	if !ok {
		counts, ok = u.inflated(u.base64[8:])
	}
	if !ok || len(counts) < headerLength {
		return to, false
	}
	header, counts := counts[:headerLength], counts[headerLength:]
	if !isV2(header, hdrhistogram.V2EncodingCookieBase) || int(binary.BigEndian.Uint32(header[4:])) != len(counts) ||
		binary.BigEndian.Uint32(header[12:]) != digits || binary.BigEndian.Uint64(header[16:]) != 1 || binary.BigEndian.Uint64(header[24:]) != uint64(longestNs) {
		return to, false
	}
	return binsOf(counts, to)
}

// stored returns what is in a stream of zlib's that [pack] has made.
func stored(stream []byte) (text []byte, ok bool) {
	size := len(stream) - len(storedBegin) - 8
	if size < 0 || !bytes.HasPrefix(stream, storedBegin) {
		return nil, false
	}
	sizes, rest := stream[len(storedBegin):], stream[len(storedBegin)+4:]
	return rest[:size], int(binary.LittleEndian.Uint16(sizes)) == size && binary.LittleEndian.Uint16(sizes[2:]) == ^uint16(size) &&
		binary.BigEndian.Uint32(rest[size:]) == adler32.Checksum(rest[:size])
}

// inflated decompresses a stream of zlib's.
func (u *unpacker) inflated(stream []byte) (text []byte, ok bool) {
	u.source.Reset(stream)
	var err error
	if u.inflate == nil {
		if u.inflate, err = zlib.NewReader(&u.source); err != nil {
			return nil, false
		}
		u.counts = make([]byte, mostBytes)
	} else {
		err = u.inflate.(zlib.Resetter).Reset(&u.source, nil)
	}
	n := 0
	for err == nil && n < mostBytes {
		var more int
		more, err = u.inflate.Read(u.counts[n:])
		n += more
	}
	return u.counts[:n], err == io.EOF // then the checksum is right
}

func isV2(text []byte, base int32) bool {
	return int32(binary.BigEndian.Uint32(text))&^0xf0 == base
}

// pack encodes a NewHistogram in V2's compressed form, but with a stored block of zlib's (RFC 1951, 3.2.4). To
// compress some hundred bytes saves a quarter of them, and takes as long to read again as all else of a trial.
func pack(h *hdrhistogram.Histogram) (text []byte, ok bool) {
	counts := make([]byte, headerLength, 512)
	zeros := int64(0)
	for _, n := range h.Export().Counts {
		if n > mostCount {
			return nil, false
		}
		if n == 0 {
			zeros++
			continue
		}
		switch { // zeros at the end are left out
		case zeros == 1:
			counts = append(counts, 0)
		case zeros > 1:
			counts = binary.AppendVarint(counts, -zeros)
		}
		counts, zeros = binary.AppendVarint(counts, n), 0
	}
	binary.BigEndian.PutUint32(counts, uint32(hdrhistogram.V2EncodingCookieBase|0x10))
	binary.BigEndian.PutUint32(counts[4:], uint32(len(counts)-headerLength))
	binary.BigEndian.PutUint32(counts[12:], digits)
	binary.BigEndian.PutUint64(counts[16:], 1)
	binary.BigEndian.PutUint64(counts[24:], uint64(longestNs))
	binary.BigEndian.PutUint64(counts[32:], math.Float64bits(1)) // a value is in its own unit
	size := uint16(len(counts))
	stream := binary.BigEndian.AppendUint32(nil, uint32(hdrhistogram.V2CompressedEncodingCookieBase|0x10))
	stream = binary.BigEndian.AppendUint32(stream, uint32(len(storedBegin)+4+len(counts)+4))
	stream = append(stream, storedBegin...)
	stream = binary.LittleEndian.AppendUint16(stream, size)
	stream = binary.LittleEndian.AppendUint16(stream, ^size)
	stream = append(stream, counts...)
	stream = binary.BigEndian.AppendUint32(stream, adler32.Checksum(counts))
	return base64.StdEncoding.AppendEncode(nil, stream), true
}

// storedBegin says deflate with the fastest level, then a last block that is stored.
var storedBegin = []byte{0x78, 0x01, 0x01}

// mostCount is the most that can be added up, and that a varint has as V2 does.
const mostCount = 1 << 40

// binsOf appends the bins of counts as V2 has them.
func binsOf(counts []byte, to []bin) (bins []bin, ok bool) {
	for i := 0; len(counts) > 0; {
		u, n := uint64(counts[0]), 1
		if u >= 0x80 { // of most counts one byte is all
			if u, n = binary.Uvarint(counts); n <= 0 || n > 8 { // the ninth byte has another form
				return to, false
			}
		}
		counts = counts[n:]
		switch count := int64(u>>1) ^ -int64(u&1); { // zigzag
		case count > mostCount || count > 0 && i >= countsLength:
			return to, false
		case count > 0:
			to = append(to, bin{i, count})
			i++
		case count == 0:
			i++
		case count < -countsLength || i-int(count) > countsLength:
			return to, false
		default:
			i -= int(count) // so many zeros
		}
	}
	return to, true
}

// valueAt returns the value in the middle of a place of NewHistogram's counts.
func valueAt(i int) int64 {
	const half = 128 // of the places of a power of two
	if i < half {
		return int64(i)
	}
	shift := i/half - 1
	return int64(i%half+half)<<shift + int64(1)<<shift>>1
}

// A sum is the distribution of the times of several trials together.
type sum struct {
	counts [countsLength]int64
	trials int
}

func (s *sum) add(bins []bin) {
	for _, b := range bins {
		s.counts[b.at] += b.n
	}
	s.trials++
}

// addTo adds it to a NewHistogram.
func (s *sum) addTo(all *hdrhistogram.Histogram) {
	for i, n := range s.counts {
		if n > 0 {
			// The value is within the range, so there is no error.
			_ = all.RecordValues(valueAt(i), n)
		}
	}
}

// A sumOf names one of a run's sums: of each cell and kind of latency.
type sumOf struct {
	cell string
	kind int
}
