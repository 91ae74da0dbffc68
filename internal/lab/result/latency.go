package result

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Latency is the distribution of the times of single Writes. A percentile is
// zero, and not in the file, where too few Writes were timed for it.
type Latency struct {
	Count int64         `json:"count"`
	P50   time.Duration `json:"p50_ns,omitempty"`
	P90   time.Duration `json:"p90_ns,omitempty"`
	P99   time.Duration `json:"p99_ns,omitempty"`
	P999  time.Duration `json:"p999_ns,omitempty"`
	Max   time.Duration `json:"max_ns"` // of those that were timed

	// Histogram is the whole distribution in HdrHistogram's V2 compressed
	// encoding (base64), values in nanoseconds.
	Histogram string `json:"hdr_histogram"`
}

// The range of the histograms: two digits are 1 %.
const (
	longestNs = int64(100 * time.Second)
	digits    = 2
)

// NewHistogram returns an empty histogram of nanoseconds.
func NewHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, longestNs, digits) }

// Record counts one time. A time beyond the range counts as the end of the range.
func Record(h *hdrhistogram.Histogram, d time.Duration) {
	// The value is within the range, so there is no error.
	_ = h.RecordValue(min(max(int64(d), 1), longestNs))
}

// NewLatency describes h; supports says whether n samples are enough for the
// p-quantile.
func NewLatency(h *hdrhistogram.Histogram, supports func(n int64, p float64) bool) (Latency, error) {
	l := Latency{Count: h.TotalCount()}
	if l.Count == 0 {
		return l, nil
	}
	text, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return l, fmt.Errorf("encode latencies: %w", err)
	}
	at := func(p float64) time.Duration {
		if !supports(l.Count, p) {
			return 0
		}
		return time.Duration(h.ValueAtPercentile(p * 100))
	}
	l.P50, l.P90, l.P99, l.P999 = at(0.5), at(0.9), at(0.99), at(0.999)
	l.Max, l.Histogram = time.Duration(h.Max()), string(text)
	return l, nil
}

// each calls add for each bucket of the distribution that has times: a value of the bucket, and how
// many there are. It calls nothing where nothing was timed. A report decodes each trial's, so
// this makes no histogram for those that [NewHistogram] has made.
func (l *Latency) each(add func(value, count int64) error) error {
	if l == nil || l.Count == 0 {
		return nil
	}
	d := decoders.Get().(*decoder)
	defer decoders.Put(d)
	err := d.decode(l.Histogram, add)
	if !errors.Is(err, errOtherRange) {
		return err
	}
	h, err := hdrhistogram.Decode([]byte(l.Histogram))
	if err != nil {
		return err
	}
	for _, bar := range h.Distribution() {
		if bar.Count > 0 {
			if err := add(bar.From, bar.Count); err != nil {
				return err
			}
		}
	}
	return nil
}

// A decoder reads HdrHistogram's V2 compressed encoding; its memory is used again.
type decoder struct {
	packed  bytes.Reader
	base64  []byte
	inflate io.ReadCloser
	text    bytes.Buffer
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

var (
	errHistogram  = errors.New("it is no histogram in the V2 compressed encoding")
	errOtherRange = errors.New("another range")
)

const (
	histogramHead = 40 // cookie, length, offset, digits, lowest, highest, ratio
	mostPayload   = 1 << 20

	// Values up to 2·10^digits have a bucket each; then a bucket has half of the power of two
	// above that.
	halfBits = 7
	half     = 1 << halfBits
)

func (d *decoder) decode(text string, add func(value, count int64) error) (err error) {
	d.base64, err = base64.StdEncoding.AppendDecode(d.base64[:0], []byte(text))
	if err != nil {
		return err
	}
	order := binary.BigEndian
	if len(d.base64) < 8 || int32(order.Uint32(d.base64))&^0xf0 != hdrhistogram.V2CompressedEncodingCookieBase || uint64(order.Uint32(d.base64[4:])) > uint64(len(d.base64)-8) {
		return errHistogram
	}
	d.packed.Reset(d.base64[8 : 8+order.Uint32(d.base64[4:])])
	if d.inflate == nil {
		d.inflate, err = zlib.NewReader(&d.packed)
	} else {
		err = d.inflate.(zlib.Resetter).Reset(&d.packed, nil)
	}
	if err != nil {
		return err
	}
	d.text.Reset()
	if _, err := io.Copy(&d.text, io.LimitReader(d.inflate, histogramHead+mostPayload)); err != nil {
		return err
	}
	p := d.text.Bytes()
	if len(p) < histogramHead || int32(order.Uint32(p))&^0xf0 != hdrhistogram.V2EncodingCookieBase {
		return errHistogram
	}
	if order.Uint32(p[12:]) != digits || order.Uint64(p[16:]) != 1 || order.Uint64(p[24:]) != uint64(longestNs) {
		return errOtherRange
	}
	if p = p[histogramHead:]; uint64(order.Uint32(d.text.Bytes()[4:])) != uint64(len(p)) {
		return errHistogram
	}
	for index := int64(0); len(p) > 0; {
		count, n := zigzag(p)
		if n == 0 || index < 0 || index > mostPayload {
			return errHistogram
		}
		p = p[n:]
		if count < 0 { // so many buckets without a time
			index -= count
			continue
		}
		if count > 0 {
			value := index
			if index >= 2*half {
				value = (index%half + half) << (index/half - 1)
			}
			if value > longestNs<<1 || index/half > 62 {
				return errHistogram
			}
			if err := add(value, count); err != nil {
				return err
			}
		}
		index++
	}
	return nil
}

// zigzag reads a number of up to nine bytes, seven bits each and the last eight. It returns 0
// bytes if the text ends before the number.
func zigzag(p []byte) (n int64, size int) {
	bits := uint64(0)
	for i, b := range p {
		if i == 8 {
			bits |= uint64(b) << 56
			return int64(bits>>1) ^ -int64(bits&1), i + 1
		}
		bits |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			return int64(bits>>1) ^ -int64(bits&1), i + 1
		}
	}
	return 0, 0
}

// MergeLatency merges the distributions that of returns for each trial, such as its
// Latency; nil adds nothing.
func MergeLatency(trials []Trial, of func(Trial) *Latency, supports func(n int64, p float64) bool) (Latency, error) {
	all := NewHistogram()
	for _, t := range trials {
		if err := of(t).each(all.RecordValues); err != nil {
			return Latency{}, fmt.Errorf("round %d of %s: decode latencies: %w", t.Round, t.Cell, err)
		}
	}
	return NewLatency(all, supports)
}
