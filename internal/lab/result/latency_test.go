package result

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

func encoded(t testing.TB, h *hdrhistogram.Histogram) *Latency {
	t.Helper()
	l, err := NewLatency(h, func(int64, float64) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	return &l
}

// sameAsLibrary wants what each reports to be what the library decodes.
func sameAsLibrary(t *testing.T, l *Latency) {
	t.Helper()
	want, err := hdrhistogram.Decode([]byte(l.Histogram))
	if err != nil {
		t.Fatal(err)
	}
	got := NewHistogram()
	if err := l.each(got.RecordValues); err != nil {
		t.Fatal(err)
	}
	if !got.Equals(want) {
		t.Errorf("%d times up to %d, want %d up to %d", got.TotalCount(), got.Max(), want.TotalCount(), want.Max())
	}
}

func TestHistogramsAreReadAsTheLibraryReadsThem(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		h := NewHistogram()
		for range 1 + r.IntN(2000) {
			Record(h, time.Duration(1)<<r.IntN(40)+time.Duration(r.IntN(1000)))
		}
		sameAsLibrary(t, encoded(t, h))
	}
	edge := NewHistogram()
	for _, d := range []time.Duration{0, 1, 127, 128, 129, 255, 256, 257, 511, 512, 1 << 20, 100 * time.Second, time.Hour} {
		Record(edge, d)
	}
	if err := edge.RecordValues(3, 1<<40); err != nil {
		t.Fatal(err)
	}
	sameAsLibrary(t, encoded(t, edge))

	// Another program's range.
	other := hdrhistogram.New(1, int64(time.Hour), 3)
	for _, d := range []int64{5, 1000, 1_000_000} {
		if err := other.RecordValue(d); err != nil {
			t.Fatal(err)
		}
	}
	merged, err := MergeLatency([]Trial{{Measurement: Measurement{Latency: *encoded(t, other)}}}, func(t Trial) *Latency { return &t.Latency }, func(int64, float64) bool { return true })
	if err != nil || merged.Count != 3 || merged.P50 < 990 || merged.P50 > 1010 {
		t.Errorf("%+v, %v", merged, err)
	}
}

// FuzzHistogram wants an error or sane counts of any text.
func FuzzHistogram(f *testing.F) {
	h := NewHistogram()
	for i := range 100 {
		Record(h, time.Duration(i*i*i))
	}
	f.Add(encoded(f, h).Histogram)
	f.Add("HISTFAAAAA")
	f.Fuzz(func(t *testing.T, text string) {
		l := &Latency{Count: 1, Histogram: text}
		_, libraryErr := hdrhistogram.Decode([]byte(text))
		err := l.each(func(value, count int64) error {
			if value < 0 || count <= 0 {
				t.Errorf("%d times %d", count, value)
			}
			return nil
		})
		if err != nil && libraryErr == nil {
			t.Errorf("%v, and the library reads it", err)
		}
	})
}
