package figure

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// A Number is a figure that may be absent: it is then NaN, and null in JSON.
type Number float64

var absent = Number(math.NaN())

// Known reports whether the figure is not absent.
func (n Number) Known() bool { return !math.IsNaN(float64(n)) }

// MarshalJSON writes null for an absent figure.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.Known() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// A Summary is the median of one cell's rounds with its interval.
type Summary struct {
	stat.Summary
	Least, Most float64 // of the rounds
}

func summarize(samples []float64) Summary {
	s := stat.Summarize(samples)
	if math.IsNaN(s.Median) {
		return Summary{s, stat.Quantile(samples, 0), stat.Quantile(samples, 1)}
	}
	return Summary{s, slices.Min(samples), slices.Max(samples)}
}

// Lower returns the lower end of the interval, or the least round if there are too few for an interval.
func (s Summary) Lower() float64 {
	if s.HasInterval() {
		return s.Low
	}
	return s.Least
}

// Upper returns the upper end of the interval, or the largest round if there are too few for an
// interval.
func (s Summary) Upper() float64 {
	if s.HasInterval() {
		return s.High
	}
	return s.Most
}

// MarshalJSON writes null for absent figures.
func (s Summary) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		N          int     `json:"n"`
		Median     Number  `json:"median"`
		Low        Number  `json:"low"`
		High       Number  `json:"high"`
		Confidence float64 `json:"confidence"`
		Least      Number  `json:"least"`
		Most       Number  `json:"most"`
		Outliers   int     `json:"outliers"`
	}{s.N, Number(s.Median), Number(s.Low), Number(s.High), s.Confidence, Number(s.Least), Number(s.Most), s.Outliers})
}

// A Comparison is the ratio of two cells' costs with its interval and verdict.
type Comparison struct{ stat.Comparison }

// MarshalJSON writes null for absent figures.
func (c Comparison) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		N          int          `json:"n"`
		Ratio      Number       `json:"ratio"`
		Low        Number       `json:"low"`
		High       Number       `json:"high"`
		Confidence float64      `json:"confidence"`
		Verdict    stat.Verdict `json:"verdict"`
		Bound      float64      `json:"bound,omitempty"`
		Most       float64      `json:"most,omitempty"`
	}{c.N, Number(c.Ratio), Number(c.Low), Number(c.High), c.Confidence, c.Verdict, c.Bound, c.Most})
}
