package stats

import (
	"fmt"
	"iter"
	"math"
	"math/bits"
	"time"
)

// The buckets are log-linear, as in an HDR histogram (hdrhistogram.org): each power of two is cut
// into perOctave equal parts. So a bucket is at most an eighth wider than its lower bound. The
// first bucket holds all durations below 2^shortest ns = 256 ns, the last all from 2^longest ns =
// 68 s on.
const (
	perOctaveBits = 3
	perOctave     = 1 << perOctaveBits
	shortest      = 8
	longest       = 36
	buckets       = (longest-shortest)*perOctave + 2
)

// A Histogram counts durations. It has a fixed size and allocates nothing. The zero Histogram is
// empty. It is not safe for concurrent use.
type Histogram struct {
	counts [buckets]int64
	sum    time.Duration
	most   time.Duration
}

// Add counts a duration.
func (h *Histogram) Add(d time.Duration) {
	d = max(d, 0)
	h.counts[bucket(d)]++
	h.sum += d
	h.most = max(h.most, d)
}

func bucket(d time.Duration) int {
	octave := bits.Len64(uint64(d)) - 1
	switch {
	case octave < shortest:
		return 0
	case octave >= longest:
		return buckets - 1
	}
	part := int(d>>(octave-perOctaveBits)) & (perOctave - 1)
	return 1 + (octave-shortest)*perOctave + part
}

// bound returns the exclusive upper bound of a bucket.
func bound(i int) time.Duration {
	switch i {
	case 0:
		return 1 << shortest
	case buckets - 1:
		return math.MaxInt64
	}
	octave, part := shortest+(i-1)/perOctave, (i-1)%perOctave
	return time.Duration(perOctave+part+1) << (octave - perOctaveBits)
}

// Merge adds the durations of o.
func (h *Histogram) Merge(o *Histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.sum += o.sum
	h.most = max(h.most, o.most)
}

// Count returns the number of durations.
func (h *Histogram) Count() (n int64) {
	for _, k := range h.counts {
		n += k
	}
	return n
}

// Sum returns the sum of the durations.
func (h *Histogram) Sum() time.Duration { return h.sum }

// Max returns the longest duration.
func (h *Histogram) Max() time.Duration { return h.most }

// Quantile returns an upper bound of the quantile q: at least the exact quantile, and at most Max.
// Between 256 ns and 68 s it is at most an eighth too long. A shorter duration counts as 256 ns,
// and a longer one as Max. For q ≥ 1 it returns Max, for q ≤ 0 the bound of the shortest duration,
// and for an empty Histogram 0.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := max(1, int64(math.Ceil(q*float64(h.Count()))))
	for below, n := range h.Buckets() {
		if rank -= n; rank <= 0 {
			return min(below, h.most)
		}
	}
	return h.most
}

// Buckets returns an iterator over the buckets that are not empty, the shortest first: the
// exclusive upper bound and the number of durations. The bucket from 68 s on has the largest
// Duration as its bound.
func (h *Histogram) Buckets() iter.Seq2[time.Duration, int64] {
	return func(yield func(below time.Duration, n int64) bool) {
		for i, n := range h.counts {
			if n > 0 && !yield(bound(i), n) {
				return
			}
		}
	}
}

// String returns a line such as "28 (p50 210µs, p99 1.2ms, max 3.1ms)".
func (h Histogram) String() string {
	if h.most == 0 && h.counts[0] == 0 {
		return "none"
	}
	return fmt.Sprintf("%d (p50 %v, p99 %v, max %v)", h.Count(), h.Quantile(0.5), h.Quantile(0.99), h.most)
}

// MarshalJSON writes an object with the keys count, sum_ns, max_ns, p50_ns, p99_ns, p999_ns and
// buckets. Each bucket has its number of durations (n) and its exclusive upper bound (below_ns).
func (h Histogram) MarshalJSON() ([]byte, error) {
	text := fmt.Appendf(nil, `{"count":%d,"sum_ns":%d,"max_ns":%d,"p50_ns":%d,"p99_ns":%d,"p999_ns":%d,"buckets":[`,
		h.Count(), h.sum, h.most, h.Quantile(0.5), h.Quantile(0.99), h.Quantile(0.999))
	comma := ""
	for below, n := range h.Buckets() {
		text = fmt.Appendf(text, `%s{"below_ns":%d,"n":%d}`, comma, below, n)
		comma = ","
	}
	return append(text, "]}"...), nil
}
