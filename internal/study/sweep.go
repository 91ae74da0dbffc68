package study

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/trial"
)

// A Sweep is a question with a matrix of policies and loads.
type Sweep struct {
	Name     string
	Question string

	// Workloads returns the cells without their numbers of records.
	Workloads func(Choice) []Workload
}

// A Workload is a cell before it is known how much of it fits in the time.
type Workload struct {
	Twin        bool // this one repeats the one before it, to learn the noise
	Empty       bool // nothing is written, to learn what measuring takes
	Policy      holdfast.Policy
	RecordBytes int64
	Writers     int
	Setting
}

// A Setting is how all cells of a run are measured. The zero Setting is a closed
// loop on new files, in trials of fixed length.
type Setting struct {
	Rate   float64      // records a second that are due, by all writers together
	Cache  result.Cache // what the page cache shall hold of the file
	Steady bool         // trials go on until the throughput is steady
	Room   int64        // in bytes: the largest file of a steady trial; 0 is DefaultRoom
}

// DefaultRoom is how much a steady trial may write: enough to fill the memory
// that may wait to be written on most machines (20 % of what is available, see
// vm.dirty_ratio), so that the disk's own speed shows.
const DefaultRoom = 16 << 30

// steadyTime is how long a steady trial may take unless told otherwise.
const steadyTime = time.Minute

// Name returns the workload's name, which tells it from all others of the matrix.
func (w Workload) Name() string {
	name := fmt.Sprintf("policy=%v/record=%v/writers=%d", w.Policy, holdfast.Size(w.RecordBytes), w.Writers)
	if w.Empty {
		name = fmt.Sprintf("empty/record=%v/writers=%d", holdfast.Size(w.RecordBytes), w.Writers)
	}
	if w.Rate > 0 {
		name += fmt.Sprintf("/rate=%g", w.Rate)
	}
	if w.Twin {
		name += "/again"
	}
	return name
}

// durable reports whether each Write waits for the disk.
func (w Workload) durable() bool {
	return !w.Empty && (w.Policy.Sync == holdfast.SyncGroup || w.Policy.Sync == holdfast.SyncEach)
}

// Prepare calibrates the sweep's cells on g with short runs, fits them into the
// choice's time and returns what is to be run. Fewer rounds than the preset's are
// planned where the disk is too slow for more; rounds that were asked for stay,
// however long they take.
func (s Sweep) Prepare(ctx context.Context, g *trial.Ground, c Choice, probed func(done, all int)) (trial.Matrix, result.Plan, error) {
	begun := time.Now()
	loads := s.Workloads(c)
	if c.Steady {
		m, plan := c.steady(g, loads)
		return m, plan, g.Need(plan.Room)
	}
	rates, err := calibrate(ctx, g, loads, probed)
	if err != nil {
		return trial.Matrix{}, result.Plan{}, err
	}
	left := max(0, c.budget()-time.Since(begun))
	fit := fitting{loads: loads, rates: rates, rounds: c.rounds(), fixed: c.Rounds > 0, most: most(g)}.into(left * 9 / 10)
	var cells []trial.Cell
	for i, w := range loads {
		cells = append(cells, Cell(w.cell(fit.records[i]), rates[i].estimate(fit.records[i]), c.Counting))
	}
	m, plan := c.matrix(cells, fit.rounds)
	if c.Rounds == 0 {
		m.Limit = max(1, left) // 0 is no limit
	}
	plan.Limit = m.Limit
	return m, plan, g.Need(plan.Room)
}

// Outline returns what Prepare would plan, without its calibration: the records of
// a cell are 0 where that decides them, and the plan's sizes are upper bounds.
func (s Sweep) Outline(c Choice) ([]result.Cell, result.Plan) {
	var cells []trial.Cell
	var outline []result.Cell
	loads := s.Workloads(c)
	longest := c.steadyLongest(len(loads))
	for _, w := range loads {
		cell := w.cell(0)
		if c.Steady {
			cell.Longest = longest
		}
		outline = append(outline, cell)
		most := int64(trialMost)
		if c.Steady {
			most = cmp.Or(c.Room, DefaultRoom)
		}
		cell.Records = max(int64(w.Writers), most/w.RecordBytes)
		cells = append(cells, Cell(cell, longest, trial.NotCounting))
	}
	_, plan := c.matrix(cells, c.rounds())
	if !c.Steady {
		// Rounds that were asked for are run, however short the time is.
		least := shortest * time.Duration(len(cells)*(c.Rounds+1))
		plan.Estimate, plan.Limit = max(least, c.budget()), c.budget()
	}
	return outline, plan
}

