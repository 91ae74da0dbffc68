package result

import (
	"slices"
	"strings"
)

// Named returns the name of a cell as it is in a run of several file systems.
func Named(fileSystem, cell string) string { return fileSystem + ": " + cell }

// FileSystems returns those that the run made for itself, in the order of its cells;
// none is a run on the file system of its folder alone.
func (r Run) FileSystems() (names []string) {
	for _, c := range r.Header.Cells {
		if c.FileSystem != "" && !slices.Contains(names, c.FileSystem) {
			names = append(names, c.FileSystem)
		}
	}
	return names
}

// On returns the part of the run that was on one of its file systems, with the names
// that the cells have in a run of one. Only whole rounds of the whole run are in it.
func (r Run) On(fileSystem string) Run {
	prefix := Named(fileSystem, "")
	whole := r.wholeRounds()
	part := r
	part.Header.Cells, part.Header.Missing, part.Trials = nil, nil, nil
	for _, c := range r.Header.Cells {
		if c.FileSystem == fileSystem {
			c.Name, c.Twin, c.FileSystem = strings.TrimPrefix(c.Name, prefix), strings.TrimPrefix(c.Twin, prefix), ""
			part.Header.Cells = append(part.Header.Cells, c)
		}
	}
	for _, m := range r.Header.Missing {
		if name, ok := strings.CutPrefix(m.Cell, prefix); ok {
			m.Cell = name
			part.Header.Missing = append(part.Header.Missing, m)
		}
	}
	for _, t := range r.Trials {
		if name, ok := strings.CutPrefix(t.Cell, prefix); ok && (t.Round == 0 || whole[t.Round]) {
			t.Cell = name
			part.Trials = append(part.Trials, t)
		}
	}
	return part
}

// wholeRounds are the rounds in which every cell has its trial.
func (r Run) wholeRounds() map[int]bool {
	trials := map[int]int{}
	for _, t := range r.Trials {
		trials[t.Round]++
	}
	whole := map[int]bool{}
	for round, n := range trials {
		whole[round] = n == len(r.Header.Cells)
	}
	return whole
}
