package costs

import (
	"fmt"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/probe"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// An operation that takes less than the loop around it is measured as a difference.
// The same loop runs with it and without it, turn by turn. The median turn counts,
// so that one in which another process had the CPU does not.

// turns is the number of turns in a trial. With 100, most turns are much shorter
// than the time that a scheduler gives to another thread.
const turns = 100

// A loop does its work n times.
type loop func(n int) error

// Each turn times one loop with the operation and one without.
type difference struct {
	with, without loop

	// each is how many operations more the first makes in one of its n; 0 is 1.
	each int
}

// measure does about n operations and reports to the clock what they take. That is
// the cost of one, as far as it differs from nothing, times their number.
func (d difference) measure(c *trial.Clock, stage trial.Stage, n int64) error {
	each := max(1, d.each)
	perTurn := max(1, int(n)/turns/each)
	var with, without []float64
	for range turns {
		took, err := timed(d.with, perTurn)
		if err != nil {
			return err
		}
		bare, err := timed(d.without, perTurn)
		if err != nil {
			return err
		}
		with, without = append(with, took), append(without, bare)
	}
	perTurn *= each
	cost, below := costOf(with, without, perTurn)
	c.Tell(bareNs, stat.Quantile(without, 0.5)/float64(perTurn))
	c.Tell(belowResolution, indicator(below))
	c.Took(stage, max(1, time.Duration(math.Round(cost*float64(perTurn*turns)))))
	c.Done(int64(perTurn*turns), 0)
	return nil
}

// Further figures of a difference. The first is the time of the loop without the
// operation, for one of it. The second is 1 where the cost does not differ from
// nothing, and the time is the most that it may be.
const (
	bareNs          = "bare_ns"
	belowResolution = "below_resolution"
)

func indicator(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func timed(p loop, n int) (ns float64, err error) {
	begun := probe.Now()
	err = p(n)
	return float64(probe.Since(begun)), err
}

// costOf returns the cost of one of the operations of a turn: the median of the
// turns' differences. Where the interval of this median reaches down to nothing, or
// is not known, the cost is below what these turns can see. Then it is the upper end
// of the interval, and at least the clock's tick.
func costOf(with, without []float64, perTurn int) (cost float64, below bool) {
	gaps := make([]float64, len(with))
	for i := range with {
		gaps[i] = with[i] - without[i]
	}
	const tick = 1 // ns
	s, n := stat.Summarize(gaps), float64(perTurn)
	if s.Low >= tick {
		return s.Median / n, false
	}
	return max(tick, s.High, s.Median) / n, true
}

// isBelow reports whether the arm's cost was too small to be seen in the most of its
// rounds.
func isBelow(e study.Evidence, arm string) bool {
	return e.Median(arm, study.Value(belowResolution)) > 0.5
}

// costText is the median cost of one operation with its interval, or the bound that
// it is under.
func costText(e study.Evidence, arm string) string {
	if isBelow(e, arm) {
		return fmt.Sprintf("< %s", study.Duration(e.Median(arm, study.PerRecord)))
	}
	return study.Median(e.Summary(arm, study.PerRecord), study.Duration)
}
