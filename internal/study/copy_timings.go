package study

import (
	"cmp"
	"math"
	"slices"

	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/timing"
)

// Timings returns what a run of the study copy has measured, a row for each buffer,
// file size, form and file system: seconds of the whole file, the median of the whole
// rounds. A row that was measured by a shorter copy is marked Predicted. User and
// System part the CPU time as it was parted over all rounds; where no CPU time was
// told, CPU, User and System are 0.
//
// Rows are in the order of file system as in the run, then of form ([timing.Forms]),
// file size and buffer. FileSystem is always told: of a run on its folder alone it is
// that folder's, or "unknown". So part C is the rows of the form Copy and 100 MiB, part A those of
// Copy of every size, part B those of 1 MiB and the three forms of syncing, and
// exercise 13-2 those whose form writes alone. A run of another study, or of which no
// round is whole, has none. The caller owns the slice; it may be called concurrently.
func Timings(run result.Run) []timing.Row {
	if run.Header.Study != Copying().Name {
		return nil
	}
	all := EvidenceOn(run)
	if len(all) == 0 {
		all = []Evidence{EvidenceOf(run)}
	}
	var rows []timing.Row
	for _, e := range all {
		rows = append(rows, timingsOf(e)...)
	}
	return rows
}

// timingsOf returns the rows of one file system.
func timingsOf(e Evidence) (rows []timing.Row) {
	for _, c := range copyCells(e) {
		rows = append(rows, timingOf(e, c))
	}
	order := func(f timing.Form) int { return slices.Index(timing.Forms(), f) }
	slices.SortStableFunc(rows, func(a, b timing.Row) int {
		return cmp.Or(order(a.Form)-order(b.Form), cmp.Compare(a.FileSize, b.FileSize), a.Buffer-b.Buffer)
	})
	return rows
}

func timingOf(e Evidence, c copyCell) timing.Row {
	w := wholeOf(e, c)
	row := timing.Row{
		FileSystem: e.place(), FileSize: c.size, Form: c.form, Buffer: int(c.buffer),
		Elapsed: inSeconds(w.elapsed.Median), Predicted: w.predicted,
	}
	if w.cpu.Median > 0 {
		row.CPU, row.User = inSeconds(w.cpu.Median), inSeconds(w.user)
		row.System = inSeconds(w.cpu.Median - w.user)
	}
	return row
}

// inSeconds are whole nanoseconds, so that the text of one has nine decimals at most.
func inSeconds(ns float64) float64 { return math.Round(ns) / 1e9 }

// place is the file system that the evidence is of.
func (e Evidence) place() string { return cmp.Or(e.FileSystem, e.Fact("file system"), "unknown") }
