package figure

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/lab/result"
	"github.com/holdfast-go/holdfast/internal/lab/stat"
)

// Steadiness reports how the trials of a cell became steady.
type Steadiness struct {
	Trials     int    `json:"trials"`
	Steady     int    `json:"steady_trials"`
	First      Number `json:"first_bytes_per_s"` // in the first sample: the median of the trials
	Throughput Number `json:"bytes_per_s"`       // in the last window: the median of the steady trials
	After      Number `json:"until_steady_ns"`   // from the first Write: the median of the steady trials
	Samples    int    `json:"samples"`           // of all trials
	Throttled  int    `json:"throttled_samples"` // at their end the kernel slowed writers down, for too much was dirty
	Unwritten  int64  `json:"max_dirty_bytes"`   // of the whole machine, dirty or being written: the most of all samples
}

func newSteadiness(trials []*result.Trial) *Steadiness {
	s := &Steadiness{Trials: len(trials)}
	var firsts, rates, afters []float64
	for _, t := range trials {
		var all []float64 // bytes a second, of each sample
		begun := time.Duration(0)
		for _, sample := range t.Samples {
			all = append(all, float64(sample.Size)/(sample.At-begun).Seconds())
			begun = sample.At
			s.Samples++
			unwritten := sample.Dirty + sample.Writeback
			s.Unwritten = max(s.Unwritten, unwritten)
			if sample.Throttle > 0 && unwritten > sample.Throttle {
				s.Throttled++
			}
		}
		if len(all) > 0 {
			firsts = append(firsts, all[0])
		}
		if t.Steady {
			s.Steady++
		}
		if t.Steady && len(all) > 0 {
			w, _ := stat.Steady(all)
			rates = append(rates, w.Mean)
			afters = append(afters, float64(begun))
		}
	}
	s.First, s.Throughput, s.After = Number(stat.Quantile(firsts, 0.5)), Number(stat.Quantile(rates, 0.5)), Number(stat.Quantile(afters, 0.5))
	return s
}