// steadyLongest is how long each trial of so many steady cells may take.
func (c Choice) steadyLongest(cells int) time.Duration {
	if c.Budget == 0 {
		return steadyTime
	}
	return c.Budget / time.Duration(cells*c.rounds())
}

// steady plans trials that end by themselves.
func (c Choice) steady(g *trial.Ground, loads []Workload) (trial.Matrix, result.Plan) {
	longest := c.steadyLongest(len(loads))
	room := int64(DefaultRoom)
	if free, ok := g.Free(); ok {
		room = min(room, free/2)
	}
	if c.Room > 0 {
		room = c.Room
	}
	var cells []trial.Cell
	for _, w := range loads {
		cell := w.cell(max(int64(w.Writers), room/w.RecordBytes))
		cell.Longest = longest
		cells = append(cells, Cell(cell, longest, c.Counting))
	}
	return c.matrix(cells, c.rounds())
}

// matrix returns the cells as a matrix, and what its plan promises.
func (c Choice) matrix(cells []trial.Cell, rounds int) (trial.Matrix, result.Plan) {
	m := trial.Matrix{Cells: cells, Rounds: rounds, Seed: c.Seed}
	plan := result.Plan{Preset: c.Preset.Name, Rounds: rounds, Width: c.width(), Estimate: m.Estimate()}
	for _, cell := range cells {
		size := cell.Records * cell.RecordBytes
		if cell.Empty {
			continue
		}
		plan.Size += (size + trial.PreparedBytes(size)) * int64(rounds+1)
		plan.Room = max(plan.Room, room(size))
	}
	return m, plan
}

// room is what one trial may take on the disk: its file, what the Writer may
// reserve ahead of it, or what is written before to prepare the memory; and what
// the file system needs to keep its books.
func room(size int64) int64 {
	return max(size+size/2, trial.PreparedBytes(size)) + 4<<20
}

// strideBuffered times one Write in 31: see trial.Append.
const strideBuffered = 31

// cell is the workload with its number of records.
func (w Workload) cell(records int64) result.Cell {
	cell := result.Cell{
		Name: w.Name(), Empty: w.Empty, Policy: w.Policy,
		RecordBytes: w.RecordBytes, Writers: w.Writers, Records: records,
		Rate: w.Rate, Cache: w.Cache, Steady: w.Steady, LatencyStride: strideBuffered,
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

// tracedRecords bounds a cell that runs under a tracer, where each system call
// takes ten times as long.
const tracedRecords = 20_000

// Trace runs a cell once under [trial.CountByTrace], with fewer records.
func Trace(ctx context.Context, g *trial.Ground, c result.Cell) (trial.Traced, error) {
	c.Records = max(int64(c.Writers), min(c.Records, tracedRecords))
	if c.Rate > 0 {
		c.Records = max(int64(c.Writers), min(c.Records, int64(c.Rate)))
	}
	c.Steady = false
	_, err := Cell(c, 0, trial.Marks).Run(ctx, g, true)
	return trial.Traced{Cell: c.Name, Records: c.Records}, err
}

// steadyWarmUp is how many records warm up a cell whose trials are long.
func steadyWarmUp(c result.Cell) int64 {
	w := Workload{Policy: c.Policy, RecordBytes: c.RecordBytes, Writers: c.Writers}
	return min(c.Records, 100*w.least(probeLeast))
}

// Cell returns what runs a cell. Its warm-up counts system calls if it is to, and
// is a short one where trials are long.
func Cell(c result.Cell, estimate time.Duration, counting trial.Counting) trial.Cell {
	a := trial.Append{
		Policy: c.Policy, RecordBytes: c.RecordBytes, Writers: c.Writers, Records: c.Records, Stride: c.LatencyStride,
		Rate: c.Rate, Cache: c.Cache, Empty: c.Empty, Steady: c.Steady, Longest: c.Longest,
	}
	run := func(ctx context.Context, g *trial.Ground, warmUp bool) (result.Measurement, error) {
		a := a
		if warmUp {
			a.Count = counting
			if a.Steady {
				a.Steady, a.Records = false, steadyWarmUp(c)
			}
		}
		return a.Run(ctx, g)
	}
	return trial.Cell{Cell: c, Run: run, Estimate: estimate}
}
