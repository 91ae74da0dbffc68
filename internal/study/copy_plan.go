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
func (c copyCell) time(n int64) time.Duration {
	calls := parts(n, c.buffer)
	each := nominalCall
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
// digits, so that cells of about the same length read the same source; but at least
// fewest buffers.
func (c copyCell) fits(t time.Duration) int64 {
	if c.time(c.size) <= t {
		return c.size
	}
	perByte := float64(c.time(c.size)-nominalStart) / float64(c.size)
	n := int64(float64(max(0, t-nominalStart)) / perByte)
	if low := bits.Len64(uint64(n)) - 3; low > 0 {
		n = n >> low << low
	}
	return min(c.size, max(n, fewestBuffers*c.buffer))
}

// fewestBuffers is the least that a trial copies: half of them are its steady part.
const fewestBuffers = 20

// shared parts the time of a round among the cells: none takes longer than the level
// that is returned, unless it is as short as it can be, and all together about as long
// as there is.
func shared(cells []copyCell, round time.Duration) (level time.Duration) {
	low, high := time.Duration(0), round
	for range 40 {
		level = low + (high-low)/2
		all := time.Duration(0)
		for _, c := range cells {
			all += c.time(c.fits(level))
		}
		if all > round {
			high = level
		} else {
			low = level
		}
	}
	return low
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
