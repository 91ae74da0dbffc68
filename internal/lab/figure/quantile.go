package figure

import (
	"math"
	"time"

	"github.com/holdfast-go/holdfast/internal/lab/result"
	"github.com/holdfast-go/holdfast/internal/lab/stat"
)

// A Quantile is one of the times of Writes, with its interval of 95 %.
type Quantile struct {
	P     float64       `json:"p"` // 1 is the longest time, which has no interval
	Value time.Duration `json:"value_ns"`
	Low   time.Duration `json:"low_ns"`
	High  time.Duration `json:"high_ns"`
}

// Quantile returns the p-quantile, if there were enough samples for it.
func (r Row) Quantile(p float64) (Quantile, bool) {
	for _, q := range r.Quantiles {
		if q.P == p {
			return q, true
		}
	}
	return Quantile{}, false
}

// quantiles returns those of all samples. An interval is the wider of two: that of the ranks
// among all samples, as if these were independent, and that of the median of the rounds' own
// quantiles. Stalls come in clusters, and the second knows them.
func quantiles(trials []result.Trial, of func(result.Trial) *result.Latency) ([]Quantile, error) {
	all, err := result.Pool(trials, of)
	if err != nil || all.TotalCount() == 0 {
		return nil, err
	}
	n := float64(all.TotalCount())
	at := func(rank float64) time.Duration {
		return time.Duration(all.ValueAtPercentile(100 * max(0, min(1, rank/n))))
	}
	rounds := map[float64]func(*result.Latency) time.Duration{
		0.5:   func(l *result.Latency) time.Duration { return l.P50 },
		0.9:   func(l *result.Latency) time.Duration { return l.P90 },
		0.99:  func(l *result.Latency) time.Duration { return l.P99 },
		0.999: func(l *result.Latency) time.Duration { return l.P999 },
	}
	var list []Quantile
	for _, p := range []float64{0.5, 0.9, 0.99, 0.999} {
		if !stat.Supports(all.TotalCount(), p) {
			continue
		}
		const deviations = 1.96 // of the normal distribution: 95 %
		reach := deviations * math.Sqrt(n*p*(1-p))
		q := Quantile{P: p, Value: at(n * p), Low: at(math.Floor(n*p - reach)), High: at(math.Ceil(n*p + reach))}
		own := summarize(each(trials, func(t result.Trial) float64 {
			if d := rounds[p](of(t)); d > 0 {
				return float64(d)
			}
			return math.NaN()
		}))
		if !math.IsNaN(own.Median) {
			q.Low, q.High = min(q.Low, time.Duration(own.Lower())), max(q.High, time.Duration(own.Upper()))
		}
		list = append(list, q)
	}
	longest := time.Duration(all.Max())
	return append(list, Quantile{1, longest, longest, longest}), nil
}
