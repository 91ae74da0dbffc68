// Package study holds what can be measured: one file for each study, a question
// with the matrix of cells that answers it.
//
// A study decides what is run and how much of it fits in the time given; how it
// is run is [trial]'s affair, and what the figures mean is not decided here.
//
// Start with [Policy].
package study

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/trial"
)

// A Study is a question with its matrix.
type Study struct {
	Name     string
	Question string

	// Workloads returns the cells without their numbers of records.
	Workloads func(Choice) []Workload
}

// A Workload is a cell before it is known how much of it fits in the time.
type Workload struct {
	Twin        bool // this one repeats the one before it, to learn the noise
	Policy      holdfast.Policy
	RecordBytes int64
	Writers     int
}

// Name returns the workload's name, which tells it from all others of the matrix.
func (w Workload) Name() string {
	name := fmt.Sprintf("policy=%v/record=%v/writers=%d", w.Policy, holdfast.Size(w.RecordBytes), w.Writers)
	if w.Twin {
		name += "/again"
	}
	return name
}

// durable reports whether each Write waits for the disk.
func (w Workload) durable() bool {
	return w.Policy.Sync == holdfast.SyncGroup || w.Policy.Sync == holdfast.SyncEach
}

// A Preset is a size of run.
type Preset struct {
	Name   string
	Budget time.Duration // for all, calibration included
	Rounds int
	Full   bool // the larger matrix
}

// The presets. Ten rounds are the least from which a difference can be called
// proven; quick gives that up, the others take fewer than they say, down to ten,
// on a slow disk.
func Quick() Preset   { return Preset{Name: "quick", Budget: 10 * time.Second, Rounds: 3} }
func Default() Preset { return Preset{Name: "default", Budget: 45 * time.Second, Rounds: 20} }
func Full() Preset {
	return Preset{Name: "full", Budget: 5 * time.Minute, Rounds: 30, Full: true}
}

// A Choice is what the user may set; what is empty or zero is the preset's.
type Choice struct {
	Preset   Preset
	Policies []holdfast.Policy
	Records  []holdfast.Size
	Writers  []int
	Rounds   int
	Budget   time.Duration
	Seed     uint64
}

func (c Choice) budget() time.Duration {
	if c.Budget > 0 {
		return c.Budget
	}
	return c.Preset.Budget
}

func (c Choice) rounds() int {
	if c.Rounds > 0 {
		return c.Rounds
	}
	return c.Preset.Rounds
}

// Prepare calibrates the study's cells on g with short runs, fits them into the
// choice's time and returns what is to be run. Fewer rounds than the preset's are
// planned where the disk is too slow for more; rounds that were asked for stay,
// however long they take.
func (s Study) Prepare(ctx context.Context, g *trial.Ground, c Choice, probed func(done, all int)) (trial.Matrix, result.Plan, error) {
	begun := time.Now()
	loads := s.Workloads(c)
	rates, err := calibrate(ctx, g, loads, probed)
	if err != nil {
		return trial.Matrix{}, result.Plan{}, err
	}
	left := max(0, c.budget()-time.Since(begun))
	fit := fitting{loads: loads, rates: rates, rounds: c.rounds(), fixed: c.Rounds > 0}.into(left * 9 / 10)
	m := trial.Matrix{Rounds: fit.rounds, Seed: c.Seed}
	plan := result.Plan{Preset: c.Preset.Name, Rounds: fit.rounds}
	for i, w := range loads {
		cell := w.cell(fit.records[i], rates[i].estimate(fit.records[i]))
		m.Cells = append(m.Cells, cell)
		size := cell.Records * cell.RecordBytes
		plan.Size += size * int64(fit.rounds+1) * (1 + trial.MemoryWrites)
		plan.Room = max(plan.Room, room(size))
	}
	plan.Estimate = m.Estimate()
	if c.Rounds == 0 {
		m.Limit = left * 11 / 10
	}
	plan.Limit = m.Limit
	return m, plan, g.Need(plan.Room)
}

// room is what one trial may take on the disk: its file, what the Writer may
// reserve ahead of it, and what the file system needs to keep its books.
func room(size int64) int64 { return size + size/2 + 4<<20 }

// strideBuffered times one Write in 31: see trial.Append.
const strideBuffered = 31

func (w Workload) cell(records int64, estimate time.Duration) trial.Cell {
	stride := strideBuffered
	if w.durable() {
		stride = 1
	}
	cell := result.Cell{
		Name: w.Name(), Policy: w.Policy,
		RecordBytes: w.RecordBytes, Writers: w.Writers, Records: records, LatencyStride: stride,
	}
	if w.Twin {
		original := w
		original.Twin = false
		cell.Twin = original.Name()
	}
	return trial.Cell{Cell: cell, Run: w.append(records, stride).Run, Estimate: estimate}
}

func (w Workload) append(records int64, stride int) trial.Append {
	return trial.Append{Policy: w.Policy, RecordBytes: w.RecordBytes, Writers: w.Writers, Records: records, Stride: stride}
}

// or returns the choice, or the preset's where nothing was chosen; each value once.
func or[T comparable](chosen, preset []T) []T {
	if len(chosen) == 0 {
		return preset
	}
	var once []T
	for _, v := range chosen {
		if !slices.Contains(once, v) {
			once = append(once, v)
		}
	}
	return once
}
