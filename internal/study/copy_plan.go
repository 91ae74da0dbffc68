package study

import (
	"math/bits"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/timing"
)

// What a machine is taken to need, for the plan: an own measurement would make the
// plan of a run that is repeated another one.
const (
	nominalCall  = 450 * time.Nanosecond // a read(2) or a write(2) of one byte
	nominalSync  = 400 * time.Microsecond
	nominalStart = 15 * time.Millisecond // of a trial: garbage, links, settling
	nominalBytes = 3                     // ns: a byte copied, and its memory prepared, evicted and compared
)

// time is about how long a trial of the first n bytes takes, and what is around it.
// Each call takes slower more than nominalCall.
func (c copyCell) time(n int64, slower time.Duration) time.Duration {
	calls := parts(n, c.buffer)
	each := nominalCall + slower
	if !c.form.Writes() {
		each *= 2
	}
	switch c.form {
	case timing.Synced, timing.DSynced, timing.WriteSync, timing.WriteData, timing.EachData, timing.EachSync:
		each += nominalSync
	}
	return nominalStart + time.Duration(n*nominalBytes) + time.Duration(calls)*each
}

// fits returns how much of the whole a trial can copy in the time, in three binary
// digits, so that cells of about the same length read the same source; but not
// less than the least.
func (c copyCell) fits(t, slower time.Duration) int64 {
	if c.time(c.size, slower) <= t {
		return c.size
	}
	perByte := float64(c.time(c.size, slower)-nominalStart) / float64(c.size)
	n := int64(float64(max(0, t-nominalStart)) / perByte)
	if low := bits.Len64(uint64(n)) - 3; low > 0 {
		n = n >> low << low
	}
	return min(c.size, max(n, c.least()))
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
	whole  time.Duration // what takes no longer is copied whole
	level  time.Duration // that anything else may take
}

// planned parts the time of a round among the cells. Those that take the least are
// copied whole, as many as fit into wholePart of it: a short copy by large buffers
// fits into the processor's caches, and does not tell of a long one. The others share
// what is left: none takes longer than the level, unless that is its least.
func planned(cells []copyCell, round, slower time.Duration) copyPlan {
	p := copyPlan{slower: slower}
	wholes := make([]time.Duration, 0, len(cells))
	for _, c := range cells {
		wholes = append(wholes, c.time(c.size, slower))
	}
	slices.Sort(wholes)
	room := wholePart(round)
	for _, t := range wholes {
		if room -= t; room < 0 {
			break
		}
		p.whole = t
	}
	low, high := time.Duration(0), round
	for range 40 {
		p.level = low + (high-low)/2
		if p.takes(cells) > round {
			high = p.level
		} else {
			low = p.level
		}
	}
	p.level = low
	return p
}

// wholePart is how much of a round may be spent on cells that are copied whole.
func wholePart(round time.Duration) time.Duration { return round * 2 / 3 }

func (p copyPlan) takes(cells []copyCell) (all time.Duration) {
	for _, c := range cells {
		all += c.time(p.of(c), p.slower)
	}
	return all
}

// of is how many bytes of the cell's whole are copied.
func (p copyPlan) of(c copyCell) int64 {
	if c.time(c.size, p.slower) <= p.whole {
		return c.size
	}
	return c.fits(p.level, p.slower)
}

// copyRound is how long a round of the choice may take on one file system, with half of the time left for a
// machine that is slower, or busier, than the plan takes it to be. An audit has many studies to run,
// and takes little of what it could.
func copyRound(c Choice) time.Duration {
	budget := c.budget()
	if c.Preset.Name == small {
		budget = min(budget, auditTime)
	}
	rounds := c.rounds() + 1 // a warm-up comes first
	return budget / 2 / time.Duration(rounds)
}

// copyRounds are those of the preset, or where parts were named and a time is short
// fewer, down to fewestRounds, if then every large buffer is copied whole.
func copyRounds(c Choice) int {
	most := c.rounds()
	if len(c.Parts) == 0 {
		return most
	}
	need := time.Duration(0)
	for _, cell := range repeated(copyMatrix(c)) {
		if cell.form == timing.Copy && cell.buffer >= wholeBuffer {
			need += cell.time(cell.size, c.planSlower())
		}
	}
	for c.Rounds = most; c.Rounds >= fewestRounds; c.Rounds-- {
		if wholePart(copyRound(c)) >= need {
			return c.Rounds
		}
	}
	return most
}

const (
	fewestRounds = 3
	wholeBuffer  = 512
)

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

const auditTime = 12 * time.Second

// copyMatrix returns the cells of the choice, in the order of the tables.
func copyMatrix(c Choice) []copyCell {
	var all []copyCell
	for _, p := range Parts() {
		for _, cell := range p.cells(c) {
			if !slices.Contains(all, cell) {
				all = append(all, cell)
			}
		}
	}
	return all
}

// runs reports whether the part is run: without a choice all are, but on several file
// systems part C alone, which is of them, unless the run is a full one.
func (p Part) runs(c Choice) bool {
	switch {
	case len(c.Parts) > 0:
		return slices.Contains(c.Parts, p)
	case len(c.FileSystems) > 1 && !c.Preset.Full:
		return p == PartC
	}
	return true
}

// cells are those of the part.
func (p Part) cells(c Choice) (cells []copyCell) {
	if !p.runs(c) {
		return nil
	}
	all := slices.Contains(c.Parts, p) || c.Preset.Full
	add := func(form timing.Form, size int64, buffers []int64) {
		for _, b := range buffers {
			cells = append(cells, copyCell{form, size, b})
		}
	}
	switch p {
	case PartA:
		for _, size := range sizesOfA(all) {
			add(timing.Copy, size, buffersOf(c, all))
		}
	case PartB:
		for _, form := range formsOf(all, timing.Synced, timing.DSynced, timing.EndSynced) {
			add(form, syncSize, buffersOf(c, all))
		}
	case PartC:
		add(timing.Copy, wholeSize, buffersOf(c, true))
	case PartWrite:
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

// sizesOfA are the published sizes with that of part C.
func sizesOfA(all bool) []int64 {
	if all {
		return []int64{1 * mib, 2 * mib, 4 * mib, 8 * mib, 16 * mib, 32 * mib, wholeSize}
	}
	return []int64{1 * mib, 8 * mib}
}

// allBuffers are the published ones, what their slip was to be, and two larger ones.
func allBuffers() []int64 {
	return []int64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096, oddBuffer, 16384, 65536, 256 << 10, mib}
}

// buffersOf are all, or where a part was not asked for a few.
func buffersOf(c Choice, all bool) []int64 {
	few := []int64{1, 64, 4096, 65536}
	var buffers []int64
	for _, b := range c.Buffers {
		buffers = append(buffers, int64(b))
	}
	if all {
		few = allBuffers()
	}
	buffers = slices.Clone(or(buffers, few))
	slices.Sort(buffers)
	return buffers
}
