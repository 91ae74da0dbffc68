package figure

import (
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/stat"
)

// Settled is the stop rule of a run that goes on: it reports whether all ratios
// that [Of] will have, and the gap of the cell that was run twice, are known to ±
// width, and the half-width of the one that is known worst: 0 where that is not
// known, because the rounds are too few.
func Settled(run result.Run, width float64) (widest float64, ok bool) {
	var loads []Load
	groups := map[Load][][]float64{}
	var all [][][]float64
	for _, c := range run.Header.Cells {
		load := LoadOf(c)
		costs := load.Costs(run.Rounded(c.Name))
		switch {
		case c.Empty:
		case c.Twin != "":
			all = append(all, [][]float64{load.Costs(run.Rounded(c.Twin)), costs})
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
	return widest, ok
}
