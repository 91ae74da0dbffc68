package figure

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/stat"
)

// Steadiness says of a cell that goes on until it is steady whether it was.
type Steadiness struct {
	Trials     int    `json:"trials"`
	Steady     int    `json:"steady_trials"`   // those that were steady at their end
	Throughput Number `json:"bytes_per_s"`     // in the last window, the median of the steady trials
	Dirty      int64  `json:"max_dirty_bytes"` // in the page cache of the machine, the most of all samples
}

func newSteadiness(trials []result.Trial) *Steadiness {
	s := &Steadiness{Trials: len(trials)}
	var rates []float64
	for _, t := range trials {
		if w, ok := stat.Steady(throughputs(t.Samples)); ok {
			s.Steady++
			rates = append(rates, w.Mean)
		}
		for _, sample := range t.Samples {
			s.Dirty = max(s.Dirty, sample.Dirty)
		}
	}
	s.Throughput = Number(stat.Quantile(rates, 0.5))
	return s
}

// throughputs returns the bytes a second of each stretch of a long trial.
func throughputs(samples []result.Sample) []float64 {
	var rates []float64
	begun := time.Duration(0)
	for _, s := range samples {
		rates = append(rates, float64(s.Size)/(s.At-begun).Seconds())
		begun = s.At
	}
	return rates
}
