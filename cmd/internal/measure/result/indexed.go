package result

import "slices"

// Indexed is a run with an index of its trials by cell, for callers that ask for many cells. The time
// for a cell grows with the cell's own trials, and not with all trials of the run. The run must not
// change.
type Indexed struct {
	Run
	rounded map[string][]*Trial
	counted map[string]int
}

// Indexed makes the index.
func (r Run) Indexed() Indexed {
	x := Indexed{Run: r, rounded: make(map[string][]*Trial, len(r.Header.Cells)), counted: map[string]int{}}
	whole := r.wholeRounds()
	for i, t := range r.Trials {
		if _, known := x.counted[t.Cell]; t.SystemCalls != nil && !known {
			x.counted[t.Cell] = i
		}
		if t.Round > 0 && whole[t.Round] {
			x.rounded[t.Cell] = append(x.rounded[t.Cell], t)
		}
	}
	for _, trials := range x.rounded {
		slices.SortStableFunc(trials, func(a, b *Trial) int { return a.Round - b.Round })
	}
	return x
}

// Rounded is [Run.Rounded].
func (x Indexed) Rounded(cell string) []*Trial { return x.rounded[cell] }

// Counted is [Run.Counted].
func (x Indexed) Counted(cell string) (Trial, bool) {
	at, ok := x.counted[cell]
	if !ok {
		return Trial{}, false
	}
	return *x.Trials[at], true
}
