package study

import (
	"fmt"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/internal/stat"
	"github.com/holdfast-go/holdfast/internal/trial"
)

// An operation that takes less than the loop around it is measured as a difference:
// the same loop with it and without it, turn by turn. The median turn counts, so
// that one in which another process had the CPU does not.

// turns is how many there are in a trial.
const turns = 25

// A passage does its work n times.
type passage func(n int) error

// Each turn times one passage with the operation and one without.
type difference struct {
	with, without passage

	// each is how many operations more the first makes in one of its n; 0 is 1.
	each int
}

// measure does about n operations and tells the clock what they take: the cost of
// one, as far as it can be told from nothing, times their number.
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
	cost, resolution := costOf(with, without, perTurn)
	known := max(cost, resolution)
	c.Tell(bareNs, stat.Quantile(without, 0.5)/float64(perTurn))
	c.Tell(resolutionNs, resolution)
	c.Tell(belowResolution, indicator(cost <= resolution))
	c.Took(stage, max(1, time.Duration(math.Round(known*float64(perTurn*turns)))))
	c.Done(int64(perTurn*turns), 0)
	return nil
}

// What a difference tells besides: the time of the loop without the operation, the
// least cost that it could have seen, and 1 where the cost is no more than that and
// the time told is this bound.
const (
	bareNs          = "bare_ns"
	resolutionNs    = "resolution_ns"
	belowResolution = "below_resolution"
)

func indicator(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func timed(p passage, n int) (ns float64, err error) {
	begun := time.Now()
	err = p(n)
	return float64(time.Since(begun)), err
}

// costOf returns the cost of one of the operations of a turn, which may be negative
// where there is none, and what can be told from nothing: the spread of the turns'
// differences (the half of them lies within it), and at least the clock's tick.
func costOf(with, without []float64, perTurn int) (cost, resolution float64) {
	gaps := make([]float64, len(with))
	for i := range with {
		gaps[i] = with[i] - without[i]
	}
	const tick = 1 // ns
	n := float64(perTurn)
	cost = (stat.Quantile(with, 0.5) - stat.Quantile(without, 0.5)) / n
	return cost, max(tick, stat.Quantile(gaps, 0.75)-stat.Quantile(gaps, 0.25)) / n
}

// below reports whether the arm's cost was too small to be seen in the most of its
// rounds.
func (e Evidence) below(arm string) bool { return e.Median(arm, Value(belowResolution)) > 0.5 }

// costText is the median cost of one operation with its interval, or the bound that
// it is under.
func (e Evidence) costText(arm string) string {
	if e.below(arm) {
		return fmt.Sprintf("< %s", duration(e.Median(arm, PerRecord)))
	}
	m := figure(e.Summary(arm, PerRecord), duration)
	if math.IsNaN(m.value) {
		return dash
	}
	return m.String()
}
