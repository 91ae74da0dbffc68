package figure

import (
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// PacedRounds is the least number of trials of a paced cell: with fewer there is no 95 %
// interval.
const PacedRounds = 6

// Settled is the stop rule of a run. It reports whether every ratio of [Of] is known to ± width, the ratio of
// each cell and its twin included. Paced cells need PacedRounds. It also returns the widest half-width, or 0 if
// there are too few rounds to know it.
func Settled(run result.Run, width float64) (widest float64, ok bool) {
	var loads []Load
	groups := map[Load][][]float64{}
	var all [][][]float64
	paced := true
	x := index(run)
	for _, c := range run.Header.Cells {
		load := LoadOf(c)
		costs := costsOf(x, c.Name)
		switch {
		case c.Empty:
		case c.Short != "": // another cell bounds its cost
		case c.Every > 0: // there are too few of them for the width
			if len(costs) < PacedRounds {
				paced = false
			}
		case c.Twin != "":
			all = append(all, [][]float64{costsOf(x, c.Twin), costs})
		default:
			if groups[load] == nil {
				loads = append(loads, load)
			}
			groups[load] = append(groups[load], costs)
		}
	}
	for _, load := range loads {
		all = append(all, groups[load])
	}
	widest, ok = stat.Settled(all, width)
	if !(widest > 0) { // NaN too
		widest = 0
	}
	return widest, ok && paced
}
