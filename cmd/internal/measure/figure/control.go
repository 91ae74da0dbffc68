package figure

import (
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// A Control is the time of work without any code of ours: see [result.Control]. If it changes, the
// machine changed.
type Control struct {
	Name   string `json:"name"`
	Time   Number `json:"ns"`     // nine of ten rounds are this near to the median, as a factor's distance from 1
	Spread Number `json:"spread"` // nine rounds of ten are so near to it, as a factor's distance from 1
}

// A control is one kind of work that every round measures: its name, whether it waits for the disk, and
// its time.
type control struct {
	name  string
	waits bool // for the disk
	of    func(result.Control) time.Duration
}

var controls = []control{
	{"write(2)", false, func(c result.Control) time.Duration { return c.Write }},
	{"fdatasync(2)", true, func(c result.Control) time.Duration { return c.Fdatasync }},
}

// times returns the control's time in every round.
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
	moved stat.Comparison // the movement of a cell that is not compared with its control
	waits bool
}
