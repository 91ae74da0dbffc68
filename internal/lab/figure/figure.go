// Package figure computes all figures from a run's raw values, in one place. So the
// table, the page, the exports and the advice have the same number.
//
// A figure for which there are too few samples is absent, not weak. The package
// formats nothing, reads and writes no files and keeps no clock, so the same run
// always has the same figures.
//
// Start with [Of] for one run, and [Compare] for two.
package figure

import (
	"errors"
	"slices"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/lab/result"
	"github.com/holdfast-go/holdfast/internal/lab/stat"
)

// ErrNoRound reports that a run has no whole round, and so no figure.
var ErrNoRound = errors.New("no round is whole")

// Figures are all numbers that are computed from a run. Only whole rounds are in
// them; from round 0 come the system calls alone.
type Figures struct {
	Run      result.Run `json:"-"`
	Rounds   int        `json:"rounds"`   // that are whole
	Trials   int        `json:"trials"`   // of the cells in Groups, and their twins, in whole rounds
	Outliers int        `json:"outliers"` // of them; they count like all others
	Noise    Noise      `json:"noise"`
	Harness  []Harness  `json:"harness,omitempty"`
	Groups   []Group    `json:"groups"`
	Warnings []Warning  `json:"warnings"`

	floors map[string]Number // the noise of each file system that the run made for itself
}

// Noise is the most by which a cell and its twin, which do the same, may differ. In a run on
// several file systems each has its own, and this is the largest; absent if one has
// none.
type Noise struct {
	Floor Number      `json:"floor"`             // 0.02 is 2 %; absent where no cell has a twin
	Twin  result.Cell `json:"-"`                 // the cell that was run twice, under its second name
	Of    string      `json:"of_cell,omitempty"` // its first name
}

// Harness is the cost of measuring itself, measured by a cell that writes nothing. It
// is in the figures of all other cells.
type Harness struct {
	Cell result.Cell `json:"cell"`
	Time Summary     `json:"elapsed_ns_per_record"`
	CPU  Number      `json:"cpu_ns_per_record"` // the median of the trials
}

// A Group is the cells that are compared with each other: one load, all policies.
type Group struct {
	Load
	Rows []Row `json:"rows"`
}

// A Load is what a cell asks of its policy.
type Load struct {
	FileSystem  string       `json:"file_system,omitempty"` // of a run that made some; else empty
	Group       string       `json:"group,omitempty"`       // of a study's arms, which have nothing else in common
	RecordBytes int64        `json:"record_bytes"`
	Writers     int          `json:"writers"`
	Rate        float64      `json:"rate_per_s,omitempty"` // 0 is a closed loop
	Cache       result.Cache `json:"cache,omitempty"`
	Steady      bool         `json:"steady,omitempty"`
}

// LoadOf returns the load of a cell.
func LoadOf(c result.Cell) Load {
	if c.Group != "" {
		return Load{Group: c.Group, FileSystem: c.FileSystem}
	}
	return Load{FileSystem: c.FileSystem, RecordBytes: c.RecordBytes, Writers: c.Writers, Rate: c.Rate, Cache: c.Cache, Steady: c.Steady}
}

// ByCPU reports whether the load's cells are compared by their CPU time: in an
// open loop the rate decides how long a trial takes.
func (l Load) ByCPU() bool { return l.Rate > 0 }

// Costs returns the costs by which the load's cells are compared, round by round: the
// nanoseconds that a record takes, of the clock or of the CPUs (see [Load.ByCPU]).
func (l Load) Costs(trials []result.Trial) []float64 {
	if !l.ByCPU() {
		return result.Costs(trials)
	}
	return each(trials, perRecord(cpu))
}

// Of computes the figures of a run. It returns ErrNoRound, or an error if the latencies
// are damaged.
func Of(run result.Run) (Figures, error) {
	f := Figures{Run: run, Rounds: run.Rounds(), Noise: Noise{Floor: absent}, floors: map[string]Number{}}
	if f.Rounds == 0 {
		return f, ErrNoRound
	}
	for _, c := range run.Header.Cells {
		if err := f.addCell(c, run.Rounded(c.Name)); err != nil {
			return f, err
		}
	}
	for i := range f.Groups {
		floor, ok := f.floors[f.Groups[i].FileSystem]
		if !ok {
			floor = absent
		}
		f.Groups[i].compare(float64(floor))
	}
	f.Warnings = f.warn()
	return f, nil
}

// addCell adds the figures of one cell.
func (f *Figures) addCell(c result.Cell, trials []result.Trial) error {
	if c.Empty {
		f.Harness = append(f.Harness, Harness{c, summarize(result.Costs(trials)), median(trials, perRecord(cpu))})
		return nil
	}
	f.Trials += len(trials)
	if c.Twin != "" {
		noise := twinned(f.Run, c, stat.Noise)
		if len(f.floors) == 0 || !noise.Known() || noise > f.Noise.Floor {
			f.Noise = Noise{noise, c, c.Twin}
		}
		f.floors[c.FileSystem] = twinned(f.Run, c, stat.Floor)
		return nil
	}
	r, err := newRow(f.Run, c, trials)
	f.Outliers += r.Time.Outliers
	load := LoadOf(c)
	i := slices.IndexFunc(f.Groups, func(g Group) bool { return g.Load == load })
	if i < 0 {
		i = len(f.Groups)
		f.Groups = append(f.Groups, Group{Load: load})
	}
	f.Groups[i].Rows = append(f.Groups[i].Rows, r)
	return err
}

// twinned returns what of says of a cell and its twin, such as their noise.
func twinned(run result.Run, twin result.Cell, of func(a, a2 []float64) float64) Number {
	load := LoadOf(twin)
	return Number(of(load.Costs(run.Rounded(twin.Twin)), load.Costs(run.Rounded(twin.Name))))
}

// compare compares the costs of the group's rows with the cheapest of them. All its
// intervals hold together with 95 %.
func (g Group) compare(floor float64) {
	var cells [][]float64
	for _, r := range g.Rows {
		cells = append(cells, r.Costs)
	}
	fastest, comparisons := stat.CompareGroup(cells, floor, stat.Band)
	g.Rows[fastest].Fastest = true
	for i, c := range comparisons {
		g.Rows[i].Cost = Comparison{c}
	}
}

// VerdictRounds returns the least number of rounds that can prove a difference in every
// group.
func (f Figures) VerdictRounds() int { return stat.GroupRounds(f.largest()) }

// largest returns how many cells the largest group has. A study compares two arms
// at a time, which it chose beforehand.
func (f Figures) largest() int {
	cells := 0
	for _, g := range f.Groups {
		if g.Group != "" {
			cells = max(cells, min(2, len(g.Rows)))
			continue
		}
		cells = max(cells, len(g.Rows))
	}
	return cells
}

// Policies returns the policies of the rows, each once, in their order. The arms of
// a study have none.
func (f Figures) Policies() []holdfast.Policy {
	var list []holdfast.Policy
	for _, g := range f.Groups {
		for _, r := range g.Rows {
			if g.Group == "" && !slices.Contains(list, r.Cell.Policy) {
				list = append(list, r.Cell.Policy)
			}
		}
	}
	return list
}
