package result

import (
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
)

// A FileSystem is one that a run made for itself, and removed at its end.
type FileSystem struct {
	Name string `json:"name"`       // such as ext4-writeback
	How  string `json:"how"`        // in words: on what it was made
	Size int64  `json:"size_bytes"` // of its image, or the most that it may hold

	// Machine are the facts that differ from those in the header: of the file system, its
	// mount and its device.
	Machine []machine.Fact `json:"machine"`
}

// Named returns the name of a cell as it is in a run of several file systems.
func Named(fileSystem, cell string) string { return fileSystem + ": " + cell }

// FileSystems returns those that the run made for itself, in the order of its cells. It
// returns none for a run on the file system of its directory alone.
func (r Run) FileSystems() (names []string) {
	for _, c := range r.Header.Cells {
		if c.FileSystem != "" && !slices.Contains(names, c.FileSystem) {
			names = append(names, c.FileSystem)
		}
	}
	return names
}

// Made returns the header's entry of one of the run's file systems.
func (h Header) Made(fileSystem string) (FileSystem, bool) {
	i := slices.IndexFunc(h.FileSystems, func(f FileSystem) bool { return f.Name == fileSystem })
	if i < 0 {
		return FileSystem{}, false
	}
	return h.FileSystems[i], true
}

// facts returns the header's facts, replaced by those that the file system has too.
func (f FileSystem) facts(host []machine.Fact) []machine.Fact {
	all := slices.Clone(host)
	for _, fact := range f.Machine {
		at := slices.IndexFunc(all, func(old machine.Fact) bool { return old.Name == fact.Name })
		if at < 0 {
			all = append(all, fact)
			continue
		}
		all[at] = fact
	}
	return all
}

// NewFileSystem describes a file system by the facts of the machine in its directory. It
// keeps those that are not the host's.
func NewFileSystem(name, how string, size int64, host, there []machine.Fact) FileSystem {
	other := slices.DeleteFunc(slices.Clone(there), func(f machine.Fact) bool { return slices.Contains(host, f) })
	return FileSystem{Name: name, How: how, Size: size, Machine: other}
}

// On returns the part of the run that was on one of its file systems. The cells have
// the names of a run on one file system. It has only rounds that are whole in the whole
// run.
func (r Run) On(fileSystem string) Run {
	prefix := Named(fileSystem, "")
	whole := r.wholeRounds()
	part := r
	part.Header.Cells, part.Header.Missing, part.Header.FileSystems, part.Trials = nil, nil, nil, nil
	if made, ok := r.Header.Made(fileSystem); ok {
		part.Header.Machine = made.facts(r.Header.Machine)
	}
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
			named := *t
			named.Cell = name
			part.Trials = append(part.Trials, &named)
		}
	}
	return part
}

// wholeRounds returns the rounds in which every cell that runs in them has its trial.
func (r Run) wholeRounds() map[int]bool {
	trials := map[int]int{}
	for i := 0; i < len(r.Trials); { // most are of the round of the one before
		begin := i
		for i < len(r.Trials) && r.Trials[i].Round == r.Trials[begin].Round {
			i++
		}
		trials[r.Trials[begin].Round] += i - begin
	}
	every := map[int]int{} // how many cells run so often
	for i := range r.Header.Cells {
		every[r.Header.Cells[i].Every]++
	}
	whole := map[int]bool{}
	for round, n := range trials {
		for e, cells := range every {
			if (Cell{Every: e}).RunsIn(round) {
				n -= cells
			}
		}
		whole[round] = n == 0
	}
	return whole
}

// Placed returns the cell as it is in a run of several file systems.
func (c Cell) Placed(fileSystem string) Cell {
	c.Name, c.FileSystem = Named(fileSystem, c.Name), fileSystem
	if c.Twin != "" {
		c.Twin = Named(fileSystem, c.Twin)
	}
	if c.Short != "" {
		c.Short = Named(fileSystem, c.Short)
	}
	return c
}

// Placed returns what is missing as it is in a run of several file systems.
func (m Missing) Placed(fileSystem string) Missing {
	m.Cell = Named(fileSystem, m.Cell)
	return m
}
