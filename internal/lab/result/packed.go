package result

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"io"
	"iter"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// An unpacker decodes histograms of this program's own range, with the same room for each. For
// all others it is not ok; hdrhistogram.Decode knows them. It is for one goroutine.
type unpacker struct {
	text, base64, counts []byte
	source               bytes.Reader
	inflate              io.ReadCloser
}

const (
	countsLength = 3968 // of NewHistogram
	headerLength = 40
	mostBytes    = headerLength + 9*countsLength
)

// unpack returns the counts as V2 has them, for [all]. They are valid until the next call.
func (u *unpacker) unpack(text string) (counts []byte, ok bool) {
	u.text = append(u.text[:0], text...)
	var err error
	u.base64, err = base64.StdEncoding.AppendDecode(u.base64[:0], u.text)
	if err != nil || len(u.base64) < 8 || !isV2(u.base64, hdrhistogram.V2CompressedEncodingCookieBase) ||
		int(binary.BigEndian.Uint32(u.base64[4:])) != len(u.base64)-8 {
		return nil, false
	}
	u.source.Reset(u.base64[8:])
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
	if err != io.EOF || n < headerLength { // EOF: the checksum is right
		return nil, false
	}
	header := u.counts[:headerLength]
	counts = u.counts[headerLength:n]
	if !isV2(header, hdrhistogram.V2EncodingCookieBase) || int(binary.BigEndian.Uint32(header[4:])) != len(counts) ||
		binary.BigEndian.Uint32(header[12:]) != digits || binary.BigEndian.Uint64(header[16:]) != 1 || binary.BigEndian.Uint64(header[24:]) != uint64(longestNs) {
		return nil, false
	}
	for i, count := range all(counts) {
		if i < 0 || i >= countsLength || count < 0 || count > 1<<40 { // so many can be added up
			return nil, false
		}
	}
	return counts, true
}

func isV2(text []byte, base int32) bool {
	return int32(binary.BigEndian.Uint32(text))&^0xf0 == base
}

// all yields the counts that are not 0, by their places. A place of -1 is damage, and the last.
func all(counts []byte) iter.Seq2[int, int64] {
	return func(yield func(int, int64) bool) {
		for i := 0; len(counts) > 0; {
			u, n := binary.Uvarint(counts)
			if n <= 0 || n > 8 { // the ninth byte has another form
				yield(-1, 0)
				return
			}
			counts = counts[n:]
			switch count := int64(u>>1) ^ -int64(u&1); { // zigzag
			case count > 0:
				if !yield(i, count) {
					return
				}
				i++
			case count == 0:
				i++
			case count < -countsLength || i-int(count) > countsLength:
				yield(-1, 0)
				return
			default:
				i -= int(count) // so many zeros
			}
		}
	}
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

// meanOf is the mean of a histogram.
func meanOf(counts []byte) (mean float64) {
	total := int64(0)
	for _, count := range all(counts) {
		total += count
	}
	for i, count := range all(counts) {
		mean += float64(count) * float64(valueAt(i)) / float64(total)
	}
	return mean
}

// A sum is the distribution of the times of several trials together.
type sum struct {
	all    *hdrhistogram.Histogram
	trials int
}

func (s *sum) add(counts []byte) {
	for i, count := range all(counts) {
		// The value is within the range, so there is no error.
		_ = s.all.RecordValues(valueAt(i), count)
	}
	s.trials++
}

// A sumOf names one of a run's sums: of each cell and kind of latency.
type sumOf struct {
	cell string
	kind int
}

// merge adds the counts of a round's trials to the sums, and reports whether there were any.
// Those of a round that is not whole are in no figure, and are dropped.
func merge(sums map[sumOf]*sum, trials []Trial, whole bool) (any bool) {
	for i := range trials {
		t := &trials[i]
		for kind, l := range []*Latency{&t.Latency, t.Service, t.Replayed} {
			if l == nil || l.mean == 0 {
				continue
			}
			counts := []byte(l.Histogram)
			l.Histogram = ""
			if !whole {
				continue
			}
			of := sumOf{t.Cell, kind}
			if sums[of] == nil {
				sums[of] = &sum{all: NewHistogram()}
			}
			l.sum = sums[of]
			l.sum.add(counts)
			any = true
		}
	}
	return any
}
