package stat

import (
	"fmt"
	"math"
)

// A Warning tells what is doubtful about the samples, and what to do about it.
// Both are lower-case sentences without a full stop.
type Warning struct {
	What string
	Cure string
}

const (
	wideInterval  = 0.10 // half the interval's width, as a part of the median
	driftShift    = 0.05 // change from the first round to the last, likewise
	driftDoubtful = 0.01 // how rarely an order of rounds without a trend may look like one
)

// Warnings returns what is doubtful about the samples of one cell, given in the
// order of their rounds: too few of them, a drift over the rounds, or a wide
// interval. It returns nil if there is nothing to say.
func Warnings(rounds []float64) []Warning {
	if len(rounds) < VerdictRounds {
		return []Warning{{
			What: fmt.Sprintf("only %d rounds: too few for a verdict", len(rounds)),
			Cure: fmt.Sprintf("run at least %d rounds", VerdictRounds),
		}}
	}
	var found []Warning
	if shift, ok := Drift(rounds); ok {
		found = append(found, Warning{
			What: fmt.Sprintf("the figures drifted by %+.0f %% from the first round to the last", shift*100),
			Cure: "let the machine settle (other programs, heat, a filling disk, write-back of earlier files), then run it again",
		})
	}
	if width := Summarize(rounds).Width(); width > wideInterval {
		found = append(found, Warning{
			What: fmt.Sprintf("the median is known to ±%.0f %% only", width*100),
			Cure: fmt.Sprintf("run about %d rounds, or quiet the machine", moreRounds(len(rounds), width)),
		})
	}
	return found
}

// moreRounds estimates how many rounds narrow the interval to wideInterval: its
// width shrinks with the square root of their number.
func moreRounds(rounds int, width float64) int {
	factor := math.Pow(width/wideInterval, 2)
	return int(math.Ceil(float64(rounds) * min(factor, 100)))
}
