package result

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/machine"
)

// A FileSystem is one that a run made for itself, and removed at its end.
type FileSystem struct {
	Name string `json:"name"`       // such as ext4-writeback
	How  string `json:"how"`        // in words: on what it was made
	Size int64  `json:"size_bytes"` // of its image, or the most that it may hold

	// Machine are the facts that are other ones there than in the header: of the file
	// system, its mount and its device.
	Machine []machine.Fact `json:"machine"`
}

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

// Made returns what the header tells of one of the run's file systems.
func (h Header) Made(fileSystem string) (FileSystem, bool) {
	i := slices.IndexFunc(h.FileSystems, func(f FileSystem) bool { return f.Name == fileSystem })
	if i < 0 {
		return FileSystem{}, false
	}
	return h.FileSystems[i], true
}

// facts returns those of the header with those of the file system in their places.
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

// NewFileSystem describes one by the facts of the machine as they are in its folder;
// it keeps those that are not the host's.
func NewFileSystem(name, how string, size int64, host, there []machine.Fact) FileSystem {
	other := slices.DeleteFunc(slices.Clone(there), func(f machine.Fact) bool { return slices.Contains(host, f) })
	return FileSystem{Name: name, How: how, Size: size, Machine: other}
}

// On returns the part of the run that was on one of its file systems, with the names
// that the cells have in a run of one. Only whole rounds of the whole run are in it.
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

// Placed returns the cell as it is in a run of several file systems.
func (c Cell) Placed(fileSystem string) Cell {
	c.Name, c.FileSystem = Named(fileSystem, c.Name), fileSystem
	if c.Twin != "" {
		c.Twin = Named(fileSystem, c.Twin)
	}
	return c
}

// Placed returns what is missing as it is in a run of several file systems.
func (m Missing) Placed(fileSystem string) Missing {
	m.Cell = Named(fileSystem, m.Cell)
	return m
}

// As returns a run on one file system as a run on several that has this one alone:
// what [Run.On] takes apart. The facts of its machine are those of the file system.
func (r Run) As(made FileSystem) Run {
	cells, missing, trials := r.Header.Cells, r.Header.Missing, r.Trials
	r.Header.Cells, r.Header.Missing, r.Trials = nil, nil, nil
	for _, c := range cells {
		r.Header.Cells = append(r.Header.Cells, c.Placed(made.Name))
	}
	for _, m := range missing {
		r.Header.Missing = append(r.Header.Missing, m.Placed(made.Name))
	}
	for _, t := range trials {
		t.Cell = Named(made.Name, t.Cell)
		r.Trials = append(r.Trials, t)
	}
	r.Header.FileSystems = []FileSystem{made}
	return r
}

// ErrNotOne says that runs can't be merged.
var ErrNotOne = errors.New("the runs can't be made one")

// Merge returns one run of all that runs on several file systems hold, such as one
// that went on elsewhere meanwhile: it has the header of the first, and the rounds of
// the same number are one round. What is whole in only some of them is whole in none.
// The runs must be of one study, and have no cell in common: else it is ErrNotOne.
func Merge(runs ...Run) (Run, error) {
	if len(runs) == 0 {
		return Run{}, fmt.Errorf("%w: there is none", ErrNotOne)
	}
	one := runs[0]
	h := &one.Header
	h.Cells, h.Missing, h.FileSystems, one.Trials = slices.Clone(h.Cells), slices.Clone(h.Missing), slices.Clone(h.FileSystems), slices.Clone(one.Trials)
	for _, r := range runs[1:] {
		if err := h.take(r.Header); err != nil {
			return Run{}, err
		}
		later := max(0, r.Header.StartedAt.Sub(h.StartedAt))
		for _, t := range r.Trials {
			t.Position += len(h.Cells) - len(r.Header.Cells)
			t.StartNs += later
			one.Trials = append(one.Trials, t)
		}
		one.Resumed = append(slices.Clip(one.Resumed), r.Resumed...)
		one.End = one.End.with(r.End)
		one.Torn = one.Torn || r.Torn
	}
	slices.SortStableFunc(one.Trials, func(a, b Trial) int { return a.Round - b.Round })
	if one.End != nil {
		one.End.Rounds = one.Rounds()
	}
	return one, nil
}

// take adds the cells of another run to the header.
func (h *Header) take(other Header) error {
	if other.Study != h.Study {
		return fmt.Errorf("%w: one is of %s, one of %s", ErrNotOne, h.Study, other.Study)
	}
	for _, c := range other.Cells {
		if slices.ContainsFunc(h.Cells, func(mine Cell) bool { return mine.Name == c.Name }) {
			return fmt.Errorf("%w: both have %s", ErrNotOne, c.Name)
		}
	}
	h.Cells = append(h.Cells, other.Cells...)
	h.Missing = append(h.Missing, other.Missing...)
	h.FileSystems = append(h.FileSystems, other.FileSystems...)
	h.Plan.Rounds = min(h.Plan.Rounds, other.Plan.Rounds)
	h.Plan.Estimate += other.Plan.Estimate
	h.Plan.Size += other.Plan.Size
	h.Plan.Room += other.Plan.Room
	h.Plan.Files += other.Plan.Files
	return nil
}

// with returns the end of two runs together: that of the one that came less far.
func (e *End) with(other *End) *End {
	if e == nil || other == nil {
		return nil
	}
	both := *e
	if both.State == Complete {
		both.State, both.Reason = other.State, other.Reason
	}
	both.Elapsed += other.Elapsed
	both.Width = max(e.Width, other.Width)
	both.ClockJump = furthest(e.ClockJump, other.ClockJump)
	return &both
}

func furthest(a, b time.Duration) time.Duration {
	if b.Abs() > a.Abs() {
		return b
	}
	return a
}
