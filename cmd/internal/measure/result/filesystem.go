package result

import (
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
)

// A FileSystem is a file system that a run made for itself, and removed at its end.
type FileSystem struct {
	Name string `json:"name"`       // such as ext4-writeback
	How  string `json:"how"`        // a description of the device under it
	Size int64  `json:"size_bytes"` // of its image, or the most that it may hold

	// Machine are the facts that differ from the header's: about the file system, its mount and its
	// device.
	Machine []machine.Fact `json:"machine"`
}

// Named returns the name that a cell has in a run on several file systems.
func Named(fileSystem, cell string) string { return fileSystem + ": " + cell }

// FileSystems returns the file systems that the run made for itself, in the order of its cells. It is
// empty for a run on its directory's file system alone.
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

// facts returns the host's facts, with the file system's own facts in their place.
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

// NewFileSystem describes a file system. Of the facts about its directory it keeps the ones that differ
// from the host's.
func NewFileSystem(name, how string, size int64, host, there []machine.Fact) FileSystem {
	other := slices.DeleteFunc(slices.Clone(there), func(f machine.Fact) bool { return slices.Contains(host, f) })
	return FileSystem{Name: name, How: how, Size: size, Machine: other}
}

// On returns the part of the run that was on one of its file systems. Its cells have the names that
// they have in a run on one file system. It has only the rounds that are complete in the whole run.
func (r Run) On(fileSystem string) Run {
	prefix := Named(fileSystem, "")
	whole := r.wholeRounds()
	part := r
	part.Header.Cells, part.Header.Missing, part.Header.FileSystems, part.Trials, part.Rests = nil, nil, nil, nil, nil
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
	for _, rest := range r.Rests {
		here := Rest{Round: rest.Round}
		for _, c := range rest.Cells {
			if name, ok := strings.CutPrefix(c, prefix); ok {
				here.Cells = append(here.Cells, name)
			}
		}
		part.Rests = append(part.Rests, here)
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

// wholeRounds returns the complete rounds: every cell that runs in the round, and does not rest, has its trial.
func (r Run) wholeRounds() map[int]bool {
	trials := map[int]int{}
	for i := 0; i < len(r.Trials); { // most trials have the same round as the one before
		begin := i
		for i < len(r.Trials) && r.Trials[i].Round == r.Trials[begin].Round {
			i++
		}
		trials[r.Trials[begin].Round] += i - begin
	}
	every := map[int]int{} // number of cells with this Every
	for i := range r.Header.Cells {
		every[r.Header.Cells[i].Every]++
	}
	rests := map[Cell]int{} // the last round, by a cell with its name and Every alone
	for _, rest := range r.Rests {
		for _, c := range r.Header.Cells {
			is := Cell{Name: c.Name, Every: c.Every}
			if _, known := rests[is]; !known && slices.Contains(rest.Cells, c.Name) {
				rests[is] = rest.Round
			}
		}
	}
	whole := map[int]bool{}
	for round, n := range trials {
		for c, last := range rests {
			if round > last && c.RunsIn(round) {
				n++
			}
		}
		for e, cells := range every {
			if (Cell{Every: e}).RunsIn(round) {
				n -= cells
			}
		}
		whole[round] = n == 0
	}
	return whole
}

// Placed returns the cell as part of a run on several file systems.
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

// Placed returns the missing cell as part of a run on several file systems.
func (m Missing) Placed(fileSystem string) Missing {
	m.Cell = Named(fileSystem, m.Cell)
	return m
}
