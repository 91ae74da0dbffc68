package figure

import (
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// A Control says how work went that has no code of ours in it: see [result.Control]. What it
// moves by, the machine moved by.
type Control struct {
	Name   string `json:"name"`
	Time   Number `json:"ns"`     // the median of the rounds
	Spread Number `json:"spread"` // nine rounds of ten are so near to it, as a factor's distance from 1
}

// A control is one of those of a round.
type control struct {
	name  string
	waits bool // for the disk
	of    func(result.Control) time.Duration
}

var controls = []control{
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
