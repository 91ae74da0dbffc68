// Package sweep compares many policies under one load or several: it finds the cost of each, or the one
// that meets a need. It fits the cells into the given time.
//
// Start with [Sweep]; [Policy] and [Advice] are the only two.
package sweep

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// A Sweep is a question with a matrix of policies and loads.
type Sweep struct {
	Name     string
	Question string

	// Workloads returns the cells, still without their numbers of records.
	Workloads func(study.Choice) []Workload

	paced bool // at a rate, the trials are planned for a judgement
}

// A Workload is a cell before its number of records is known.
type Workload struct {
	Twin        bool // repeats the workload before it, to learn the noise
	Empty       bool // writes nothing, to learn the cost of measuring
	Policy      holdfast.Policy
	RecordBytes int64
	Writers     int
	study.Setting

	Length time.Duration // of a trial of a paced workload; 0 is none

	Few     int    // total number of trials of a paced workload; 0: as many as the others
	Short   string // if Few is set: the name of the workload that bounds its cost, see [result.Cell.Short]
	StandIn bool   // only bounds the cost of another workload

	Turns int // number of turns in a trial; 0: no turns

	Controlled bool // the same bytes are written beside it without a Writer, see [result.Cell.Control]
}

// steadyTime is the longest time of a steady trial by default.
const steadyTime = time.Minute

// Name returns the workload's name, unique in the matrix.
func (w Workload) Name() string {
	name := fmt.Sprintf("policy=%v/record=%v/writers=%d", w.Policy, holdfast.Size(w.RecordBytes), w.Writers)
	if w.Empty {
		name = fmt.Sprintf("empty/record=%v/writers=%d", holdfast.Size(w.RecordBytes), w.Writers)
	}
	if w.Rate > 0 {
		name += fmt.Sprintf("/rate=%g", w.Rate)
	}
	if w.Length > 0 {
		name += "/paced"
	}
	if w.Twin {
		name += "/again"
	}
	return name
}

// inSmallTurns reports whether the turns of a trial share the records of one trial. Without a buffer a
// short file shows as much as a long one.
func (w Workload) inSmallTurns() bool { return w.Turns > 0 && w.Policy.Buffer == 0 && !w.Empty }

// durable reports whether each Write waits for the disk.
func (w Workload) durable() bool {
	return !w.Empty && w.Policy.Sync.Waits()
}

// Prepare calibrates the sweep's cells on g with short runs, fits them into the
// choice's time and returns the matrix. It plans fewer rounds than the preset's if the disk is too slow
// for them; a chosen number of rounds stays, however long they take.
func (s Sweep) Prepare(ctx context.Context, g *trial.WorkDir, c study.Choice, probed func(done, all int)) (trial.Matrix, result.Plan, error) {
	if s.paced && c.Rate > 0 {
		return s.preparePaced(ctx, g, c, probed)
	}
	begun := time.Now()
	loads := s.Workloads(c)
	if c.Steady { // the trials end by themselves
		longest := steadyLongest(c, len(loads))
		largest := int64(study.DefaultRoom)
		if free, ok := g.Free(); ok {
			largest = min(largest, free/2)
		}
		if c.Room > 0 {
			largest = c.Room
		}
		var cells []trial.Cell
		for _, w := range loads {
			cell := w.cell(max(int64(w.Writers), largest/w.RecordBytes))
			cell.Longest = longest
			cells = append(cells, Cell(cell, longest, c.Counting))
		}
		m, plan := matrix(c, loads, cells, c.RoundsToRun())
		return m, plan, g.Need(plan.Room)
	}
	bursts, long := apart(loads)
	rates, err := calibrate(ctx, g, bursts, probed)
	if err != nil {
		return trial.Matrix{}, result.Plan{}, err
	}
	left := max(0, c.TimeToTake()-time.Since(begun))
	fit, every := plan(g, c, loads, rates, left*planned/100)
	if fit.rounds < fit.verdictRounds() {
		fit, every = plan(g, c, loads, rates, left*9/10)
	}
	var cells []trial.Cell
	for i, w := range fit.loads {
		cells = append(cells, Cell(w.cell(fit.records[i]), fit.rates[i].estimate(fit.records[i]), c.Counting))
	}
	for _, w := range long {
		cells = append(cells, Cell(w.paced(fit.rounds, every), w.Length+pacedFixed, c.Counting))
	}
	m, p := matrix(c, loads, cells, fit.rounds)
	if c.Rounds == 0 {
		m.Limit = max(1, left) // 0 is no limit
	}
	p.Limit = m.Limit
	p.Size += probeBytes(bursts)
	return m, p, g.Need(p.Room)
}

