package figure

import (
	"math"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// timed is a trial whose Writes took the given times.
func timed(t *testing.T, ns ...int64) *result.Trial {
	t.Helper()
	h := result.NewHistogram()
	for _, n := range ns {
		result.Record(h, time.Duration(n))
	}
	l, err := result.NewLatency(h, stat.Supports)
	if err != nil {
		t.Fatal(err)
	}
	return &result.Trial{Measurement: result.Measurement{Latency: l}}
}

func ofWrites(t *result.Trial) *result.Latency { return &t.Latency }

// TestQuantilesHaveTheWiderInterval: the ranks decide if the samples are independent, and the rounds
// decide if they differ.
func TestQuantilesHaveTheWiderInterval(t *testing.T) {
	steps := make([]int64, 1000) // 1 µs to 1 ms
	for i := range steps {
		steps[i] = int64(i+1) * 1000
	}
	var alike []*result.Trial
	for range 8 {
		alike = append(alike, timed(t, steps...))
	}
	_, list, err := merge(alike, ofWrites)
	if err != nil || len(list) != 4 {
		t.Fatalf("%+v, %v", list, err)
	}
	near := func(what string, got time.Duration, want float64) {
		t.Helper()
		if math.Abs(float64(got)/want-1) > 0.015 { // the histogram's two digits
			t.Errorf("%s is %v, want %v", what, got, time.Duration(want))
		}
	}
	// Of 8,000 samples the rank of the median is known to ±1.96 × √(8000 × ¼) = ±88.
	near("p50", list[0].Value, 500e3)
	near("its low end", list[0].Low, 489e3)
	near("its high end", list[0].High, 511e3)
	near("p99", list[2].Value, 990e3)
	near("max", list[3].High, 1e6)

	var differ []*result.Trial
	for round := range int64(8) {
		scaled := make([]int64, len(steps))
		for i, n := range steps {
			scaled[i] = n * (round + 1)
		}
		differ = append(differ, timed(t, scaled...))
	}
	if _, list, err = merge(differ, ofWrites); err != nil {
		t.Fatal(err)
	}
	// With 8 rounds the median's interval reaches from the least to the largest: 99 %.
	near("p90's low end", list[1].Low, 0.9*1e6)
	near("p90's high end", list[1].High, 0.9*8e6)

	if _, list, err = merge([]*result.Trial{timed(t, steps[:100]...)}, ofWrites); err != nil || len(list) != 3 || list[2].P != 1 {
		t.Errorf("of 100 samples: %+v, %v", list, err)
	}
	if _, list, err = merge([]*result.Trial{{}}, ofWrites); err != nil || list != nil {
		t.Errorf("of none: %+v, %v", list, err)
	}
}

// TestAWordIsThatOfBothEnds: with the harness at one end of its interval a cell is faster; at the other end that is not
// proven.
func TestAWordIsThatOfBothEnds(t *testing.T) {
	faster := stat.Comparison{Ratio: 0.9, Low: 0.85, High: 0.94, Verdict: stat.Faster, Confidence: 0.95}
	doubt := stat.Comparison{Ratio: 0.93, Low: 0.88, High: 0.97, Verdict: stat.NotProven, Confidence: 0.95}
	for _, both := range [][2]stat.Comparison{{faster, doubt}, {doubt, faster}} {
		if got := (Comparison{both[0]}).with(both[1]); got.Verdict != stat.NotProven || got.Low != 0.85 || got.High != 0.97 {
			t.Errorf("%+v", got)
		}
	}
	if got := (Comparison{faster}).with(faster); got.Verdict != stat.Faster {
		t.Errorf("%+v", got)
	}
}
