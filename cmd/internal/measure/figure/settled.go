package figure

import (
	"math"
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

// A Need is a cell of which a run does not know enough yet for its answer.
type Need struct {
	Cell  result.Cell
	Width float64 // half the width of the interval of its time or its ratio, whichever is too wide; NaN: there is none yet
}

// Needs is the stop rule of a run that only has to answer. It returns the cells of which the answer does not know enough: the time
// of a record to ± width, and its ratio by a word with some slack (see [stat.Comparison.Decided]) or to ± width. A paced cost has to be
// decided, or shown to be small enough. None: the run may end. Ok is false if the rounds are too few for any verdict.
func Needs(run result.Run, width float64) (needs []Need, ok bool) {
	f, err := compareAll(run, true)
	if err != nil || f.Rounds < f.VerdictRounds() {
		return nil, false
	}
	for _, g := range f.Groups {
		base := g.fastest()
		for _, r := range g.Rows {
			if by := f.wide(g, base, r, width); !(by <= width) {
				needs = append(needs, Need{r.Cell, by})
			}
		}
	}
	return needs, true
}

// wide returns the half-width of the time or the ratio of a row that is known less well than ± width and has no word, or 0.
func (f Figures) wide(g Group, base result.Cell, r Row, width float64) float64 {
	if g.Paced { // its times are the rate's
		base = r.Cell // it has the noise of its own kind
	} else {
		time := r.Net.Write
		if g.Open() {
			time = r.Net.Service
		}
		if by := time.Width(); !(by <= width) {
			return by
		}
	}
	if r.Fastest || r.Control || !r.Period.Judged() || r.Cost.Decided(f.floorBetween(base, r.Cell)) {
		return 0
	}
	if most, bounded := r.AtMost(); bounded && r.Cost.HasInterval() {
		return most - 1
	}
	return r.Cost.Width()
}

// fastest returns the cell that the others of the group are compared with.
func (g Group) fastest() (base result.Cell) {
	if at := slices.IndexFunc(g.Rows, func(r Row) bool { return r.Fastest }); at >= 0 {
		base = g.Rows[at].Cell
	}
	return base
}

// AtRest returns the names of the cells that may rest while the run goes on for its needs: all but these, the cells that they are
// compared with, the twins of their kind and what measuring takes. Paced cells of one load rest together.
func AtRest(run result.Run, needs []Need) (names []string) {
	f, err := compareAll(run, true)
	if err != nil {
		return nil
	}
	awake := map[string]bool{}
	var kinds []kind
	var loads []Load
	add := func(c result.Cell) {
		load := LoadOf(c)
		awake[c.Name] = true
		kinds = append(kinds, kind{c.FileSystem, waitsForDisk(c), min(c.Every, 1)})
		load.Cache = "" // as the empty cell's
		loads = append(loads, load)
	}
	for _, n := range needs {
		add(n.Cell)
		if at, ok := f.groups[LoadOf(n.Cell)]; ok && n.Cell.Every == 0 {
			add(f.Groups[at].fastest())
		}
	}
	for _, c := range run.Header.Cells {
		if of := (kind{c.FileSystem, waitsForDisk(c), min(c.Every, 1)}); c.Twin != "" && slices.Contains(kinds, of) {
			awake[c.Name], awake[c.Twin] = true, true
		}
	}
	for _, c := range run.Header.Cells {
		load := LoadOf(c)
		load.Cache = ""
		if (c.Empty || c.Every > 0) && slices.Contains(loads, load) {
			awake[c.Name] = true
		}
	}
	for _, c := range run.Header.Cells {
		if !awake[c.Name] && !run.Resting(c.Name, math.MaxInt) {
			names = append(names, c.Name)
		}
	}
	return names
}

// FewestRounds is the number of rounds that every cell had that has no period of its own in the rounds: fewer than Rounds where cells
// rested.
func (f Figures) FewestRounds() int {
	fewest := f.Rounds
	for _, c := range f.Run.Header.Cells {
		if c.Every <= 1 {
			fewest = min(fewest, len(f.Rounded(c.Name)))
		}
	}
	return fewest
}