// planned is the percentage of the time that the planned rounds take. The rest is for further rounds that some ratio may need,
// or for a slow disk.
const planned = 65

// apart returns the bursts and the paced workloads.
func apart(loads []Workload) (bursts, long []Workload) {
	for _, w := range loads {
		if w.Length > 0 {
			long = append(long, w)
			continue
		}
		bursts = append(bursts, w)
	}
	return bursts, long
}

// paced is the cell of a paced workload, which runs in every n-th round, with n = every. A workload with Few
// trials spreads them over all rounds.
func (w Workload) paced(rounds, every int) result.Cell {
	records := int64(math.Ceil(w.Rate * w.Length.Seconds()))
	cell := w.cell(max(1, records/int64(w.Writers)) * int64(w.Writers))
	if cell.Every = every; w.Few > 0 {
		cell.Every = max(every, (rounds+w.Few-1)/w.Few)
	}
	return cell
}

// Outline returns the plan of Prepare, without its calibration. A cell has 0 records if calibration
// decides their number, and the plan's sizes are upper bounds.
func (s Sweep) Outline(c study.Choice) ([]result.Cell, result.Plan) {
	var cells []trial.Cell
	var outline []result.Cell
	loads := s.Workloads(c)
	longest := steadyLongest(c, len(loads))
	largest := most(nil, c, loads)
	if c.Steady {
		largest = cmp.Or(c.Room, study.DefaultRoom)
	}
	_, long := apart(loads)
	rounds, every := c.RoundsToRun(), 1
	if len(long) > 0 {
		least := rounds
		if c.Rounds == 0 {
			least = 0
		}
		rounds, every = spread(rounds, least, min(pacedTrials(c, long), mostPaced))
	}
	for _, w := range loads {
		cell := w.cell(0)
		if c.Steady {
			cell.Longest = longest
		}
		if w.Length > 0 {
			cell = w.paced(rounds, every)
		}
		outline = append(outline, cell)
		if w.Length == 0 {
			cell.Records = max(int64(w.Writers), largest/w.RecordBytes)
		}
		cells = append(cells, Cell(cell, longest, trial.NotCounting))
	}
	_, plan := matrix(c, loads, cells, rounds)
	if !c.Steady {
		// A chosen number of rounds runs, however short the time is.
		least := shortest * time.Duration(len(cells)*(c.Rounds+1))
		plan.Estimate, plan.Limit = max(least, c.TimeToTake()), c.TimeToTake()
		bursts, _ := apart(loads)
		if plan.Size += probeBytes(bursts); c.Rounds == 0 { // calibration may plan more rounds, of shorter trials
			plan.Size = max(plan.Size, int64(runMost*timesDefault(c)))
		}
	}
	return outline, plan
}

// steadyLongest is the longest time of each trial, with this number of steady cells.
func steadyLongest(c study.Choice, cells int) time.Duration {
	if c.Budget == 0 {
		return steadyTime
	}
	return c.Budget / time.Duration(cells*c.RoundsToRun())
}

