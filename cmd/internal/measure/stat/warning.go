package stat

import (
	"fmt"
	"math"
)

// A Warning names a doubt about the samples, and its cure. The texts What and Cure are lower-case
// sentences without a full stop, for people; their text may change. Code is for programs: a word like
// too-few-rounds that stays.
type Warning struct {
	Code string `json:"code"`
	What string `json:"what"`
	Cure string `json:"cure"`
}

const (
	wideInterval  = 0.10 // half the interval's width, as a part of the median
	driftShift    = 0.05 // change from the first round to the last, likewise
	driftDoubtful = 0.01 // the largest probability that an order without a trend looks like this one
)

// Warnings returns the warnings about the samples of one cell, given in the order of their rounds: too
// few samples (code too-few-rounds), a drift over the rounds (drift), and a wide interval
// (wide-interval). It returns nil if there are none.
func Warnings(rounds []float64) []Warning {
	if w, few := TooFewRounds(len(rounds), 1); few {
		return []Warning{w}
	}
	var found []Warning
	if shift, ok := Drift(rounds); ok {
		found = append(found, Warning{
			Code: "drift",
			What: fmt.Sprintf("the figures drifted by %+.0f %% from the first round to the last", shift*100),
			Cure: "let the machine settle (other programs, heat, a filling disk, write-back of earlier files), then run it again",
		})
	}
	if width := Summarize(rounds).Width(); width > wideInterval {
		found = append(found, Warning{
			Code: "wide-interval",
			What: fmt.Sprintf("the median is known to ±%.0f %% only", width*100),
			Cure: fmt.Sprintf("run about %d rounds, or quiet the machine", moreRounds(len(rounds), width)),
		})
	}
	return found
}

// TooFewRounds warns of fewer rounds than [GroupRounds] requires for a group of the given number of
// cells (code too-few-rounds); few is false if there are enough.
func TooFewRounds(rounds, cells int) (w Warning, few bool) {
	least := GroupRounds(cells)
	if rounds >= least {
		return Warning{}, false
	}
	what := "too few for a verdict"
	switch k, _ := signedRank(rounds, groupConfidence(cells)); {
	case k > 0:
		what = "they prove only differences of more than half"
	case least > VerdictRounds:
		what += fmt.Sprintf(" among %d cells", cells)
	}
	return Warning{
		Code: "too-few-rounds",
		What: fmt.Sprintf("only %s: %s", plural(rounds), what),
		Cure: fmt.Sprintf("run at least %d rounds", least),
	}, true
}

func plural(rounds int) string {
	if rounds == 1 {
		return "1 round"
	}
	return fmt.Sprintf("%d rounds", rounds)
}

// moreRounds estimates the number of rounds that narrows the interval to wideInterval: its width
// shrinks with the square root of the number.
func moreRounds(rounds int, width float64) int {
	factor := math.Pow(width/wideInterval, 2)
	return int(math.Ceil(float64(rounds) * min(factor, 100)))
}
