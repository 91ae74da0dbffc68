package copying

import (
	"cmp"
	"math"
	"slices"

	"github.com/holdfast-go/holdfast/internal/lab/result"
	"github.com/holdfast-go/holdfast/internal/lab/study"
	"github.com/holdfast-go/holdfast/internal/lab/timing"
)

// Timings returns what a run of the study copy has measured, a row for each buffer,
// file size, form and file system: seconds of the whole file, the median of the whole
// rounds. A row that was measured by a shorter copy is marked Predicted. User and
// System part the CPU time as it was parted over all rounds; where no CPU time is
// known, CPU, User and System are 0.
//
// Rows are in the order of file system as in the run, then of form ([timing.Forms]),
// file size and buffer. FileSystem is always set: in a run on its directory alone it is
// that directory's, or "unknown". So part C is the rows of the form Copy and 100 MiB,
// and part A those of Copy of every size. Part B is the rows of 1 MiB and the three
// forms of syncing. Exercise 13-2 is those whose form writes alone. A run of another
// study, or without a whole round, has none. The caller owns the slice; it may be
// called concurrently.
func Timings(run result.Run) []timing.Row {
	if run.Header.Study != Study().Name {
		return nil
	}
	all := study.EvidenceOn(run)
	if len(all) == 0 {
		all = []study.Evidence{study.EvidenceOf(run)}
	}
	var rows []timing.Row
	for _, e := range all {
		rows = append(rows, timingsOf(e)...)
	}
	return rows
}

// timingsOf returns the rows of one file system.
func timingsOf(e study.Evidence) (rows []timing.Row) {
	for _, c := range copyCells(e) {
		w := wholeOf(e, c)
		row := timing.Row{
			FileSystem: placeOf(e), FileSize: c.size, Form: c.form, Buffer: int(c.buffer),
			Elapsed: inSeconds(w.elapsed.Median), Predicted: w.predicted,
		}
		if w.cpu.Median > 0 {
			row.CPU, row.User = inSeconds(w.cpu.Median), inSeconds(w.user)
			row.System = inSeconds(w.cpu.Median - w.user)
		}
		rows = append(rows, row)
	}
	order := func(f timing.Form) int { return slices.Index(timing.Forms(), f) }
	slices.SortStableFunc(rows, func(a, b timing.Row) int {
		return cmp.Or(order(a.Form)-order(b.Form), cmp.Compare(a.FileSize, b.FileSize), a.Buffer-b.Buffer)
	})
	return rows
}

// inSeconds are whole nanoseconds, so that the text of one has nine decimals at most.
func inSeconds(ns float64) float64 { return math.Round(ns) / 1e9 }

// placeOf is the file system that the evidence is of.
func placeOf(e study.Evidence) string { return cmp.Or(e.FileSystem, e.Fact("file system"), "unknown") }