// matrix returns the cells as a matrix, and its plan.
func matrix(c study.Choice, loads []Workload, cells []trial.Cell, rounds int) (trial.Matrix, result.Plan) {
	m := trial.Matrix{Cells: cells, Rounds: rounds, Seed: c.Seed}
	plan := result.Plan{Preset: c.Preset.Name, Rounds: rounds, Width: c.WidthToReach(), Words: c.EndsByWords(), Estimate: m.Estimate()}
	var once, round int64 // bytes
	type part struct{ size, every int64 }
	var paced []part
	for _, cell := range cells {
		size := cell.Records * cell.RecordBytes
		if cell.Empty {
			continue
		}
		plan.Room = max(plan.Room, room(size))
		prepared := trial.PreparedBytes(size)
		if once += size + prepared; cell.Every == 0 {
			round += (size+cell.Control*cell.RecordBytes)*int64(max(1, cell.Turns)) + prepared
		} else {
			paced = append(paced, part{size + prepared, int64(cell.Every)})
		}
	}
	_, block := blockCost(c, loads, nil)
	round += block
	size := func(rounds int64) int64 {
		all := once + round*rounds
		for _, p := range paced {
			all += p.size * ((rounds + p.every - 1) / p.every)
		}
		return all
	}
	plan.Size = size(int64(rounds))
	if plan.Width > 0 && !c.Steady {
		m.MostRounds = rounds
		for most := runBytes(c, loads); m.MostRounds < math.MaxInt16 && size(int64(m.MostRounds+1)) <= most; {
			m.MostRounds++
		}
		plan.MostRounds, plan.Size = m.MostRounds, size(int64(m.MostRounds))
	}
	return m, plan
}

// room is the disk space that one trial may need: its file with the Writer's reservation ahead of it,
// or the files that prepare the memory before. The file system's own bookkeeping is added.
func room(size int64) int64 {
	return max(size+size/2, trial.PreparedBytes(size)) + 4<<20
}

// strideBuffered times one Write in 31: see trial.Append.
const strideBuffered = 31

// controlSyncs is the largest number of records in the control of a policy whose Writes wait for the disk, since
// each is one sync. It is also at most a fourth of the trial's records.
const controlSyncs = 100

// cell is the workload with its number of records.
func (w Workload) cell(records int64) result.Cell {
	cell := result.Cell{
		Name: w.Name(), Empty: w.Empty, Policy: w.Policy,
		RecordBytes: w.RecordBytes, Writers: w.Writers, Records: records,
		Rate: w.Rate, Cache: w.Cache, Steady: w.Steady, LatencyStride: strideBuffered, Turns: w.Turns, Short: w.Short, StandIn: w.StandIn,
	}
	if w.Controlled {
		cell.Control = records
		if w.durable() {
			cell.Control = max(1, min(records/int64(w.Writers)/4, controlSyncs))
		}
	}
	if w.durable() || w.Rate > 0 {
		cell.LatencyStride = 1
	}
	if w.Twin {
		original := w
		original.Twin = false
		cell.Twin = original.Name()
	}
	return cell
}

// tracedRecords bounds the records of a cell that runs under a tracer, where each system call takes ten
// times as long.
const tracedRecords = 20_000

// Trace runs a cell once under [trial.CountByTrace], with fewer records.
func Trace(ctx context.Context, g *trial.WorkDir, c result.Cell) (trial.Traced, error) {
	c.Records = max(int64(c.Writers), min(c.Records, tracedRecords))
	if c.Rate > 0 {
		c.Records = max(int64(c.Writers), min(c.Records, int64(c.Rate)))
	}
	c.Steady, c.Control = false, 0
	_, err := Cell(c, 0, trial.Marks).Run(ctx, g, true)
	return trial.Traced{Cell: c.Name, Records: c.Records}, err
}

