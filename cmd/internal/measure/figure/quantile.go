package figure

import (
	"fmt"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// A Quantile is a quantile of the times of Writes, with its interval of 95 %.
type Quantile struct {
	P     float64       `json:"p"` // 1 is the longest time, which has no interval
	Value time.Duration `json:"value_ns"`
	Low   time.Duration `json:"low_ns"`
	High  time.Duration `json:"high_ns"`
}

// Quantile returns the p-quantile, if there are enough samples for it.
func (r Row) Quantile(p float64) (Quantile, bool) {
	for _, q := range r.Quantiles {
		if q.P == p {
			return q, true
		}
	}
	return Quantile{}, false
}

// Longer returns the part of the rows' Writes that took longer than limit, and with most an upper bound of that
// part with 95 % confidence. The rows have the same load, and the times are the ones that Quantiles uses. The bound
// counts rounds and not Writes, because stalls come in clusters.
func (f Figures) Longer(rows []Row, limit time.Duration) (part, most float64, err error) {
	type count struct{ longer, all int64 }
	rounds := map[int]*count{}
	for _, r := range rows {
		for _, t := range f.Rounded(r.Cell.Name) {
			times := &t.Latency
			if r.Replayed {
				times = t.Replayed
			}
			longer, all, err := times.Longer(limit)
			if err != nil {
				return 0, 0, fmt.Errorf("round %d of %s: decode latencies: %w", t.Round, t.Cell, err)
			}
			if all == 0 {
				continue
			}
			if rounds[t.Round] == nil {
				rounds[t.Round] = &count{}
			}
			rounds[t.Round].longer += longer
			rounds[t.Round].all += all
		}
	}
	sum, squares, n := 0.0, 0.0, float64(len(rounds))
	for _, c := range rounds {
		x := float64(c.longer) / float64(c.all)
		sum, squares = sum+x, squares+x*x
	}
	if sum == 0 {
		return 0, 0, nil
	}
	part, most = sum/n, sum/n
	if n > 1 {
		const errors = 2 // the error of the mean: Student's factor for one side and 6 rounds; more rounds need a little less
		most += errors * math.Sqrt(max(0, squares-sum*part)/(n-1)/n)
	}
	return part, min(1, most), nil
}

// merge describes all samples of the trials together, and decodes them once. The interval of a quantile is
// the wider of two intervals. The first comes from the ranks among all samples, as if these were
// independent. The second is the interval of the median of the rounds' own quantiles: it is wider if
// stalls come in clusters.
func merge(trials []*result.Trial, of func(*result.Trial) *result.Latency) (merged Latency, list []Quantile, err error) {
	all, err := result.Pool(trials, of)
	if err != nil || all.TotalCount() == 0 {
		return merged, nil, err
	}
	l := result.Percentiles(all, stat.Supports)
	merged = Latency{Count: l.Count, P50: l.P50, P90: l.P90, P99: l.P99, P999: l.P999, Max: l.Max}
	n := float64(l.Count)
	at := func(rank float64) time.Duration {
		return time.Duration(all.ValueAtPercentile(100 * max(0, min(1, rank/n))))
	}
	for _, q := range []struct {
		name string
		p    float64
		of   func(*result.Latency) time.Duration
	}{
		{"p50", 0.5, func(l *result.Latency) time.Duration { return l.P50 }},
		{"p90", 0.9, func(l *result.Latency) time.Duration { return l.P90 }},
		{"p99", 0.99, func(l *result.Latency) time.Duration { return l.P99 }},
		{"p999", 0.999, func(l *result.Latency) time.Duration { return l.P999 }},
	} {
		values := make([]float64, len(trials))
		for i := range trials {
			values[i] = math.NaN()
			if l := of(trials[i]); l != nil && q.of(l) > 0 {
				values[i] = float64(q.of(l))
			}
		}
		own := summarize(values)
		if own.HasInterval() {
			if merged.Rounds == nil {
				merged.Rounds = map[string]Summary{}
			}
			merged.Rounds[q.name] = own
		}
		if !stat.Supports(l.Count, q.p) {
			continue
		}
		const deviations = 1.96 // of the normal distribution: 95 %
		reach := deviations * math.Sqrt(n*q.p*(1-q.p))
		one := Quantile{P: q.p, Value: at(n * q.p), Low: at(math.Floor(n*q.p - reach)), High: at(math.Ceil(n*q.p + reach))}
		if !math.IsNaN(own.Median) {
			one.Low, one.High = min(one.Low, time.Duration(own.Lower())), max(one.High, time.Duration(own.Upper()))
		}
		list = append(list, one)
	}
	return merged, append(list, Quantile{1, l.Max, l.Max, l.Max}), nil
}
