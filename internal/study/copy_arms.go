package study

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/timing"
	"github.com/holdfast-go/holdfast/internal/trial"
)

// copyArms are the cells of the choice. Claims name cells of parts that may not be
// chosen: an audit asks for these alone.
func copyArms(c Choice) []Arm {
	cells := copyMatrix(c)
	if c.Preset.Name == small {
		cells = claimedCells()
	}
	if c.Only != nil {
		cells = slices.DeleteFunc(cells, func(cell copyCell) bool { return !slices.Contains(c.Only, cell.name()) })
	}
	plan := planned(repeated(cells), copyRound(c), c.planSlower())
	source := newCopySource(c.Seed)
	var arms []Arm
	for _, cell := range cells {
		arms = append(arms, cell.arm(c, plan.of(cell), source))
	}
	room := sourcesRoom(cells, plan)
	for i := range arms {
		arms[i].Room = room + arms[i].Bytes
	}
	return append(arms, stdioArms(c)...)
}

// sourcesRoom is what the sources take, of which there is one for each length.
func sourcesRoom(cells []copyCell, plan copyPlan) (room int64) {
	made := map[int64]bool{}
	for _, c := range cells {
		if n := plan.of(c); !c.form.Writes() && !made[n] {
			made[n] = true
			room += n
		}
	}
	return room
}

// claimedCells are those that the claims take.
func claimedCells() []copyCell {
	var cells []copyCell
	for _, b := range []int64{1, 512, 4096, oddBuffer, 16384, 65536} {
		cells = append(cells, copyCell{timing.Copy, wholeSize, b})
	}
	for _, b := range []int64{1, 2, 4096} {
		cells = append(cells, copyCell{timing.Synced, syncSize, b})
	}
	return cells
}

// does says in words what the cell does.
func (c copyCell) does(n int64) string {
	text := fmt.Sprintf("read(2) and write(2) of %d bytes", c.buffer)
	if c.form.Writes() {
		text = fmt.Sprintf("write(2) of %d bytes", c.buffer)
	}
	switch c.form {
	case timing.Synced, timing.WriteSync:
		text += " with O_SYNC"
	case timing.DSynced, timing.WriteData:
		text += " with O_DSYNC"
	case timing.EndSynced:
		text += ", and fsync(2)"
	case timing.EachData:
		text += ", each with fdatasync(2)"
	case timing.EachSync:
		text += ", each with fsync(2)"
	}
	if n < c.size {
		text += fmt.Sprintf(", the first %v of %v", holdfast.Size(n), holdfast.Size(c.size))
	}
	return text
}

// arm makes the cell an arm that copies n bytes of the whole.
func (c copyCell) arm(choice Choice, n int64, source *copySource) Arm {
	a := Arm{
		Cell: result.Cell{Name: c.name(), Group: c.group(), Does: c.does(n), Records: n, RecordBytes: 1, Writers: 1, Cache: c.cache(choice)},
		Time: c.time(n, choice.Slower), Bytes: n,
		Task: func() trial.Task { return c.task(choice, n, source) },
	}
	if (c.form == timing.DSynced || c.form == timing.WriteData) && openDataSync == 0 {
		a.Missing = "there is no O_DSYNC on this system"
	}
	if c.syncs() && choice.NeverSync != "" {
		a.Missing = "no file can be synced there: " + choice.NeverSync
	}
	return a
}

// syncs reports whether the form waits for the disk.
func (c copyCell) syncs() bool { return c.form != timing.Copy && c.form != timing.Write }

// cache is the state of the source: cold where that can be had. What is only written
// has none.
func (c copyCell) cache(choice Choice) result.Cache {
	if c.form.Writes() {
		return result.NewFile
	}
	return cmp.Or(choice.Cache, result.TryCold)
}
