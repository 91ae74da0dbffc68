package figure

import (
	"math"
	"time"

	"github.com/holdfast-go/holdfast/internal/lab/result"
	"github.com/holdfast-go/holdfast/internal/lab/stat"
)

// A Control says how work went that has no code of ours in it: see [result.Control]. What it
// moves by, the machine moved by.
type Control struct {
	Name   string `json:"name"`
	Time   Number `json:"ns"`     // the median of the rounds
	Spread Number `json:"spread"` // nine rounds of ten are so near to it, as a factor's distance from 1
}

// controlsOf returns the controls of a run; there are none where its rounds had no processes of their own.
func controlsOf(run result.Run) []Control {
	if len(run.Controls) == 0 {
		return nil
	}
	var found []Control
	for _, c := range controls {
		var distances []float64
		times := c.times(run)
		middle := stat.Quantile(times, 0.5)
		for _, t := range times {
			distances = append(distances, math.Abs(math.Log(t/middle)))
		}
		found = append(found, Control{c.name, Number(middle), Number(math.Expm1(stat.Quantile(distances, 0.9)))})
	}
	return found
}

// A control is one of those of a round.
type control struct {
	name  string
	waits bool // for the disk
	of    func(result.Control) time.Duration
}

var controls = []control{
	{"empty loop", false, func(c result.Control) time.Duration { return c.Loop }},
	{"write(2)", false, func(c result.Control) time.Duration { return c.Write }},
	{"fdatasync(2)", true, func(c result.Control) time.Duration { return c.Fdatasync }},
}

// times returns those of all rounds.
func (c control) times(run result.Run) (times []float64) {
	for _, round := range run.Controls {
		times = append(times, float64(c.of(round)))
	}
	return times
}

// A ControlMove is a control in two runs.
type ControlMove struct {
	Name  string          `json:"name"`
	Ratio Number          `json:"ratio"` // B/A
	moved stat.Comparison // what of that is not taken out of the costs
	waits bool
}

// controlMoves returns the controls in both runs, if they have any.
func controlMoves(a, b Side) (moves []ControlMove) {
	if len(a.raw.Controls) == 0 || len(b.raw.Controls) == 0 {
		return nil
	}
	for _, c := range controls {
		seen, moved := stat.Unpaired(c.times(a.raw), c.times(b.raw)), stat.Unpaired(c.times(a.run.Run), c.times(b.run.Run))
		moves = append(moves, ControlMove{c.name, Number(seen.Ratio), moved, c.waits})
	}
	return moves
}
