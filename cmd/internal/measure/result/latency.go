package result

import (
	"fmt"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Latency is the distribution of the times of single Writes. A percentile is
// zero, and not in the file, if too few Writes were timed for it.
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

// The range of the histograms. Two digits are a resolution of 1 %.
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

// NewLatency describes h, which is a [NewHistogram]; supports reports whether n samples are enough for
// the p-quantile.
func NewLatency(h *hdrhistogram.Histogram, supports func(n int64, p float64) bool) (Latency, error) {
	l := Percentiles(h, supports)
	if l.Count == 0 {
		return l, nil
	}
	text, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return l, fmt.Errorf("encode latencies: %w", err)
	}
	l.Histogram = string(text)
	return l, nil
}

// Percentiles is NewLatency without the Histogram.
func Percentiles(h *hdrhistogram.Histogram, supports func(n int64, p float64) bool) Latency {
	l := Latency{Count: h.TotalCount()}
	if l.Count == 0 {
		return l
	}
	at := func(p float64) time.Duration {
		if !supports(l.Count, p) {
			return 0
		}
		return time.Duration(h.ValueAtPercentile(p * 100))
	}
	l.P50, l.P90, l.P99, l.P999 = at(0.5), at(0.9), at(0.99), at(0.999)
	l.Max = time.Duration(h.Max())
	return l
}

// histogram decodes the distribution; it returns nil if nothing was timed.
func (l *Latency) histogram() (*hdrhistogram.Histogram, error) {
	if l == nil || l.Count == 0 {
		return nil, nil
	}
	return hdrhistogram.Decode([]byte(l.Histogram))
}

// Mean returns the mean of the distribution in nanoseconds, to 1 %. It is NaN where
// nothing was timed.
func (l *Latency) Mean() float64 {
	h, err := l.histogram()
	if err != nil || h == nil {
		return math.NaN()
	}
	return h.Mean()
}

// Longer returns the number of times that were longer than limit, to 1 %, and the number of all times.
func (l *Latency) Longer(limit time.Duration) (longer, all int64, err error) {
	h, err := l.histogram()
	if err != nil || h == nil {
		return 0, 0, err
	}
	for _, bar := range h.Distribution() {
		if bar.From > int64(limit) {
			longer += bar.Count
		}
	}
	return longer, h.TotalCount(), nil
}

// Pool merges one distribution of each trial: the one that `of` returns, such as its Latency. It skips
// nil.
func Pool(trials []*Trial, of func(*Trial) *Latency) (*hdrhistogram.Histogram, error) {
	all := NewHistogram()
	for _, t := range trials {
		h, err := of(t).histogram()
		if err != nil {
			return nil, fmt.Errorf("round %d of %s: decode latencies: %w", t.Round, t.Cell, err)
		}
		if h != nil {
			all.Merge(h)
		}
	}
	return all, nil
}

// MergeLatency describes the result of Pool.
func MergeLatency(trials []Trial, of func(*Trial) *Latency, supports func(n int64, p float64) bool) (Latency, error) {
	list := make([]*Trial, len(trials))
	for i := range trials {
		list[i] = &trials[i]
	}
	all, err := Pool(list, of)
	if err != nil {
		return Latency{}, err
	}
	return NewLatency(all, supports)
}
