package stats

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestBucketsMeetWithoutAGap(t *testing.T) {
	for i := range buckets - 1 {
		if b := bound(i); bucket(b-1) != i || bucket(b) != i+1 {
			t.Errorf("bucket %d ends at %v: %d and %d", i, b, bucket(b-1), bucket(b))
		}
	}
	for _, d := range []time.Duration{-1, 0, 1} {
		var h Histogram
		if h.Add(d); h.counts[0] != 1 || h.Quantile(1) != max(d, 0) {
			t.Errorf("%v is not in the first bucket", d)
		}
	}
	if bucket(math.MaxInt64) != buckets-1 || bound(buckets-1) != math.MaxInt64 {
		t.Error("the longest duration is not in the last bucket")
	}
}

func TestQuantilesAreAtMostAnEighthMore(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var h Histogram
	var all []time.Duration
	for range 5000 {
		d := time.Duration(math.Exp(6 + 16*r.Float64())) // 400 ns to 3.6 s
		h.Add(d)
		all = append(all, d)
	}
	slices.Sort(all)
	for _, q := range []float64{0.0001, 0.01, 0.5, 0.9, 0.99, 0.999, 1} {
		exact := all[int(math.Ceil(q*float64(len(all))))-1]
		if got := h.Quantile(q); got < exact || float64(got) > 1.125*float64(exact)+1 {
			t.Errorf("quantile %v is %v, of exactly %v", q, got, exact)
		}
	}
	if h.Max() != all[len(all)-1] || h.Count() != 5000 {
		t.Errorf("max %v, count %v", h.Max(), h.Count())
	}
	if got := h.Quantile(0); got < all[0] || float64(got) > 1.125*float64(all[0])+1 {
		t.Errorf("quantile 0 is %v, and the shortest %v", got, all[0])
	}
	for _, d := range []time.Duration{all[len(all)-1], 100 * time.Second, 90 * time.Second} { // beyond the buckets too
		h.Add(d)
		if h.Quantile(1) != h.Max() || h.Quantile(2) != h.Max() {
			t.Errorf("quantiles 1 and 2 are %v and %v, and the longest %v", h.Quantile(1), h.Quantile(2), h.Max())
		}
	}
	var none Histogram
	if none.Quantile(0.5) != 0 || none.String() != "none" {
		t.Errorf("of none: %v, %v", none.Quantile(0.5), none)
	}
}

func TestMergedIsAsIfOneHadCountedAll(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var parts [3]Counts
	var whole Counts
	for i := range 300 {
		d := time.Duration(r.Int64N(int64(time.Minute)))
		parts[i%3].Synced(d)
		whole.Synced(d)
		parts[i%3].Flush.Add(d / 7)
		whole.Flush.Add(d / 7)
	}
	var merged Counts
	for i := range parts {
		merged.Merge(&parts[i])
	}
	if merged != whole {
		t.Errorf("merged %+v, counted %+v", merged, whole)
	}
}

// TestMergeForgetsNoField merges counts in which every number is 1.
func TestMergeForgetsNoField(t *testing.T) {
	var one, sum Counts
	v := reflect.ValueOf(&one).Elem()
	for i := range v.NumField() {
		if v.Field(i).CanInt() {
			v.Field(i).SetInt(1)
		}
	}
	one.Flush.Add(1)
	one.Sync.Add(1)
	sum.Merge(&one)
	if sum != one {
		t.Errorf("%+v merged into nothing is %+v", one, sum)
	}
	sum.Oldest, sum.LongestSync = time.Hour, time.Minute
	if sum.Merge(&one); sum.Oldest != time.Hour || sum.LongestSync != time.Minute || sum.Writes != 2 {
		t.Errorf("merged into what is older: %+v", sum)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	var c, o Counts
	if n := testing.AllocsPerRun(100, func() {
		c.Synced(time.Millisecond)
		c.Merge(&o)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestJSONSaysItsUnits(t *testing.T) {
	c := Counts{Writes: 3, NotDurable: 40, Oldest: time.Second}
	c.Synced(time.Millisecond)
	c.Synced(3 * time.Hour)
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"writes":3`, `"not_flushed_bytes":0`, `"not_durable_bytes":40`, `"oldest_not_durable_ns":1000000000`, `"longest_sync_ns":10800000000000`,
		`"flush_latency":{"count":0,"sum_ns":0,"max_ns":0,"p50_ns":0,"p99_ns":0,"p999_ns":0,"buckets":[]}`,
		`"sync_latency":{"count":2,"sum_ns":10800001000000,"max_ns":10800000000000,"p50_ns":1048576,"p99_ns":10800000000000`,
		`"buckets":[{"below_ns":1048576,"n":1},{"below_ns":9223372036854775807,"n":1}]`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %s", text, want)
		}
	}
	for i := range reflect.TypeFor[Counts]().NumField() {
		f := reflect.TypeFor[Counts]().Field(i)
		if key := f.Tag.Get("json"); key == "" || f.Type == reflect.TypeFor[time.Duration]() && !strings.HasSuffix(key, "_ns") {
			t.Errorf("%s has the key %q", f.Name, key)
		}
	}
}

// TestSparseCountsAsAHistogram counts the same durations in both, from the longest octave to the
// shortest and in any order.
func TestSparseCountsAsAHistogram(t *testing.T) {
	check := func(durations ...time.Duration) {
		t.Helper()
		var h Histogram
		var s Sparse
		for _, d := range durations {
			h.Add(d)
			s.Add(d)
		}
		if got := s.Histogram(); got != h {
			t.Errorf("of %v: %v, want %v", durations, got, h)
		}
	}
	check()
	var all []time.Duration
	for i := range buckets - 1 {
		all = append(all, bound(i)-1, bound(i))
		check(bound(i))
		check(bound(i), 0, math.MaxInt64)
	}
	check(all...)
	slices.Reverse(all)
	check(all...)
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	check(all...)
	check(-time.Second, 0, -1)
}

// TestSparseTakesAnOctave: durations that are much alike take little memory.
func TestSparseTakesAnOctave(t *testing.T) {
	var s Sparse
	for d := 600 * time.Microsecond; d < time.Millisecond; d += time.Microsecond {
		s.Add(d)
	}
	if len(s.counts) > 2*perOctave {
		t.Errorf("%d buckets for less than an octave", len(s.counts))
	}
}

// TestSparseCountsBeyondFourBillion begins near the end of a uint32.
func TestSparseCountsBeyondFourBillion(t *testing.T) {
	var s Sparse
	s.Add(time.Second)
	s.counts[bucket(time.Second)-s.from] = math.MaxUint32
	s.Add(time.Second)
	s.Add(time.Minute)
	s.Add(time.Second)
	if h := s.Histogram(); h.Count() != 1<<32+2 || h.counts[bucket(time.Second)] != 1<<32+1 {
		t.Errorf("%d are counted, want %d", h.Count(), int64(1<<32+2))
	}
}
