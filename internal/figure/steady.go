package figure

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/stat"
)

// Steadiness says of a cell that goes on until it is steady whether it was.
type Steadiness struct {
	Trials     int    `json:"trials"`
	Steady     int    `json:"steady_trials"`
	Throughput Number `json:"bytes_per_s"`       // in the last window: the median of the steady trials
	Samples    int    `json:"samples"`           // of all trials
	Throttled  int    `json:"throttled_samples"` // at whose end the kernel slowed writers down, for too much was dirty
	Unwritten  int64  `json:"max_dirty_bytes"`   // of the whole machine, dirty or being written: the most of all samples
}

func newSteadiness(trials []result.Trial) *Steadiness {
	s := &Steadiness{Trials: len(trials)}
	var rates []float64
	for _, t := range trials {
		if t.Steady {
			s.Steady++
			w, _ := stat.Steady(throughputs(t.Samples))
			rates = append(rates, w.Mean)
		}
		for _, sample := range t.Samples {
			s.take(sample)
		}
	}
	s.Throughput = Number(stat.Quantile(rates, 0.5))
	return s
}

func (s *Steadiness) take(sample result.Sample) {
	s.Samples++
	unwritten := sample.Dirty + sample.Writeback
	s.Unwritten = max(s.Unwritten, unwritten)
	if sample.Throttle > 0 && unwritten > sample.Throttle {
		s.Throttled++
	}
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
