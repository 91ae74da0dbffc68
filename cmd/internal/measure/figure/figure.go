// Package figure computes all figures from a run's raw data, in one place. So the table, the page, the
// exports and the advice show the same numbers.
//
// A figure for which there are too few samples is absent, not weak. The package
// formats nothing, reads and writes no files and keeps no clock, so the same run
// always has the same figures.
//
// Start with [Of] for one run, and [Compare] for two.
package figure

import (
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// ErrNoRound reports that a run has no complete round, and so no figure.
var ErrNoRound = errors.New("no round is whole")

// Figures are all numbers that are computed from a run. They use only complete rounds; round 0
// contributes the system calls alone.
type Figures struct {
	Run      result.Run `json:"-"`
	run      indexed
	groups   map[Load]int             // places in Groups
	clocks   map[string]time.Duration // by the name of the empty cell
	floors   map[kind]Number          // looked up before
	Rounds   int                      `json:"rounds"`             // complete ones
	Trials   int                      `json:"trials"`             // trials of the cells in Groups and of their twins, in complete rounds
	Outliers int                      `json:"outliers"`           // among the trials; they are counted like all others
	Noise    Noise                    `json:"noise"`              // the largest of Noises
	Noises   []Noise                  `json:"noises,omitempty"`   // one for each cell that was run twice
	Harness  []Harness                `json:"harness,omitempty"`  // one for each load
	Controls []Control                `json:"controls,omitempty"` // of a run whose rounds had processes of their own
	Groups   []Group                  `json:"groups"`
	Warnings []Warning                `json:"warnings"`
}

// Noise is the difference between a cell and its twin, which do the same work. Cells that work in
// memory, cells that wait for the disk and paced cells each have a noise of their own. So does each
// file system of a run on several.
type Noise struct {
	// Floor is the least difference that can have a verdict. For a sweep's cell it is the farther end
	// of the interval of the twins' ratio, for a study's arm the ratio itself. 0.02 is 2 %. It is
	// absent if no cell has a twin, or the rounds are too few: then Most replaces it.
	Floor Number      `json:"floor"`
	Most  Number      `json:"most"`              // the largest possible difference of the two: the farther end of the interval
	Twin  result.Cell `json:"-"`                 // the cell that was run twice, under its second name
	Of    string      `json:"of_cell,omitempty"` // its first name
}

// Harness is the cost of measuring itself, measured with a cell that writes nothing. It is subtracted
// from net figures, see [Net].
type Harness struct {
	Cell    result.Cell   `json:"cell"`
	Time    Summary       `json:"write_ns_per_record"`
	CPU     Number        `json:"cpu_ns_per_record"`     // the median of the trials
	Service Number        `json:"service_ns_per_record"` // at a rate: the mean from the call to the return
	Late    Latency       `json:"response_latency"`      // at a rate: how late the system wakes the writer
	Clock   time.Duration `json:"clock_ns,omitempty"`    // the time of one Write that does nothing: 90 % take at most that, or a step of the clock
}

// A Group is the cells that are compared with each other: all policies under one load.
type Group struct {
	Load
	Rows []Row `json:"rows"`
}

// A Load is the work that a cell gives its policy.
type Load struct {
	FileSystem  string       `json:"file_system,omitempty"` // of a run that made some; else empty
	Group       string       `json:"group,omitempty"`       // of a study's arms, which share no other part of the load
	RecordBytes int64        `json:"record_bytes"`
	Writers     int          `json:"writers"`
	Rate        float64      `json:"rate_per_s,omitempty"` // 0 is a closed loop
	Cache       result.Cache `json:"cache,omitempty"`
	Steady      bool         `json:"steady,omitempty"`
	Paced       bool         `json:"paced,omitempty"` // trials in which the periods of policies fall due; see [result.Cell]
}

// LoadOf returns the load of a cell.
func LoadOf(c result.Cell) Load {
	if c.Group != "" {
		return Load{Group: c.Group, FileSystem: c.FileSystem}
	}
	return Load{FileSystem: c.FileSystem, RecordBytes: c.RecordBytes, Writers: c.Writers, Rate: c.Rate, Cache: c.Cache, Steady: c.Steady, Paced: c.Every > 0}
}

// Open reports whether records are due at a rate. The rate then decides how long a trial takes, so the
// cost is the mean time of a Write, from its call to its return.
func (l Load) Open() bool { return l.Rate > 0 }

// Costs returns the load's costs, round by round: the nanoseconds to write one record, by which the
// cells are compared. That is the time from the first Write to the return of the last. For a trial in
// turns it is the time of the shortest turn, since disturbances only add time. At a rate it is the mean
// time of a Write (see [Load.Open]). For the arms of a study it is the time from open to close. The
// harness is in these costs; see [Net].
func (l Load) Costs(trials []*result.Trial) []float64 {
	if l.Group != "" {
		return result.Costs(trials)
	}
	return each(trials, func(t *result.Trial) float64 {
		switch {
		case l.Open() && t.Service != nil && t.Service.Count > 0:
			return t.Service.Mean()
		case l.Open(): // a file without service times
			return perRecord(cpu)(t)
		case len(t.Turns) > 0:
			return float64(slices.Min(t.Turns)) * float64(len(t.Turns)) / float64(t.Records)
		case t.Write > 0:
			return float64(t.Write) / float64(t.Records)
		}
		return float64(t.Elapsed) / float64(t.Records) // a file without stages
	})
}

// Of computes the figures of a run. It returns ErrNoRound, or an error if the latencies
// are damaged.
func Of(run result.Run) (Figures, error) {
	f, err := compareAll(run, false)
	if err != nil {
		return f, err
	}
	f.Controls = controlsOf(run)
	f.Warnings = f.warn()
	return f, nil
}

// compareAll computes all figures but the controls and the warnings, or with costsOnly no latencies and no harness either: the
// comparisons take neither.
func compareAll(run result.Run, costsOnly bool) (Figures, error) {
	f := Figures{Run: run, run: index(run), Rounds: run.Rounds(), Noise: Noise{Floor: absent}}
	f.groups, f.clocks, f.floors = map[Load]int{}, map[string]time.Duration{}, map[kind]Number{}
	if f.Rounds == 0 {
		return f, ErrNoRound
	}
	rows, errs := make([]Row, len(run.Header.Cells)), make([]error, len(run.Header.Cells))
	var all sync.WaitGroup
	for i, c := range run.Header.Cells {
		if !c.Empty && c.Twin == "" && !c.StandIn {
			all.Go(func() {
				rows[i] = newRow(f.run, c, f.Rounded(c.Name))
				if !costsOnly {
					errs[i] = rows[i].addLatencies(f.Rounded(c.Name))
				}
			})
		}
	}
	all.Wait()
	for _, empty := range []bool{true, false} { // empty cells first: all others use their clock
		for i, c := range run.Header.Cells {
			if c.Empty != empty || empty && costsOnly {
				continue
			}
			if err := errors.Join(errs[i], f.addCell(c, f.Rounded(c.Name), rows[i])); err != nil {
				return f, err
			}
		}
	}
	for _, g := range f.Groups {
		switch {
		case g.Group != "":
			g.compareArms(f.floor(g.Rows[0].Cell))
		case g.Paced:
			f.comparePaced(g)
		default:
			f.compareGroup(g)
		}
	}
	return f, nil
}

// Rounded returns the trials of a cell in complete rounds: see [result.Run.Rounded].
func (f Figures) Rounded(cell string) []*result.Trial { return f.run.Rounded(cell) }

// addCell adds the figures of one cell; r is used if the cell is compared.
func (f *Figures) addCell(c result.Cell, trials []*result.Trial, r Row) error {
	load := LoadOf(c)
	if c.Empty {
		h, err := newHarness(c, load, trials)
		f.Harness = append(f.Harness, h)
		f.clocks[c.Name] = h.Clock
		return err
	}
	f.Trials += len(trials)
	if c.StandIn {
		return nil
	}
	if c.Twin != "" {
		n := Noise{floorOf(f.run, c), twinned(f.run, c, stat.Noise), c, c.Twin}
		f.Noises = append(f.Noises, n)
		if len(f.Noises) == 1 || !n.Floor.Known() || n.Floor > f.Noise.Floor {
			f.Noise = n
		}
		return nil
	}
	if empty, ok := emptyOf(f.run, load); ok {
		r.Clock = f.clocks[empty.Name]
	}
	f.Outliers += r.Time.Outliers
	i, ok := f.groups[load]
	if !ok {
		i, f.groups[load] = len(f.Groups), len(f.Groups)
		f.Groups = append(f.Groups, Group{Load: load})
	}
	f.Groups[i].Rows = append(f.Groups[i].Rows, r)
	return nil
}

// noTime is the shortest time that a histogram records. If most Writes that do nothing take no longer,
// the clock moves in steps, as on Windows. The longest of those Writes then took one step.
const noTime = time.Nanosecond

func newHarness(c result.Cell, load Load, trials []*result.Trial) (Harness, error) {
	h := Harness{Cell: c, Time: summarize(load.Costs(trials)), CPU: median(trials, perRecord(cpu)), Service: absent}
	write, _, err := merge(trials, func(t *result.Trial) *result.Latency { return &t.Latency })
	if err == nil && load.Open() {
		h.Late, h.Service = write, median(trials, func(t *result.Trial) float64 { return t.Service.Mean() })
		write, _, err = merge(trials, func(t *result.Trial) *result.Latency { return t.Service })
	}
	if h.Clock = write.P90; h.Clock <= noTime {
		h.Clock = write.Max
	}
	return h, err
}

// compareArms compares the costs of a study's arms with the cheapest arm. All intervals together hold
// with 95 %.
func (g Group) compareArms(floor Number) {
	var cells [][]float64
	for _, r := range g.Rows {
		cells = append(cells, r.Costs)
	}
	fastest, comparisons := stat.CompareGroup(cells, float64(floor), stat.Band)
	g.Rows[fastest].Fastest = true
	for i, c := range comparisons {
		g.Rows[i].Cost = Comparison{c}
	}
}

// compareGroup compares the costs of a sweep's cells with the cheapest cell, among the cells whose
// periods fell due if there are any. All their intervals together hold with 95 %. The other cells get
// no verdict, and each of their intervals holds alone.
func (f Figures) compareGroup(g Group) {
	var judged []int
	for i, r := range g.Rows {
		if r.Period.Judged() {
			judged = append(judged, i)
		}
	}
	of := judged
	if len(judged) == 0 {
		of = make([]int, len(g.Rows))
		for i := range of {
			of[i] = i
		}
	}
	var cells [][]float64
	for _, i := range of {
		cells = append(cells, g.Rows[i].Costs)
	}
	at, _ := stat.CompareGroup(cells, 0, stat.Band)
	fastest := &g.Rows[of[at]]
	fastest.Fastest = len(judged) > 0
	harness := harnessOf(f.run, g.Load, g.Costs)
	known := map[[2]uint64][]stat.Comparison{} // by the bits of floor and harness: few cells differ in them
	for n, i := range judged {
		floor := f.floorBetween(fastest.Cell, g.Rows[i].Cell)
		g.Rows[i].Cost = withHarness(harness, func(more float64) stat.Comparison {
			key := [2]uint64{math.Float64bits(floor), math.Float64bits(more)}
			if known[key] == nil {
				var net [][]float64
				for _, costs := range cells {
					net = append(net, less(costs, more))
				}
				_, known[key] = stat.CompareGroup(net, floor, stat.Band)
			}
			return known[key][n]
		})
	}
	fastest.Alone = fastest.Fastest && !slices.ContainsFunc(g.Rows, func(r Row) bool {
		return !r.Fastest && r.Period.Judged() && r.Cost.Verdict != stat.Slower
	})
	for i := range g.Rows {
		if r := &g.Rows[i]; !r.Period.Judged() {
			r.Cost = withHarness(harness, func(more float64) stat.Comparison { // without a floor there is no verdict
				n := min(len(fastest.Costs), len(r.Costs)) // one of the two may have rested
				return stat.Compare(less(fastest.Costs[:n], more), less(r.Costs[:n], more), math.NaN(), stat.Band)
			})
		}
	}
}

// comparePaced compares each paced cell with its control, the cell with the same buffer that never syncs. Each pair was chosen
// before it was measured, so its interval holds alone. If a cell with shorter periods bounds a cell's cost, that cell is
// compared in its place, and the interval reaches at least to the fastest of the cell's own trials.
func (f Figures) comparePaced(g Group) {
	harness := harnessOf(f.run, g.Load, g.Costs)
	for i := range g.Rows {
		r := &g.Rows[i]
		at := slices.IndexFunc(g.Rows, func(c Row) bool { return c.Cell.Policy == holdfast.Buffered(r.Cell.Policy.Buffer) })
		if at < 0 {
			r.Cost = Comparison{stat.Compare(nil, nil, math.NaN(), stat.Band)}
			continue
		}
		by := r.Cell
		if n, ok := f.run.cells[r.Cell.Short]; ok {
			by = f.Run.Header.Cells[n]
			r.BoundBy = max(by.Policy.FlushEvery, by.Policy.Sync.Every)
		}
		floor := math.NaN()
		if r.Period.Judged() {
			floor = f.floorBetween(g.Rows[at].Cell, by)
		}
		r.Control = at == i
		control, own := g.Rows[at].Costs, costsOf(f.run, by.Name)
		if period := newPeriod(f.run, by, f.Rounded(by.Name)); period != nil && period.Short > 0 {
			all, took := control, own
			control, own = nil, nil
			for n, t := range f.Rounded(by.Name) {
				if fellDue(f.run, by, t) >= LeastDue {
					control, own = append(control, all[n]), append(own, took[n])
				}
			}
		}
		against := func(more float64) stat.Comparison {
			c := stat.Compare(less(control, more), less(own, more), floor, stat.Band)
			if r.BoundBy > 0 && len(r.Costs) > 0 {
				c = c.Reaching(slices.Min(less(r.Costs, more)) / stat.Median(less(control, more)))
			}
			if c.Verdict == stat.Faster { // it does all that the control does, and more
				c.Verdict, c.Bound = stat.NotProven, 0
			}
			return c
		}
		if more, ok := beyondBurst(f.run, g.Rows[at].Cell); ok {
			r.Cost = Comparison{against(more)}
		} else {
			r.Cost = withHarness(harness, against)
		}
	}
}

// beyondBurst returns how much longer a Write of a paced control takes than one of the same policy in the burst, both net. Paced
// costs less this time are the burst's cost, changed by the difference to the control. Measuring takes the same time of both
// cells, so it is not in the difference. A ratio of the net costs themselves is noise: 20 ns are left of a Write, and measuring takes 80.
// If the control costs less at a pace than in the burst, ok is false: the ratio would be too small.
func beyondBurst(run indexed, control result.Cell) (more float64, ok bool) {
	for _, c := range run.Header.Cells {
		l := LoadOf(c)
		if c.Policy != control.Policy || c.Empty || c.Twin != "" || l.Open() || l.Group != "" ||
			l.FileSystem != control.FileSystem || l.RecordBytes != control.RecordBytes || l.Writers != control.Writers {
			continue
		}
		burst := stat.Median(costsOf(run, c.Name))
		more = stat.Median(costsOf(run, control.Name)) - burst
		return more, burst > 0 && more > 0
	}
	return 0, false
}

// twinned returns the result of `of` for the costs of a cell and its twin, such as their noise.
func twinned(run indexed, twin result.Cell, of func(a, a2 []float64) float64) Number {
	load := LoadOf(twin)
	return Number(of(load.Costs(run.Rounded(twin.Twin)), load.Costs(run.Rounded(twin.Name))))
}

// floorOf returns the noise between a cell and its twin: for arms the centre, for a sweep's cells the
// farther end of the interval.
func floorOf(run indexed, twin result.Cell) Number {
	if twin.Group != "" {
		return Number(stat.Floor(result.Costs(run.Rounded(twin.Twin)), result.Costs(run.Rounded(twin.Name))))
	}
	more := 0.0
	if i, ok := run.cells[twin.Twin]; ok && LoadOf(twin).Open() {
		if beyond, ok := beyondBurst(run, run.Header.Cells[i]); ok {
			more = beyond
		}
	}
	c := stat.Compare(less(costsOf(run, twin.Twin), more), less(costsOf(run, twin.Name), more), 0, stat.Band)
	if !c.HasInterval() {
		return absent
	}
	return Number(math.Max(c.High, 1/c.Low) - 1)
}

// waitsForDisk reports whether the writers of a cell may wait for the disk.
func waitsForDisk(c result.Cell) bool {
	return c.Policy.Sync.Waits() || c.Policy.Sync.Mode == holdfast.SyncPeriodic
}

// A kind is a set of cells with the same noise.
type kind struct {
	fileSystem string
	waits      bool
	every      int
}

// floor returns the noise of a cell's own kind.
func (f Figures) floor(c result.Cell) Number {
	of := kind{c.FileSystem, waitsForDisk(c), c.Every}
	floor, known := f.floors[of]
	if !known {
		floor = f.floorOfKind(c)
		f.floors[of] = floor
	}
	return floor
}

// floorOfKind returns the noise of a cell's kind. If no cell of the kind was run twice, it is the
// largest noise of the other kinds that may replace it.
func (f Figures) floorOfKind(c result.Cell) Number {
	largest := absent
	for _, own := range []func(Noise) bool{
		func(n Noise) bool { return waitsForDisk(n.Twin) == waitsForDisk(c) && n.Twin.Every == c.Every },
		func(n Noise) bool { return n.Twin.Every == c.Every },
		func(Noise) bool { return true },
	} {
		found := false
		for _, n := range f.Noises {
			if n.Twin.FileSystem == c.FileSystem && own(n) {
				floor := n.Floor
				if !floor.Known() {
					floor = n.Most // with few rounds: only a gross difference beyond Most gets a verdict
				}
				if found = true; !largest.Known() || !floor.Known() || floor > largest {
					largest = floor
				}
			}
		}
		if found {
			return largest
		}
	}
	return absent
}

// floorBetween returns the noise of a ratio of two cells: the larger of the two.
func (f Figures) floorBetween(a, b result.Cell) float64 {
	return math.Max(float64(f.floor(a)), float64(f.floor(b)))
}

// VerdictRounds returns the least number of rounds that can prove a difference in every
// group.
func (f Figures) VerdictRounds() int { return stat.GroupRounds(f.largest()) }

// largest returns the number of cells in the largest group. A study compares two arms at a time, which
// it chose beforehand.
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

// controlsOf returns the controls of a run; a run whose rounds had no processes of their own has none.
func controlsOf(run result.Run) []Control {
	if len(run.Controls) == 0 {
		return nil
	}
	var found []Control
	for _, c := range controls {
		var distances []float64
		times := c.times(run)
		middle := stat.Quantile(times, 0.5)
		for _, t := range times {
			distances = append(distances, math.Abs(math.Log(t/middle)))
		}
		found = append(found, Control{c.name, Number(middle), Number(math.Expm1(stat.Quantile(distances, 0.9)))})
	}
	return found
}
