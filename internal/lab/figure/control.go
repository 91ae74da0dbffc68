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
	waits  bool   // for the disk
}

// controlsOf returns the controls of a run; there are none where its rounds had no processes of their own.
func controlsOf(run result.Run) []Control {
	if len(run.Controls) == 0 {
		return nil
	}
	control := func(name string, waits bool, of func(result.Control) time.Duration) Control {
		var times, distances []float64
		for _, c := range run.Controls {
			times = append(times, float64(of(c)))
		}
		middle := stat.Quantile(times, 0.5)
		for _, t := range times {
			distances = append(distances, math.Abs(math.Log(t/middle)))
		}
		return Control{name, Number(middle), Number(math.Expm1(stat.Quantile(distances, 0.9))), waits}
	}
	return []Control{
		control("empty loop", false, func(c result.Control) time.Duration { return c.Loop }),
		control("write(2)", false, func(c result.Control) time.Duration { return c.Write }),
		control("fdatasync(2)", true, func(c result.Control) time.Duration { return c.Fdatasync }),
	}
}

// A ControlMove is a control in two runs.
type ControlMove struct {
	Name  string `json:"name"`
	Ratio Number `json:"ratio"` // B/A
	waits bool
}

// controlMoves returns those that both runs have.
func controlMoves(a, b result.Run) (moves []ControlMove) {
	before, after := controlsOf(a), controlsOf(b)
	for i := range min(len(before), len(after)) {
		moves = append(moves, ControlMove{after[i].Name, after[i].Time / before[i].Time, after[i].waits})
	}
	return moves
}

// farthest returns by how much the control moved most that says something of a cell: as a
// factor's distance from 1, or absent.
func (c Contrast) farthest(cell result.Cell) Number {
	most := absent
	for _, m := range c.Controls {
		if by := Number(math.Expm1(math.Abs(math.Log(float64(m.Ratio))))); (waitsForDisk(cell) || !m.waits) && !(most >= by) {
			most = by
		}
	}
	return most
}
