package figure

import (
	"slices"

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

// Decided is the stop rule of a run that only has to answer. It reports whether each word of the answer holds with some slack (see
// [stat.Comparison.Decided]), or its ratio is known to ± width; a paced cost may also be shown to be small enough. It also returns the
// widest half-width of the undecided ratios, or 0 if there is none or too few rounds to know it.
func Decided(run result.Run, width float64) (widest float64, ok bool) {
	f, err := Of(run)
	if err != nil || f.Rounds < f.VerdictRounds() {
		return 0, false
	}
	ok = true
	for _, g := range f.Groups {
		var base result.Cell
		if at := slices.IndexFunc(g.Rows, func(r Row) bool { return r.Fastest }); at >= 0 {
			base = g.Rows[at].Cell
		}
		for _, r := range g.Rows {
			if r.Fastest || r.Control || !r.Period.Judged() {
				continue
			}
			if g.Paced { // it has the noise of its own kind
				base = r.Cell
			}
			if r.Cost.Decided(f.floorBetween(base, r.Cell)) {
				continue
			}
			known := r.Cost.Width()
			if most, bounded := r.AtMost(); bounded && r.Cost.HasInterval() {
				known = most - 1
			}
			if !(known <= width) {
				ok = false
			}
			if known > widest {
				widest = known
			}
		}
	}
	return widest, ok
}
