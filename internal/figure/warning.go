package figure

import (
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/stat"
)

// A Warning tells what is doubtful about a run or one of its cells, and ends with
// the step that would cure it.
type Warning struct {
	stat.Warning
	Cell   *result.Cell `json:"-"`                // nil: of the whole run
	Name   string       `json:"cell,omitempty"`   // of Cell
	Rounds []int        `json:"rounds,omitempty"` // that it is about, where it is not about all
}

// warn returns all that is doubtful, the run's first.
func (f Figures) warn() []Warning {
	var found []Warning
	return append(found, f.warnOfSamples()...)
}

// warnOfSamples returns what the samples show themselves: for the whole run where
// there are too few rounds, else cell by cell.
func (f Figures) warnOfSamples() []Warning {
	if f.Rounds < stat.VerdictRounds {
		return []Warning{{Warning: stat.Warnings(make([]float64, f.Rounds))[0]}}
	}
	var found []Warning
	for _, g := range f.Groups {
		for _, r := range g.Rows {
			for _, w := range stat.Warnings(r.Costs) {
				found = append(found, Warning{Warning: w, Cell: &r.Cell, Name: r.Cell.Name})
			}
		}
	}
	return found
}
