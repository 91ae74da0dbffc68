package copying

import (
	"math/bits"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/lab/copysource"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/timing"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// Assumed times of a machine, for the plan: measured ones would give a repeated run another plan.
const (
	nominalCall = 450 * time.Nanosecond // a read(2) or a write(2) of one byte
	nominalSync = 400 * time.Microsecond
)

// time estimates a trial of the first n bytes, with its setup and cleanup.
// Each call takes slower more than nominalCall.
func (c copyCell) time(n int64, slower time.Duration) time.Duration {
	calls := study.CallsOf(n, c.buffer)
	each := nominalCall + slower
	if !c.form.Writes() {
		each *= 2
	}
	switch c.form {
	case timing.Synced, timing.DSynced, timing.WriteSync, timing.WriteData, timing.EachData, timing.EachSync:
		each += nominalSync
	}
	return copysource.Start + time.Duration(n*copysource.PerByte) + time.Duration(calls)*each
}

// least is the least that a trial copies: half of it is its steady part, which has to
// take much longer than reading the clock.
func (c copyCell) least() int64 {
	const fewest, enough, bytes = 20, 512, mib
	if c.syncs() { // each takes as long as a sync
		return fewest * c.buffer
	}
	return max(fewest*c.buffer, min(enough*c.buffer, bytes))
}

// A copyPlan says how much of its whole each cell copies.
type copyPlan struct {
	slower time.Duration // than nominalCall, for a call
	whole  time.Duration // shorter copies are whole
	level  time.Duration // that anything else may take
}

// wholePart is how much of a round may be spent on cells that are copied whole.
func wholePart(round time.Duration) time.Duration { return round * 2 / 3 }

// of is how many bytes of the cell's whole are copied.
func (p copyPlan) of(c copyCell) int64 {
	if c.time(c.size, p.slower) <= p.whole {
		return c.size
	}
	// A trial copies as much as fits into the level, but not less than the least. Three
	// binary digits remain, so that cells of about the same length read the same source.
	if c.time(c.size, p.slower) <= p.level {
		return c.size
	}
	perByte := float64(c.time(c.size, p.slower)-copysource.Start) / float64(c.size)
	n := int64(float64(max(0, p.level-copysource.Start)) / perByte)
	if low := bits.Len64(uint64(n)) - 3; low > 0 {
		n = n >> low << low
	}
	return min(c.size, max(n, c.least()))
}

// copyRound is how long a round of the choice may take on one file system. It leaves
// half of the time for a machine that is slower, or busier, than the plan assumes. An audit has
// many studies to run, so each takes a small part of its range.
func copyRound(c study.Choice) time.Duration {
	budget := c.TimeToTake()
	if c.Preset.Name == study.PresetAudit {
		budget = min(budget, 12*time.Second)
	}
	rounds := c.RoundsToRun() + 1 // a warm-up comes first
	return budget / 2 / time.Duration(rounds)
}

// wholeBuffer is the least buffer that counts as large.
const wholeBuffer = 512

// repeated has the twin besides.
func repeated(cells []copyCell) []copyCell {
	if len(cells) == 0 {
		return nil
	}
	twin := copyCell{timing.Copy, wholeSize, twinBuffer}
	if !slices.Contains(cells, twin) {
		twin = cells[0]
	}
	return append(slices.Clip(cells), twin)
}

// copyMatrix returns the cells of the choice, in the order of the tables.
func copyMatrix(c study.Choice) []copyCell {
	var all []copyCell
	for _, p := range study.Parts() {
		for _, cell := range partCells(p, c) { // with a count, parts A and C are the same
			if !slices.Contains(all, cell) {
				all = append(all, cell)
			}
		}
	}
	return all
}

// partRuns reports whether the part is run. Without a choice all are. But on several file
// systems it is part C alone, which is about them, unless the run is a full one.
func partRuns(p study.Part, c study.Choice) bool {
	switch {
	case len(c.Parts) > 0:
		return slices.Contains(c.Parts, p)
	case len(c.FileSystems) > 1 && !c.Preset.Full:
		return p == study.PartC
	}
	return true
}

// partCells returns the cells of the part.
func partCells(p study.Part, c study.Choice) (cells []copyCell) {
	if !partRuns(p, c) {
		return nil
	}
	all := slices.Contains(c.Parts, p) || c.Preset.Full
	add := func(form timing.Form, size int64, buffers []int64) {
		if c.Count > 0 {
			size = c.Count
		}
		for _, b := range buffers {
			cells = append(cells, copyCell{form, size, b})
		}
	}
	switch p {
	case study.PartA:
		sizes := []int64{1 * mib, 8 * mib}
		if all { // the published sizes with part C's
			sizes = []int64{1 * mib, 2 * mib, 4 * mib, 8 * mib, 16 * mib, 32 * mib, wholeSize}
		}
		for _, size := range sizes {
			add(timing.Copy, size, buffersOf(c, all))
		}
	case study.PartB:
		for _, form := range formsOf(all, timing.Synced, timing.DSynced, timing.EndSynced) {
			add(form, syncSize, buffersOf(c, all))
		}
	case study.PartC:
		add(timing.Copy, wholeSize, buffersOf(c, true))
		add(timing.InC, wholeSize, buffersOf(c, false))
	case study.PartWrite:
		for _, form := range formsOf(all, timing.Write, timing.WriteSync, timing.WriteData, timing.EachData, timing.EachSync) {
			add(form, writeSize, buffersOf(c, all))
		}
	}
	return cells
}

// formsOf are the forms of a part, or the first where not all are run.
func formsOf(all bool, forms ...timing.Form) []timing.Form {
	if all {
		return forms
	}
	return forms[:1]
}

// allBuffers are the published ones, what their slip was to be, and two larger ones.
func allBuffers() []int64 {
	return []int64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096, oddBuffer, 16384, 65536, 256 << 10, mib}
}

// buffersOf are all, or where a part was not asked for a few.
func buffersOf(c study.Choice, all bool) []int64 {
	few := []int64{1, 64, 4096, 65536}
	var buffers []int64
	for _, b := range c.Buffers {
		buffers = append(buffers, int64(b))
	}
	if all {
		few = allBuffers()
	}
	buffers = slices.Clone(study.Or(buffers, few))
	slices.Sort(buffers)
	return buffers
}