// Cell returns the function that runs a cell. Its warm-up counts system calls if counting says so, and
// is short if trials are long.
func Cell(c result.Cell, estimate time.Duration, counting trial.Counting) trial.Cell {
	a := trial.Append{
		Policy: c.Policy, RecordBytes: c.RecordBytes, Writers: c.Writers, Records: c.Records, Stride: c.LatencyStride,
		Rate: c.Rate, Cache: c.Cache, Empty: c.Empty, Steady: c.Steady, Longest: c.Longest, Turns: c.Turns, Control: c.Control,
	}
	if c.Every > 0 {
		a.Settle = pacedSettle
	}
	run := func(ctx context.Context, g *trial.WorkDir, warmUp bool) (result.Measurement, error) {
		a := a
		if warmUp {
			a.Count, a.Turns, a.Control = counting, 0, 0
			if c.Every > 0 {
				a.Records = max(int64(c.Writers), min(c.Records, int64(c.Rate*pacedMargin.Seconds())))
			}
			if a.Steady {
				w := Workload{Policy: c.Policy, RecordBytes: c.RecordBytes, Writers: c.Writers}
				a.Steady, a.Records = false, min(c.Records, 100*w.least(probeLeast))
			}
		}
		return a.Run(ctx, g)
	}
	return trial.Cell{Cell: c, Run: run, Estimate: estimate}
}

// mostTurns bounds the turns in an edited file.
const mostTurns = 100

// again returns the matrix of a sweep that a header describes. Results may have been edited: it refuses
// cells that no sweep has.
func again(h result.Header, counting trial.Counting) (trial.Matrix, error) {
	m := trial.Matrix{Rounds: h.Plan.Rounds, Seed: h.Seed, Limit: h.Plan.Limit}
	m.MostRounds = h.Plan.MostRounds
	each := h.Plan.Estimate / time.Duration(max(1, len(h.Cells)*(h.Plan.Rounds+1)))
	for _, c := range h.Cells {
		if c.Turns < 0 || c.Turns > mostTurns {
			return m, fmt.Errorf("%s can't be repeated in %d turns; it has %d at most", c.Name, c.Turns, mostTurns)
		}
		if c.Control < 0 || c.Control > c.Records {
			return m, fmt.Errorf("%s can't be repeated beside %d records of a control; it has %d records", c.Name, c.Control, c.Records)
		}
		if !c.Empty && (c.RecordBytes < trial.MinRecord || c.RecordBytes > int64(study.MaxRecord) || c.Writers < 1 || c.Records < 0) {
			return m, fmt.Errorf("%s can't be repeated with %d records of %d bytes by %d writers", c.Name, c.Records, c.RecordBytes, c.Writers)
		}
		estimate := each
		if c.Every > 0 && c.Rate > 0 {
			estimate = time.Duration(float64(c.Records)/c.Rate*float64(time.Second)) + pacedFixed
		}
		m.Cells = append(m.Cells, Cell(c, estimate, counting))
	}
	return m, nil
}

// PrepareOn is Prepare on several file systems: it calibrates on each of them, and runs
// all cells in one order. A trial that fits into the time on one file system need not fit on another.
// All run the number of rounds of the slowest.
func (s Sweep) PrepareOn(ctx context.Context, sites []study.Site, c study.Choice, probed func(done, all int)) (trial.Matrix, result.Plan, error) {
	var all []study.OnSite
	for _, site := range sites {
		m, plan, err := s.Prepare(ctx, site.WorkDir, c.Share(len(sites)), probed)
		if err != nil {
			return m, plan, fmt.Errorf("%s: %w", site.FileSystem, err)
		}
		all = append(all, study.OnSite{Site: site, Matrix: m, Plan: plan})
	}
	m, plan, _ := study.InOneOrder(all)
	return m, plan, nil
}

// OutlineOn is Outline for one of the choice's file systems.
func (s Sweep) OutlineOn(c study.Choice) ([]result.Cell, result.Plan) {
	return s.Outline(c.Share(len(c.FileSystems)))
}
